"""An engine in the test's hand, and jobs for it."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence

from octavo.core.output import FinishReason, TextEvent, TokenChunk, TokenLogprob
from octavo.core.request import Choice, GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import EngineHealth, EngineInfo, EngineState
from octavo.engine.scripted import ByteTokenizer, ScriptedEngine
from octavo.service import GenerationJob, GenerationService, ServedModel


class PuppetEngine:
    """Gives each request the chunks that the test sends, and remembers which requests were opened and closed."""

    def __init__(self, num_slots: int = 8) -> None:
        self.info = EngineInfo(context_length=100, num_slots=num_slots, chat_template=None, fingerprint="fp")
        self.tokenizer = ByteTokenizer(())
        self.num_waiting = 0
        self.opened: list[str] = []
        self.closed: list[str] = []
        self._items: defaultdict[str, asyncio.Queue[TokenChunk | Exception | None]] = defaultdict(asyncio.Queue)

    def send(
        self,
        request_id: str,
        text: str,
        finish_reason: FinishReason | None = None,
        *,
        logprobs: Sequence[float] = (),
        num_cached: int = 0,
    ) -> None:
        """A token for each byte of the text."""
        tokens = tuple(text.encode())
        told = tuple(map(TokenLogprob, tokens, logprobs))
        self._items[request_id].put_nowait(TokenChunk(tokens, finish_reason, told, num_cached=num_cached))

    def fail(self, request_id: str, error: Exception) -> None:
        self._items[request_id].put_nowait(error)

    def end_silently(self, request_id: str) -> None:
        self._items[request_id].put_nowait(None)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        self.opened.append(request.id)
        try:
            while (item := await self._items[request.id].get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            try:
                await asyncio.sleep(0)  # to close takes a turn of the loop
            finally:
                self.closed.append(request.id)

    def health(self) -> EngineHealth:
        return EngineHealth(EngineState.READY, num_waiting=self.num_waiting)

    async def close(self) -> None:
        self._items.clear()


def job_of(
    engine: PuppetEngine | ScriptedEngine,
    num_choices: int = 1,
    *,
    n: int | None = None,
    num_prompts: int = 1,
    stop: tuple[str, ...] = (),
    name: str = "r",
) -> GenerationJob:
    """num_choices for each prompt, of which the n best are asked for; all, if nothing is said."""
    n = num_choices if n is None else n
    logprobs = LogprobParams(of_output=n < num_choices)
    choices = [
        Choice(index, GenerationRequest(f"{name}{index}", (65,), 50, SamplingParams(), logprobs=logprobs), stop)
        for index in range(num_prompts * num_choices)
    ]
    return GenerationJob(name, ServedModel("m", engine, 0), tuple(choices), num_prompts, n=n, best_of=num_choices)


async def start(service: GenerationService, job: GenerationJob) -> "asyncio.Task[list[TextEvent]]":
    """Reads a job to its end; its engine requests are open when this returns."""

    async def read() -> list[TextEvent]:
        return [event async for event in service.stream(job)]

    task = asyncio.create_task(read())
    await turns(5)
    return task


async def turns(number: int) -> None:
    """Lets everything that is ready go on, that many times."""
    for _ in range(number):
        await asyncio.sleep(0)


async def abandon(*tasks: "asyncio.Task[list[TextEvent]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
