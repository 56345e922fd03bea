"""What an engine is asked to do."""

from dataclasses import dataclass

from octavo.core.channels import PLAIN, ChannelFormat
from octavo.core.grammar import ANY_TEXT, Grammar
from octavo.core.images import ImageSpan
from octavo.core.sampling import SamplingParams
from octavo.core.tools import NO_TOOLS, ToolUse


@dataclass(frozen=True, slots=True)
class LogprobParams:
    """Which log-probabilities come with the tokens.

    of_output: of every new token. of_prompt: of every prompt token but the first.
    num_top: most probable tokens that are told with each.
    """

    of_output: bool = False
    of_prompt: bool = False
    num_top: int = 0


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One sequence to generate: the tokens of its prompt, and when to stop.

    Nothing in it is optional and nothing is text: stop strings, templates and the wire are other layers' business.

    id: unique among the requests that an engine has at a time.
    prompt_tokens: at least one, at most the engine's context length; negative where images are.
    max_tokens: ≥ 0, and prompt_tokens + max_tokens ≤ the engine's context length.
    ignore_eos: go on after an end-of-generation token.
    stop_tokens: further tokens that end the sequence, also with ignore_eos.
    min_tokens: no token that would end the sequence is drawn before so many others, unless the grammar leaves no other;
        ≤ max_tokens.
    grammar: what the new tokens' text may be. Where it can go on no further, the sequence ends, also with ignore_eos.
    cache_key: computed tokens are shared only between requests with the same one.
    adapter: key of the loaded adapter with which it is computed; empty for the model as it is.
    images: where the prompt has some, in order. The engine has them: see `Engine.hold_images`.
    owner: on whose behalf, from the widest to the narrowest; slots are shared fairly at each level.
    """

    id: str
    prompt_tokens: tuple[int, ...]
    max_tokens: int
    sampling: SamplingParams
    ignore_eos: bool = False
    stop_tokens: frozenset[int] = frozenset()
    min_tokens: int = 0
    logprobs: LogprobParams = LogprobParams()
    grammar: Grammar = ANY_TEXT
    cache_key: str = ""
    adapter: str = ""
    images: tuple[ImageSpan, ...] = ()
    owner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to give back: an engine request, and what is made of its tokens.

    index: the choice's place in the answer (prompt_index * n + sample_index).
    stop: strings that end the answer. They are looked for in the text behind the request's min_tokens.
    includes_stop: whether the stop string, or the stop token's text, is part of the answer.
    echo: whether the answer begins with the prompt's text.
    channels: how the model marks its reasoning.
    tools: which calls may be in the answer, and how they are written.
    """

    index: int
    request: GenerationRequest
    stop: tuple[str, ...] = ()
    includes_stop: bool = False
    echo: bool = False
    channels: ChannelFormat = PLAIN
    tools: ToolUse = NO_TOOLS
