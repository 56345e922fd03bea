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

    What is begun is finished, also when nobody waits for it any more. They are read and tried one at a time: each trial
    takes a process and memory of its own.
    """

    def __init__(self, models: ModelRegistry, metrics: Metrics, files: AdapterFiles) -> None:
        self._models = models
        self._metrics = metrics
        self._files = files
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def over(self, files: AdapterFiles) -> "AdapterLoader":
        """Another loader, from other files, that takes turns with this one."""
        other = AdapterLoader(self._models, self._metrics, files)
        other._turn = self._turn
        return other

    async def load(self, order: AdapterOrder) -> ServedAdapter:
        """Serve another adapter. Raises AdapterRefused, EngineError and EngineUnavailable; then nothing has changed."""
        return await self._finished(self._load(order))

    async def load_awaited(self, order: AdapterOrder) -> ServedAdapter:
        """As `load`, of an adapter whose name is already kept for it."""
        return await self._finished(self._load_reserved(order))

    async def unload(self, id: str) -> None:
        """Serve an adapter no more, from now on, and free it when the last request that uses it is over.

        Its name is free again when this returns. Raises AdapterNotFound.
        """
        await self._finished(self._unload(self._models.withdraw(id)))

    async def _load(self, order: AdapterOrder) -> ServedAdapter:
        with self._counted_refusal(order):
            self._models.reserve(order.id, Reservation.LOADING)
        return await self._load_reserved(order)

    async def _load_reserved(self, order: AdapterOrder) -> ServedAdapter:
        try:
            with self._counted_refusal(order):
                adapter = await self._tried(order)
        except BaseException:
            self._models.release(order.id)
            raise
        self._metrics.count_adapter_load(order.base.id, is_loaded=True)
        served = ServedAdapter(order.id, order.base, adapter, created=int(time.time()))
        self._models.add(served)
        _log.info("adapter %s of model %s is loaded", order.id, order.base.id)
        return served

    async def _tried(self, order: AdapterOrder) -> Adapter:
        """The engine has it then."""
        file = await self._files.file(order.reference)
        async with self._turn:
            digest = await asyncio.to_thread(digest_of, file, self._files.max_size)
            adapter = Adapter(f"{order.id}#{secrets.token_hex(8)}", str(file), digest, order.scale)
            await order.base.engine.load_adapter(adapter)
        return adapter

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
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.info("work on an adapter failed: %s", error)  # whoever still waits is told, too

    @contextmanager
    def _counted_refusal(self, order: AdapterOrder) -> Iterator[None]:
        try:
            yield
        except AdapterRefused:
            self._metrics.count_adapter_load(order.base.id, is_loaded=False)
            raise
