"""What is served, by name."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from octavo.core.limits import Limits
from octavo.errors import AdapterNotFound, AdapterRefused, EngineUnavailable, InvalidRequest, ModelNotFound
from octavo.service.models import ServedModel
from octavo.service.served_adapter import ServedAdapter


class Reservation(StrEnum):
    """Why a name is taken under which nothing is served. AWAITED: by an adapter with which the server was started."""

    AWAITED = "is being loaded"
    LOADING = "is being loaded by another request"
    UNLOADING = "is being deleted; requests that use it still run"


class ModelRegistry:
    """The served models, in the order in which they were given, and their adapters. All ids differ.

    An adapter that its engine has lost is served no more.
    """

    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        self._limits = limits
        self._models = {model.id: model for model in models}
        self._adapters: dict[str, ServedAdapter] = {}
        self._reserved: dict[str, Reservation] = {}
        assert len(self._models) == len(models), "two models are served under one name"

    def __iter__(self) -> Iterator[ServedModel]:
        """The models, without adapters."""
        return iter(self._models.values())

    @property
    def adapters(self) -> Sequence[ServedAdapter]:
        return tuple(adapter for adapter in self._adapters.values() if not adapter.is_lost)

    @property
    def awaited(self) -> Sequence[str]:
        """Ids of adapters with which the server was started and which it does not serve yet."""
        return [id for id, reason in self._reserved.items() if reason is Reservation.AWAITED]

    def get(self, name: str, peft: str | None = None) -> ServedModel:
        """What `name` names: a model, an adapter, or both as model:adapter. An id wins over that syntax.

        peft: id of an adapter of the model that is named.
        Raises ModelNotFound, AdapterNotFound, InvalidRequest where two adapters are named, and EngineUnavailable for an
        adapter that is awaited.
        """
        served = self._models.get(name) or self._adapter(name) or next(self._read_as_pair(name), None)
        if served is None:
            names = ", ".join((*self._models, *_ids(self.adapters)))
            raise ModelNotFound(f"The model {name!r} is not served here. Served: {names}.", param="model")
        return served if peft is None else self._with_adapter(served, peft)

    def model(self, id: str | None) -> ServedModel:
        """The model of that id, the first one for None; never an adapter. Raises ModelNotFound."""
        if id is None:
            return next(iter(self))
        if id not in self._models:
            raise ModelNotFound(f"There is no model {id!r} here, only {', '.join(self._models)}.", param="model")
        return self._models[id]

    def reserve(self, id: str, reason: Reservation) -> None:
        """Keep a name for an adapter, until it is added or the name released.

        Raises AdapterRefused if it is taken, or if there are as many adapters as there may be.
        """
        self._adapters = {adapter.id: adapter for adapter in self.adapters}
        if id in self._models:
            raise AdapterRefused(f"{id!r} is the name of a served model.", param="id")
        if id in self._adapters:
            raise AdapterRefused(f"The adapter {id!r} is already served; delete it first.", param="id")
        if id in self._reserved:
            raise AdapterRefused(f"The adapter {id!r} {self._reserved[id]}.", param="id")
        if len(self._adapters) + len(self._reserved) >= self._limits.max_adapters:
            raise AdapterRefused(f"This server has at most {self._limits.max_adapters} adapters at a time.")
        self._reserved[id] = reason

    def release(self, id: str) -> None:
        """Give a reserved name free."""
        del self._reserved[id]

    def add(self, adapter: ServedAdapter) -> None:
        """Serve an adapter under the name that was kept for it."""
        self.release(adapter.id)
        self._adapters[adapter.id] = adapter

    def withdraw(self, id: str) -> ServedAdapter:
        """Serve an adapter no more; its name stays taken until it is released. Raises AdapterNotFound."""
        if self._served(id) is None:
            raise AdapterNotFound(f"There is no adapter {id!r}. {_listing(_ids(self.adapters))}")
        self._reserved[id] = Reservation.UNLOADING
        return self._adapters.pop(id)

    def _adapter(self, id: str) -> ServedAdapter | None:
        if self._reserved.get(id) is Reservation.AWAITED:
            raise EngineUnavailable(f"The adapter {id!r} is still being loaded.")
        return self._served(id)

    def _served(self, id: str) -> ServedAdapter | None:
        adapter = self._adapters.get(id)
        return None if adapter is None or adapter.is_lost else adapter

    def _read_as_pair(self, name: str) -> Iterator[ServedAdapter]:
        """Every reading of the name as model:adapter; either may have colons of its own."""
        for model in self:
            if name.startswith(f"{model.id}:"):
                adapter = self._adapter(name[len(model.id) + 1 :])
                if adapter is not None and adapter.base is model:
                    yield adapter

    def _with_adapter(self, served: ServedModel, peft: str) -> ServedModel:
        adapter = self._adapter(peft)
        if adapter is None or adapter.base is not served.base:
            ids = _ids([each for each in self.adapters if each.base is served.base])
            message = f"The model {served.base.id!r} has no adapter {peft!r}. {_listing(ids)}"
            raise AdapterNotFound(message, param="peft")
        if served not in (served.base, adapter):
            message = f"model names the adapter {served.id!r}, and peft another one, {peft!r}; name only one."
            raise InvalidRequest(message, param="peft")
        return adapter


def _ids(adapters: Sequence[ServedAdapter]) -> Sequence[str]:
    return [adapter.id for adapter in adapters]


def _listing(ids: Sequence[str]) -> str:
    return f"There are: {', '.join(ids)}." if ids else "There are none."
