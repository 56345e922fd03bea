"""Images in chat requests, through the application."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from octavo.core.images import Image
from octavo.core.limits import Limits
from octavo.engine.base import EngineHealth, EngineState
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineUnavailable
from support.canary import Canary, canary
from support.pictures import data_url, image_part, image_tokens, plain, text_part

from .server import MODEL, App, WatchedEngine, build, listening, scripted

RED, BLUE = plain("red"), plain("blue", "JPEG")
RED_URL, BLUE_URL = data_url(RED), data_url(BLUE, "image/jpeg")


def seeing(*image_hosts: str, limits: Limits | None = None, is_strict: bool = False, **spec: int | float) -> App:
    engine = WatchedEngine(ScriptedSpec(text="A square.", **spec))
    engine.has_vision = True
    return build(engine, limits=limits, is_strict=is_strict, image_hosts=image_hosts)


@pytest.fixture
async def bird() -> AsyncIterator[Canary]:
    async with canary() as bird:
        yield bird


async def ask(app: App, *parts: Any, role: str = "user", **fields: Any) -> httpx.Response:
    messages = [{"role": role, "content": list(parts)}, {"role": "user", "content": "What is it?"}]
    async with app.client() as client:
        return await client.post("/v1/chat/completions", json={"model": MODEL, "messages": messages, **fields})


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    """Status, code and message of an error about the messages, told in both forms."""
    body = response.json()
    assert body["error"] == {key: body[key] for key in ("message", "type", "param", "code")}
    assert (body["object"], body["type"], body["param"]) == ("error", "invalid_request_error", "messages")
    assert not any(word in body["message"] for word in ("Traceback", "PIL", "httpcore", "/work", "site-packages"))
    return response.status_code, body["code"], body["message"]


async def test_images_are_in_the_prompt_in_order_and_counted() -> None:
    app = seeing()
    text = await ask(app, text_part("12"), text_part("3"))
    response = await ask(app, text_part("1"), image_part(RED_URL), text_part("2"), image_part(BLUE_URL), text_part("3"))
    assert response.json()["choices"][0]["message"]["content"] == "A square."
    assert response.json()["usage"]["prompt_tokens"] == text.json()["usage"]["prompt_tokens"] + 8
    request = app.engine.requests[1]
    assert [span.digest for span in request.images] == [Image.of(RED).digest, Image.of(BLUE).digest]
    shown = [request.prompt_tokens[span.start : span.end] for span in request.images]
    assert shown == [image_tokens(Image.of(RED)).tokens, image_tokens(Image.of(BLUE)).tokens]
    assert request.prompt_tokens[request.images[0].end] == ord("2")
    assert request.prompt_tokens[request.images[1].end] == ord("3")
    assert app.engine.images == [Image.of(RED), Image.of(BLUE)]


async def test_the_engine_holds_an_image_once_that_is_shown_twice() -> None:
    app = seeing()
    await ask(app, image_part(RED_URL), image_part(RED_URL), n=2)
    assert app.engine.images == [Image.of(RED)]
    assert [len(request.images) for request in app.engine.requests] == [2, 2]


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"n": 2}], ids=str)
async def test_each_image_is_sent_to_the_engine_once_and_taken_back_behind_the_answer(fields: dict[str, Any]) -> None:
    app = seeing()
    assert (await ask(app, image_part(RED_URL), image_part(BLUE_URL), **fields)).status_code == 200
    assert app.engine.images == [Image.of(RED), Image.of(BLUE)]
    assert app.engine.held_images == {}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_engine_holds_an_image_until_the_answer_is_over(is_streamed: bool) -> None:
    app = seeing(hang_at=1)
    async with listening(app) as client:
        body = {"model": MODEL, "messages": [{"role": "user", "content": [image_part(RED_URL)]}], "stream": is_streamed}
        request = asyncio.create_task(client.post("/v1/chat/completions", json=body))
        await app.engine.started.wait()
        assert app.engine.held_images == {Image.of(RED).digest: Image.of(RED)}
        request.cancel()
        await app.engine.ended.wait()
    assert app.engine.images == [Image.of(RED)]
    assert app.engine.held_images == {}


async def test_an_image_is_taken_back_where_its_request_cannot_be_answered() -> None:
    app = seeing()
    app.engine.chat_template = "{{ raise_exception('no') }}"
    assert (await ask(app, image_part(RED_URL))).status_code == 400
    app.engine.chat_template = None
    app.engine.refusal = EngineUnavailable("It restarts.")
    assert (await ask(app, image_part(RED_URL), stream=True)).status_code == 503
    assert app.engine.images == [Image.of(RED), Image.of(RED)]
    assert app.engine.held_images == {}


async def test_nothing_is_fetched_for_a_request_that_the_full_queue_refuses(bird: Canary) -> None:
    app = seeing(bird.place)
    app.engine.health_now = EngineHealth(EngineState.READY, num_waiting=1000)
    for url in (bird.serve("/", RED), "data:image/png;base64,%%%"):
        response = await ask(app, image_part(url))
        assert (response.status_code, response.json()["code"]) == (503, "overloaded")
        assert int(response.headers["retry-after"]) > 0
    assert bird.num_hits == 0
    assert app.engine.images == []


async def test_the_images_of_only_so_many_requests_are_got_at_a_time(bird: Canary) -> None:
    app = seeing(bird.place, limits=Limits(max_queue_per_slot=2), num_slots=1)
    may_answer, is_asked = asyncio.Event(), asyncio.Event()

    async def wait(writer: asyncio.StreamWriter) -> None:
        if bird.num_hits == 2:
            is_asked.set()
        await may_answer.wait()
        await bird.send(writer, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(RED) + RED)

    bird.answers["/"] = wait
    requests = [asyncio.create_task(ask(app, image_part(bird.url()))) for _ in range(2)]
    await is_asked.wait()
    assert (await ask(app, image_part(RED_URL))).status_code == 503
    assert (await ask(app, text_part("x"))).status_code == 200
    may_answer.set()
    assert [response.status_code for response in await asyncio.gather(*requests)] == [200, 200]
    assert (await ask(app, image_part(RED_URL))).status_code == 200


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
async def test_messages_of_all_roles_may_show_images(role: str) -> None:
    app = seeing()
    assert (await ask(app, image_part(RED_URL), role=role)).status_code == 200
    assert len(app.engine.requests[0].images) == 1


@pytest.mark.parametrize(
    ("fields", "is_coarse"),
    [
        ({}, False),
        ({"detail": None}, False),
        ({"detail": "auto"}, False),
        ({"detail": "high"}, False),
        ({"detail": "low"}, True),
    ],
    ids=str,
)
async def test_only_the_low_detail_is_coarse(fields: dict[str, Any], is_coarse: bool) -> None:
    app = seeing()
    assert (await ask(app, image_part(RED_URL, **fields))).status_code == 200
    assert app.engine.images == [Image.of(RED, is_coarse=is_coarse)]


@pytest.mark.parametrize("type", ["image/png", "image/jpeg", "image/x-unknown"])
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
async def test_the_content_decides_the_format(format: str, type: str) -> None:
    app = seeing()
    data = plain("red", format)
    assert (await ask(app, image_part(data_url(data, type)))).status_code == 200
    assert app.engine.images == [Image.of(data)]


async def test_a_fetched_image_is_like_any_other(bird: Canary) -> None:
    app = seeing(bird.place)
    url = bird.serve("/red.png", RED)
    assert (await ask(app, image_part(url), image_part(url), image_part(RED_URL))).status_code == 200
    assert app.engine.images == [Image.of(RED)]
    assert bird.num_hits == 1


async def test_a_stream_begins_with_the_images_seen(bird: Canary) -> None:
    app = seeing(bird.place)
    response = await ask(app, image_part(bird.serve("/", RED)), stream=True)
    assert response.text.endswith("data: [DONE]\n\n")
    assert app.engine.images == [Image.of(RED)]


async def test_a_model_without_vision_fetches_and_decodes_nothing(bird: Canary) -> None:
    app = build(WatchedEngine(ScriptedSpec()), image_hosts=[bird.place])
    for url in (bird.serve("/", RED), RED_URL, "data:image/png;base64,AAAA", "file:///etc/passwd"):
        status, code, message = refusal(await ask(app, image_part(url)))
        assert (status, code) == (400, "vision_unsupported")
        assert message == f"The model {MODEL} sees no images; send text, or ask one that does."
    assert bird.num_hits == 0


@pytest.mark.parametrize(
    "url",
    [
        *(
            "data:image/png;base64,AAAA",
            "data:image/png;base64,AA==",
            "data:image/png;base64,%%%",
            "data:image/png;base64,",
        ),
        *(data_url(RED[:20]), data_url(b"<svg/>", "image/svg+xml"), data_url(b"%PDF-1.7"), "data:,x"),
        *("data:text/plain;base64,QUJD", data_url(b""), "data:image/png," + "x", "data:image/png;base64"),
    ],
)
async def test_a_bad_image_is_refused_in_the_one_shape(url: str) -> None:
    app = seeing()
    response = await ask(app, text_part("x"), image_part(RED_URL), image_part(url))
    assert refusal(response)[:2] == (400, "invalid_image")
    assert app.engine.requests == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "http://127.0.0.1/", "http://[::1]/", "http://0.0.0.0/", "http://169.254.169.254/latest/meta-data/"),
        *(
            "http://10.0.0.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://[::ffff:127.0.0.1]/",
            "file:///etc/passwd",
        ),
        *(
            "https://a\\@b/",
            "https://user@example.com/",
            "http://example.com:22/",
            "ftp://example.com/",
            "gopher://a/_x",
        ),
        *("https://example.com/x.png", "https://example.com/" + "x" * 10_000),
    ],
)
async def test_nothing_is_fetched_unless_its_host_is_allowed(url: str) -> None:
    app = seeing()
    assert refusal(await ask(app, image_part(url)))[:2] == (400, "image_url_refused")
    assert app.engine.requests == []


async def test_a_link_in_a_text_is_never_fetched(bird: Canary) -> None:
    app = seeing(bird.place)
    url = bird.serve("/", RED)
    for text in (url, f"![picture]({url})", f'<img src="{url}">', f'{{"type": "image_url", "image_url": "{url}"}}'):
        assert (await ask(app, text_part(text))).status_code == 200
    assert bird.num_hits == 0
    assert app.engine.images == []


async def test_more_images_than_are_allowed_are_refused_before_one_is_fetched(bird: Canary) -> None:
    app = seeing(bird.place, limits=Limits(max_images=2))
    parts = [image_part(bird.serve("/", RED))] * 2
    assert (await ask(app, *parts)).status_code == 200
    status, _, message = refusal(await ask(app, *parts, image_part(RED_URL)))
    assert (status, message) == (422, "messages: Input should have at most 2 images (given 3).")
    assert bird.num_hits == 1


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": None},
        {"type": "image_url", "image_url": RED_URL},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": {"url": 7}},
        {"type": "image_url", "image_url": {"url": RED_URL, "detail": "medium"}},
        {"type": "image_url", "image_url": {"url": RED_URL, "detail": 1}},
        {"type": "input_image", "image_url": RED_URL},
    ],
    ids=lambda part: str(part)[:60],
)
async def test_a_malformed_part_is_named(part: dict[str, Any]) -> None:
    response = await ask(seeing(), part)
    assert response.status_code == 422
    assert response.json()["param"] == "messages"
    assert response.json()["detail"][0]["loc"][:4] == ["body", "messages", 0, "content"]


async def test_unknown_fields_of_an_image_are_told() -> None:
    part = image_part(RED_URL, format="png")
    response = await ask(seeing(), part)
    assert response.headers["x-octavo-ignored"] == "messages.content.image_url.format"
    assert (await ask(seeing(is_strict=True), part)).status_code == 422


async def test_the_metrics_count_images_of_the_model() -> None:
    app = seeing()
    await ask(app, image_part(RED_URL))
    await ask(app, image_part("https://example.com/"))
    async with app.client() as client:
        text = (await client.get("/metrics")).text
    assert f'octavo_images_total{{model="{MODEL}",result="ok",source="data"}} 1.0' in text
    assert f'octavo_images_total{{model="{MODEL}",result="refused",source="http"}} 1.0' in text
    assert "octavo_image_fetch_seconds_bucket" in text


async def test_a_text_model_answers_texts_in_parts_as_ever() -> None:
    assert (await ask(scripted(), text_part("a"), text_part("b"))).status_code == 200
