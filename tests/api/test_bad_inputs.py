import json
from typing import Any

import httpx
import pytest

from support.bad_inputs import BadInput, bad_inputs, send
from support.checks import check_error

from .server import MODEL, App, listening, scripted

CASES = bad_inputs(MODEL)


@pytest.fixture(scope="module")
def app() -> App:
    """One for all cases: none of them may reach its engine."""
    return scripted()


def test_the_table_has_each_case_once() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 250


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_bad_input_gets_its_status_and_the_one_shape(
    app: App, client: httpx.AsyncClient, case: BadInput
) -> None:
    response = await send(client, case)
    body = check_error(response, case.status, case.param)
    assert not app.engine.requests
    for problem in body.get("detail", ()):
        check_place(case.body, problem)


async def test_a_real_server_answers_them_all_in_the_same_way(app: App) -> None:
    async with listening(app) as client:
        for case in CASES:
            check_error(await send(client, case), case.status, case.param)
        assert (await client.get("/health")).status_code == 200
    assert not app.engine.requests


def check_place(body: bytes, problem: dict[str, Any]) -> None:
    """A fault is told in the steps of the client's own JSON; only the last one may lead to where there is nothing."""
    _, *path = problem["loc"]
    value = json.loads(body, parse_int=float) if path else None
    for step in path[:-1] if problem["type"] == "missing" else path:
        assert isinstance(value, dict if isinstance(step, str) else list)
        value = value[step]
