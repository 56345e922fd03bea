"""`octavo serve --content-filter`: what it finds never leaves the server."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.processes import serving

FILTERS = ("--content-filter", "br[a-z]*n", "--content-filter", "jumps")
READY = "Ctrl-C stops the server"
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module", params=["1", "4", "100"], ids="{} bytes a token".format)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    arguments = ("--scripted-piece-bytes", request.param, *FILTERS)
    folder = tmp_path_factory.mktemp("server")
    with serving(*arguments, folder=folder) as server, server.wait_for(READY).client() as client:
        yield client


def choices_of(answer: httpx.Response) -> list[Any]:
    """Of a whole answer, or of all events of a stream that ends well."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return list(answer.json()["choices"])
    *events, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert done == "[DONE]"
    return [choice for event in events for choice in json.loads(event)["choices"]]


def text_of(choice: dict[str, Any]) -> str:
    return str(choice["text"] if "text" in choice else choice.get("delta", choice.get("message")).get("content", ""))


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/completions", {"prompt": "hi", "max_tokens": 1000}), ("/v1/chat/completions", CHAT)],
    ids=["completion", "chat"],
)
def test_an_answer_ends_before_what_the_filter_finds(
    client: httpx.Client, path: str, body: dict[str, object], is_streamed: bool
) -> None:
    answer = client.post(path, json={"model": "scripted", "stream": is_streamed, **body})

    assert answer.status_code == 200
    choices = choices_of(answer)
    assert "".join(map(text_of, choices)) == "The quick "
    assert choices[-1]["finish_reason"] == "content_filter"
    assert not [word for word in ("brown", "own", "fox", "jumps", "dog") if word in answer.text]


def test_an_answer_in_which_it_finds_nothing_is_whole(client: httpx.Client) -> None:
    answer = client.post("/v1/completions", json={"model": "scripted", "prompt": '@script {"text": "A bear."}'})

    [choice] = answer.json()["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("A bear.", "stop")
