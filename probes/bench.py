"""Servers under test."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from probes.target import MODEL, Target
from support.processes import Server, eventually, serving
from support.shared_models import FOLDER

NUM_SLOTS = "64"
VISION = FOLDER / "tiny-vlm"
ENGINE_FLAGS = {
    # One thread: more wait for each other where processors are busy.
    "scripted": ("--slots", NUM_SLOTS),
    "llama": ("--ctx", "1024", "--slots", "8", "--threads", "1"),
    "vision": (
        *(str(VISION / "tiny-vlm-f16.gguf"), "--mmproj", str(VISION / "mmproj-tiny-vlm-f16.gguf")),
        *("--threads", "1"),
    ),
}
"""Flags of `octavo serve`. llama: the demo model. vision: a tiny model that sees."""
KEYS_VARIABLE = "OCTAVO_API_KEY"


@dataclass(frozen=True, slots=True)
class Bench:
    """What a probe is given. flags: beside those that it sets itself. seed, scale, examples: see Target."""

    flags: tuple[str, ...] = ()
    seed: int = 1
    scale: float = 1.0
    examples: int = 100

    def with_flags(self, *flags: str) -> "Bench":
        return replace(self, flags=flags)

    def sized(self, number: int, least: int = 1) -> int:
        return max(least, round(number * self.scale))

    def target(self, server: Server, keys: tuple[str, ...] = ()) -> Target:
        return Target(server.url, keys, self.seed, self.scale, self.examples)

    @contextmanager
    def serving(
        self,
        *flags: str,
        engine: str = "scripted",
        keys: tuple[str, ...] = (),
        folder: Path | None = None,
        is_ready: bool = True,
    ) -> Iterator[Server]:
        """`octavo serve` with these flags and then the bench's own, in an empty folder unless one is given."""
        with TemporaryDirectory(prefix="octavo-probe-") as empty:
            place = folder or Path(empty)
            arguments = [flag.replace("{folder}", str(place)) for flag in (*ENGINE_FLAGS[engine], *flags, *self.flags)]
            variables = {KEYS_VARIABLE: " ".join(keys)} if keys else {}
            command = ("--alias", MODEL, "--log-level", "warning", *arguments)
            kind = "scripted" if engine == "scripted" else "llama"
            with serving(*command, folder=place, engine=kind, **variables) as server:
                if is_ready:
                    wait_ready(server, keys or _keys_in(arguments))
                yield server


def wait_ready(server: Server, keys: Sequence[str] = ()) -> None:
    """Until it can serve; it tells that to those who have a key."""
    server.wait_for("listens on")
    headers = {"authorization": f"Bearer {keys[0]}"} if keys else {}
    with server.client() as client:
        eventually(lambda: client.get("/ready", headers=headers).status_code == 200)


def _keys_in(arguments: Sequence[str]) -> list[str]:
    return [key for flag, key in pairwise(arguments) if flag == "--api-key"]
