"""The adapters of a model that batches may name."""

from dataclasses import dataclass
from pathlib import Path

from octavo.core.adapters import Adapter, digest_of
from octavo.engine.runners.llama_cpp import binding
from octavo.errors import AdapterRefused


@dataclass(frozen=True, slots=True)
class _Loaded:
    handle: binding.Adapter
    scale: float


class Adapters:
    """Owns them, and sets the one that a context computes with."""

    def __init__(self, model: binding.Model, context: binding.Context) -> None:
        self._model = model
        self._context = context
        self._loaded: dict[str, _Loaded] = {}
        self._used = ""

    def load(self, adapter: Adapter) -> None:
        """Raises AdapterRefused where the file is gone, has changed, or is not for this model."""
        path = Path(adapter.path)
        _check_digest(path, adapter.digest)
        self._loaded[adapter.key] = _Loaded(load_adapter(self._model, path), adapter.scale)

    def unload(self, key: str) -> None:
        if key == self._used:
            self.use("")
        if (loaded := self._loaded.pop(key, None)) is not None:
            loaded.handle.close()

    def use(self, key: str) -> None:
        """key: of a loaded one, or empty for the model as it is."""
        if key == self._used:
            return
        if key:
            self._context.use_adapter(self._loaded[key].handle, self._loaded[key].scale)
        else:
            self._context.use_adapter(None, 1.0)
        self._used = key

    def close(self) -> None:
        for key in list(self._loaded):
            self.unload(key)


def load_adapter(model: binding.Model, path: Path) -> binding.Adapter:
    """Raises AdapterRefused."""
    try:
        adapter = binding.Adapter(model, path)
    except OSError as error:
        raise AdapterRefused("The file is not a LoRA adapter for this model.") from error
    if adapter.is_activated:
        adapter.close()
        raise AdapterRefused("The adapter is to be used only behind certain tokens (aLoRA), which is not supported.")
    return adapter


def _check_digest(path: Path, digest: str) -> None:
    try:
        with path.open("rb") as file:
            is_same = digest_of(file) == digest
    except OSError as error:
        raise AdapterRefused("The adapter's file cannot be read any more.") from error
    if not is_same:
        raise AdapterRefused("The adapter's file has changed since it was named.")
