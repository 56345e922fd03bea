"""Adapters that come and go while the server runs."""

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from octavo.core.adapters import Adapter
from octavo.errors import AdapterRefused, EngineUnavailable
from octavo.service.adapter_files import AdapterFiles, digest_of
from octavo.service.models import ServedModel
from octavo.service.registry import ModelRegistry, Reservation
from octavo.service.served_adapter import ServedAdapter
from octavo.telemetry.metrics import Metrics

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdapterOrder:
    """An adapter to load. reference: its file's path, or hf:owner/repository[:file]."""

    id: str
    base: ServedModel
    reference: str
    scale: float = 1.0


class AdapterLoader:
    """Loads adapters from some files, serves them under their names, and frees them.

    What is begun is finished, also when nobody waits for it any more.
    """

    def __init__(self, models: ModelRegistry, metrics: Metrics, files: AdapterFiles) -> None:
        self._models = models
        self._metrics = metrics
        self._files = files
        self._tasks: set[asyncio.Task[Any]] = set()

    async def load(self, order: AdapterOrder) -> ServedAdapter:
        """Serve another adapter. Raises AdapterRefused and EngineUnavailable; then nothing has changed."""
        with self._counted(order):
            self._models.reserve(order.id, Reservation.LOADING)
            return await self._finished(self._load(order))

    async def load_awaited(self, order: AdapterOrder) -> ServedAdapter:
        """As `load`, of an adapter whose name is already kept for it."""
        with self._counted(order):
            return await self._finished(self._load(order))

    async def unload(self, id: str) -> None:
        """Serve an adapter no more, from now on, and free it when the last request that uses it is over.

        Its name is free again when this returns. Raises AdapterNotFound.
        """
        await self._finished(self._unload(self._models.withdraw(id)))

    async def _load(self, order: AdapterOrder) -> ServedAdapter:
        try:
            adapter = await self._opened(order)
            await order.base.engine.load_adapter(adapter)
        except BaseException:
            self._models.release(order.id)
            raise
        served = ServedAdapter(order.id, order.base, adapter, created=int(time.time()))
        self._models.add(served)
        _log.info("adapter %s of model %s is loaded", order.id, order.base.id)
        return served

    async def _opened(self, order: AdapterOrder) -> Adapter:
        file = await self._files.file(order.reference)
        digest = await asyncio.to_thread(digest_of, file)
        return Adapter(f"{order.id}#{secrets.token_hex(8)}", str(file), digest, order.scale)

    async def _unload(self, served: ServedAdapter) -> None:
        try:
            await served.retire()
            with suppress(EngineUnavailable):  # it is freed with the engine's process
                await served.engine.unload_adapter(served.adapter_key)
        finally:
            self._metrics.forget_model(served.id)
            self._models.release(served.id)
        _log.info("adapter %s of model %s is unloaded", served.id, served.base.id)

    async def _finished(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    @contextmanager
    def _counted(self, order: AdapterOrder) -> Iterator[None]:
        try:
            yield
        except AdapterRefused:
            self._metrics.count_adapter_load(order.base.id, is_loaded=False)
            raise
        self._metrics.count_adapter_load(order.base.id, is_loaded=True)
