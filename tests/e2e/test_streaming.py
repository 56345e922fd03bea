"""Streamed and whole answers of the real model."""

import random
from itertools import accumulate

import httpx
import pytest

from .wire import Wire, ask, ask_streamed, completion, deltas, text_of

NUM_STOPS = 30
PROMPTS = ("The fox", "Repeat: 🦊🐻🐼🦊🐻🐼🦊", "東京は日本の", "你好，世界！你好，", "print('é", "A")
SAMPLED: Wire = {"temperature": 0.8, "seed": 7, "max_tokens": 12}


def streamed_text(client: httpx.Client, body: Wire) -> str:
    return "".join(deltas(ask_streamed(client, body)))


def cut(text: str, *stops: str) -> str:
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("temperature", [0, 0.8])
def test_a_streamed_answer_is_the_whole_one(client: httpx.Client, prompt: str, temperature: float) -> None:
    body = completion(prompt, max_tokens=16, temperature=temperature, seed=1)
    whole, events = ask(client, body), ask_streamed(client, body)

    assert "".join(deltas(events)) == text_of(whole)
    finish_reasons = [event["choices"][0]["finish_reason"] for event in events]
    assert finish_reasons == [None] * (len(events) - 1) + [whole["choices"][0]["finish_reason"]]


def test_samples_are_streamed_as_they_are_given_whole(client: httpx.Client) -> None:
    # Greedy: on some processors the last bits of a batch depend on who shares it, which a draw might show.
    body = completion("Once upon a time", n=3, max_tokens=12)
    whole, events = ask(client, body), ask_streamed(client, body)

    texts = [choice["text"] for choice in whole["choices"]]
    assert ["".join(deltas(events, index)) for index in range(3)] == texts


def test_samples_of_a_prompt_differ(client: httpx.Client) -> None:
    choices = ask(client, completion("Once upon a time", n=3, **SAMPLED))["choices"]

    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert len({choice["text"] for choice in choices}) == 3


@pytest.mark.slow
def test_a_stop_string_that_begins_inside_a_token_cuts_both_forms_in_the_same_place(client: httpx.Client) -> None:
    body = completion("Once upon a time", max_tokens=12)
    pieces = deltas(ask_streamed(client, body))
    text = "".join(pieces)
    starts = set(accumulate(map(len, pieces)))
    inside = [place for place in range(1, len(text)) if place not in starts]
    stops = [text[place : place + size] for place in inside for size in range(2, 6) if place + size <= len(text)]

    assert len(text) >= 40
    assert len(stops) >= NUM_STOPS
    for stop in random.Random(0).sample(stops, NUM_STOPS):
        whole = ask(client, {**body, "stop": stop})
        assert text_of(whole) == cut(text, stop)
        assert whole["choices"][0]["finish_reason"] == "stop"
        assert streamed_text(client, {**body, "stop": [stop]}) == cut(text, stop)


def test_stop_strings_cut_each_sample_in_the_same_place_in_both_forms(client: httpx.Client) -> None:
    body = completion("Once upon a time", n=3, max_tokens=12)
    texts = [choice["text"] for choice in ask(client, body)["choices"]]
    stops = [text[11:14] for text in texts]
    whole, events = ask(client, {**body, "stop": stops}), ask_streamed(client, {**body, "stop": stops})

    assert [choice["text"] for choice in whole["choices"]] == [cut(text, *stops) for text in texts]
    assert ["".join(deltas(events, index)) for index in range(3)] == [cut(text, *stops) for text in texts]


def test_a_seeded_answer_comes_again(client: httpx.Client) -> None:
    body = completion("Once upon a time", **SAMPLED)

    assert text_of(ask(client, body)) == text_of(ask(client, body))
    assert text_of(ask(client, body)) != text_of(ask(client, {**body, "seed": 8}))
