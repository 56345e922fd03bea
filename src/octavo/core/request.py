"""What an engine is asked to do."""

from dataclasses import dataclass

from octavo.core.sampling import SamplingParams


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate: the tokens of its prompt, and when to stop.

    Nothing in it is optional and nothing is text: stop strings, templates and the wire are other layers' business.

    id: unique among the requests that an engine has at a time.
    prompt_tokens: at least one, at most the engine's context length.
    max_tokens: ≥ 0, and prompt_tokens + max_tokens ≤ the engine's context length.
    ignore_eos: go on after an end-of-generation token.
    """

    id: str
    prompt_tokens: tuple[int, ...]
    max_tokens: int
    sampling: SamplingParams
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to give back: an engine request, and what is watched for in its text.

    index: the choice's place in the answer (prompt_index * n + sample_index).
    stop: strings that end the answer and are not part of it.
    """

    index: int
    request: GenerationRequest
    stop: tuple[str, ...] = ()
