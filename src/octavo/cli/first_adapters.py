"""The adapters with which a server is started."""

from collections.abc import Sequence
from pathlib import Path

from octavo.config import flag_of
from octavo.errors import AdapterRefused, ConfigError, EngineError, EngineUnavailable, ModelLoadError
from octavo.service import AdapterFiles, AdapterHub, AdapterLoader, AdapterOrder, ModelRegistry, ServedModel
from octavo.service.adapter_hub import HUB_PREFIX
from octavo.service.names import is_adapter_id
from octavo.service.registry import Reservation


class FirstAdapters:
    """Keeps their names from the start, and loads them once the engine is ready; until then the server is not.

    given: ids and paths. loader: of `operators_adapters`.
    """

    def __init__(
        self, given: Sequence[tuple[str, str]], base: ServedModel, models: ModelRegistry, loader: AdapterLoader
    ) -> None:
        """Raises ConfigError."""
        self._loader = loader
        self._orders = [_order(id, reference, base) for id, reference in given]
        for order in self._orders:
            _keep_name(order.id, models)

    async def load(self) -> None:
        """Raises ModelLoadError for the first that cannot be loaded."""
        for order in self._orders:
            try:
                await self._loader.load_awaited(order)
            except (AdapterRefused, EngineError, EngineUnavailable) as error:
                raise ModelLoadError(f"{_label(order.id)}: {error.message}") from error


def operators_adapters(max_size: int) -> AdapterFiles:
    """What the operator may load: paths may lead anywhere. max_size: bytes."""
    return AdapterFiles(Path, AdapterHub(), max_size)


def _order(id: str, reference: str, base: ServedModel) -> AdapterOrder:
    if not is_adapter_id(id):
        allowed = "a letter or digit, and then at most 199 letters, digits and ._:/@+-"
        raise ConfigError(f"{_label(id)}: an adapter's name is {allowed}.")
    return AdapterOrder(id, base, reference if reference.startswith(HUB_PREFIX) else str(_file(id, reference)))


def _file(id: str, given: str) -> Path:
    path = Path(given).expanduser().resolve()
    if not path.is_file():
        raise ConfigError(f"{_label(id)}: there is no file {given!r}.")
    return path


def _keep_name(id: str, models: ModelRegistry) -> None:
    try:
        models.reserve(id, Reservation.AWAITED)
    except AdapterRefused as error:
        raise ConfigError(f"{_label(id)}: {error.message}") from error


def _label(id: str) -> str:
    return f"{flag_of('adapter')} {id!r}"
