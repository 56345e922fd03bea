"""`octavo adapters`: the LoRA adapters of a running server."""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

from octavo.cli.client import ServerClient
from octavo.cli.table import table
from octavo.cli.terminal import write_text

PATH = "/v1/adapters"
HEADINGS = ("id", "base", "scale", "in flight")


@dataclass(frozen=True, slots=True)
class AdapterRow:
    """num_running: requests that use it now."""

    id: str
    base: str
    scale: float
    num_running: int

    @classmethod
    def from_wire(cls, card: Any) -> Self:
        """Raises KeyError and its like for what is no adapter."""
        return cls(str(card["id"]), str(card["model"]), float(card["scale"]), int(card["num_running"]))

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.id, self.base, f"{self.scale:g}", str(self.num_running))


def list_adapters(*, url: str, key: str | None) -> None:
    """Print a table. Raises CallFailed and ConfigError."""
    with ServerClient(url, key) as client:
        rows = client.call("GET", PATH, lambda answer: [AdapterRow.from_wire(card) for card in answer["data"]])
    write_text(table([HEADINGS, *(row.cells for row in rows)]) if rows else "The server has no adapters.\n")


def load_adapter(
    adapter_id: str, path: str, *, url: str, key: str | None, scale: float | None, model: str | None
) -> None:
    """Let the server load one. path: as the server finds it, or `hf:owner/repo`. Raises CallFailed and ConfigError."""
    body = {"id": adapter_id, "path": path, "scale": scale, "model": model}
    with ServerClient(url, key) as client:
        row = client.call("POST", PATH, AdapterRow.from_wire, body)
    write_text(f"Loaded {row.id} for {row.base}, scale {row.scale:g}.\n")


def unload_adapter(adapter_id: str, *, url: str, key: str | None) -> None:
    """Let the server forget one, when the requests that use it are over. Raises CallFailed and ConfigError."""
    with ServerClient(url, key) as client:
        deleted = client.call("DELETE", f"{PATH}/{quote(adapter_id, safe='')}", lambda answer: str(answer["id"]))
    write_text(f"Unloaded {deleted}.\n")
