"""A model with an adapter, as clients can ask for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

from octavo.core.adapters import Adapter
from octavo.engine.base import EngineInfo
from octavo.errors import AdapterNotFound
from octavo.prompting import ChatTemplate
from octavo.service.leases import Leases
from octavo.service.models import ServedModel


class ServedAdapter(ServedModel):
    """A model with an adapter, under the adapter's name. Engine, tokenizer and chat template are the model's.

    created: Unix time in seconds.
    """

    def __init__(self, id: str, base: ServedModel, adapter: Adapter, created: int) -> None:
        super().__init__(id, base.engine, created)
        self.adapter = adapter
        self._base = base
        self._leases = Leases()
        self._is_retired = False

    @property
    def base(self) -> ServedModel:
        return self._base

    @property
    def adapter_key(self) -> str:
        return self.adapter.key

    @property
    def info(self) -> EngineInfo:
        """The model's, with a fingerprint that tells the adapter and its scale too."""
        info = self._base.info
        return replace(info, fingerprint=_fingerprint(info.fingerprint, self.adapter))

    @property
    def chat_template(self) -> ChatTemplate:
        return self._base.chat_template

    def cache_key(self, key_id: str, user: str | None, job_id: str) -> str:
        return self._base.cache_key(key_id, user, job_id)

    @property
    def num_running(self) -> int:
        """Requests that use it."""
        return self._leases.num_held

    @property
    def is_lost(self) -> bool:
        """Whether its file was gone, or another one, when the engine had to load it again. It never comes back."""
        return self.adapter_key in self.engine.health().lost_adapters

    @contextmanager
    def in_use(self) -> Iterator[None]:
        if self._is_retired:
            raise AdapterNotFound(f"The adapter {self.id!r} has just been deleted.", param="peft")
        if self.is_lost:
            message = (
                f"The adapter {self.id!r} was lost when the engine was restarted: its file is gone or has changed."
            )
            raise AdapterNotFound(message, param="peft")
        with self._leases.lease():
            yield

    async def retire(self) -> None:
        """From the call on no request can begin to use it; returns when none uses it any more."""
        self._is_retired = True
        await self._leases.all_returned()


def _fingerprint(model: str, adapter: Adapter) -> str:
    text = "\n".join((model, adapter.digest, repr(float(adapter.scale))))
    return f"fp_{blake2b(text.encode(), digest_size=8).hexdigest()}"
