"""One client's request, ready for the engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from octavo.core.caller import ANYONE, Caller
from octavo.core.fair_queue import Owner
from octavo.core.request import Choice
from octavo.service.models import ServedModel
from octavo.service.progress import JobProgress


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """All candidates of one request.

    choices: best_of for each prompt, ordered by index (prompt_index * best_of + sample_index); may be made as they are
        asked for.
    num_prompt_tokens: of all prompts; a prompt shared by several samples counts once.
    n: how many of a prompt's best_of candidates are given back. Where they are fewer, every choice's request asks for
        the log-probabilities of its output.
    caller: who sent it. user: the end user on whose behalf the client asks, where it says so.
    progress: written while it runs.
    """

    id: str
    model: ServedModel
    choices: Sequence[Choice]
    num_prompt_tokens: int
    n: int
    best_of: int
    caller: Caller = ANYONE
    user: str | None = None
    progress: JobProgress = field(default_factory=JobProgress, compare=False)

    @property
    def owner(self) -> Owner:
        """Of its choices' requests."""
        return self.choices[0].request.owner


def sample_seed(seed: int, prompt_index: int, sample_index: int) -> int:
    """The seed of one sample's own random stream, 0 ≤ seed < 2**64; the request's seed may be any integer."""
    key = f"{seed}/{prompt_index}/{sample_index}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
