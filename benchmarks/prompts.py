"""Prompts of an exact length in tokens, different from each other, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from benchmarks.http_client import Server, fetch_json

# Short, frequent English words: one token each in nearly every vocabulary.
_WORDS_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work night point home water room mother area money story "
    "fact month lot right study book eye job word business issue side kind head house service friend father power "
    "hour game line end member law car city name team minute idea body back face others level office door health "
    "person art war history party result change morning reason research girl guy moment air teacher force education "
    "foot boy age policy music market sense plan sound paper space field river table road tree land sea light snow "
    "red green black white small large early young great good new old high long little next best free able real"
)
WORDS = _WORDS_TEXT.split()
MAX_ADJUSTMENTS = 20

CountTokens = Callable[[str], Awaitable[int]]


async def find_token_counter(server: Server, model: str, *, add_special_tokens: bool) -> CountTokens | None:
    """How this server counts a text's tokens: Octavo's /v1/tokenize, llama-server's or vLLM's /tokenize, or None."""

    async def count_octavo(text: str) -> int:
        body = {"model": model, "text": text, "add_special_tokens": add_special_tokens}
        return await _count(server, "/v1/tokenize", body)

    async def count_peer(text: str) -> int:
        # llama-server reads content and add_special, vLLM the others; each passes over what it does not know.
        special = {"add_special": add_special_tokens, "add_special_tokens": add_special_tokens}
        return await _count(server, "/tokenize", {"model": model, "content": text, "prompt": text, **special})

    for candidate in (count_octavo, count_peer):
        try:
            await candidate("one")
        except LookupError:
            continue
        return candidate
    return None


async def _count(server: Server, path: str, body: dict[str, object]) -> int:
    status, answer = await fetch_json(server, "POST", path, body)
    if status != 200:
        raise LookupError(f"{path} answered {status}")
    return len(answer["tokens"])


async def make_text(rng: random.Random, num_tokens: int, count: CountTokens | None) -> str:
    """Random words of num_tokens tokens by the server's count, or num_tokens words where it has none."""
    words = rng.choices(WORDS, k=num_tokens)
    if count is None:
        return " ".join(words)
    for _ in range(MAX_ADJUSTMENTS):
        difference = num_tokens - await count(" ".join(words))
        if difference == 0:
            return " ".join(words)
        # A word may be several tokens, so a text that is too long by two loses one word first.
        words = words + rng.choices(WORDS, k=difference) if difference > 0 else words[: difference // 2]
    raise ValueError(f"no text of exactly {num_tokens} tokens was found in {MAX_ADJUSTMENTS} tries")


async def make_prompts(
    seed: int, num_prompts: int, num_tokens: int, num_shared_tokens: int, count: CountTokens | None
) -> list[str]:
    """Prompts of num_shared_tokens the same for all, then num_tokens of their own."""
    rng = random.Random(seed)
    # One text to start from: the count of a joined text is exact only when it was counted joined.
    shared = await make_text(rng, num_shared_tokens, count) if num_shared_tokens else ""

    async def count_behind_shared(text: str) -> int:
        assert count is not None
        return await count(f"{shared} {text}") - num_shared_tokens

    own_count = count_behind_shared if count is not None and shared else count
    texts = [await make_text(rng, num_tokens, own_count) for _ in range(num_prompts)]
    return [f"{shared} {text}" if shared else text for text in texts]
