"""The adapters with which a server is started."""

from collections.abc import Sequence
from pathlib import Path

from octavo.config import flag_of
from octavo.errors import AdapterRefused, ConfigError, EngineUnavailable, ModelLoadError
from octavo.service import AdapterFiles, AdapterHub, AdapterLoader, AdapterOrder, ModelRegistry, ServedModel
from octavo.service.adapter_hub import HUB_PREFIX
from octavo.service.names import is_adapter_id
from octavo.service.registry import Reservation
from octavo.telemetry.metrics import Metrics


class FirstAdapters:
    """Keeps their names from the start, and loads them once the engine is ready; until then the server is not.

    given: as ID=PATH each. The paths are the operator's own, so they may lead anywhere.
    """

    def __init__(self, given: Sequence[str], base: ServedModel, models: ModelRegistry, metrics: Metrics) -> None:
        """Raises ConfigError."""
        self._loader = AdapterLoader(models, metrics, AdapterFiles(Path, AdapterHub()))
        self._orders = [_order(text, base) for text in given]
        for order in self._orders:
            _keep_name(order.id, models)

    async def load(self) -> None:
        """Raises ModelLoadError for the first that cannot be loaded."""
        for order in self._orders:
            try:
                await self._loader.load_awaited(order)
            except (AdapterRefused, EngineUnavailable) as error:
                raise ModelLoadError(f"{_label(order.id)}: {error.message}") from error


def _order(text: str, base: ServedModel) -> AdapterOrder:
    id, _, reference = text.partition("=")
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
