"""Stop strings and log-probabilities."""

import pytest

from conformance.ask import CHAT, COMPLETIONS, Wire, fold, told
from conformance.checks import conforms
from conformance.models import saying
from conformance.served import served

LETTERS = ("AB", "CD", "EF", "GH", "IJ")


@conforms("logprobs", "stop", rows=(14,))
@pytest.mark.parametrize(
    ("stop", "text"), [("CD", "AB"), ("DEF", "ABC"), ("F", "ABCDE"), ("AB", ""), ("B", "A")], ids=repr
)
async def test_entries_end_where_the_text_ends(stop: str, text: str) -> None:
    async with served(saying(*LETTERS)) as server:
        completion = await server.told(COMPLETIONS, stop=stop, logprobs=1)
        chat = await server.told(CHAT, stop=stop, logprobs=True)
    for each in (completion, chat):
        assert each.text == text
        assert each.entry_bytes == text.encode()
        assert len(each.entries) == -(-len(text) // 2)
    assert len(completion.logprobs.get("tokens", [])) == len(completion.entries)


@conforms("logprobs", "stop", "stream", rows=(16,))
async def test_each_of_several_tokens_held_back_has_its_own_entry() -> None:
    pieces = ("x", "DE", "FG", "HI", "yz")
    async with served(saying(*pieces)) as server:
        answer = fold(await server.chunks(COMPLETIONS, stop="DEFGHIJ", logprobs=1))
    assert answer.text == "xDEFGHIyz"
    assert answer.tokens[:5] == list(pieces)
    assert answer.logprobs["tokens"][:5] == list(pieces)
    assert len(answer.logprobs["token_logprobs"]) == len(answer.entries)


@conforms("logprobs", "stream", rows=(17,))
@pytest.mark.parametrize(
    "ending", [{}, {"stop": "EF"}, {"stop": "F"}, {"max_tokens": 3}, {"ignore_eos": True, "max_tokens": 9}], ids=str
)
async def test_the_entries_are_the_same_streamed_or_not_and_the_last_one_is_there(ending: Wire) -> None:
    async with served(saying(*LETTERS)) as server:
        for path, wanted in ((COMPLETIONS, {"logprobs": 3}), (CHAT, {"logprobs": True, "top_logprobs": 3})):
            whole = await server.answer(path, **wanted, **ending)
            assert fold(await server.chunks(path, **wanted, **ending)) == told(whole)
            if "stop" not in ending:
                assert len(told(whole).entries) == whole["usage"]["completion_tokens"]
            assert told(whole).entry_bytes == told(whole).text.encode()
