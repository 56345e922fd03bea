"""The table of bad inputs, against a server with a real model."""

import httpx

from support.bad_inputs import bad_inputs, send
from support.checks import check_error
from support.processes import Server

from .wire import MODEL, completion


async def test_every_bad_input_gets_its_status_and_shape_and_the_engine_does_not_notice(
    server: Server, async_client: httpx.AsyncClient
) -> None:
    cases = bad_inputs(MODEL)
    engines = [child.pid for child in server.children()]

    assert len(cases) >= 200
    for case in cases:
        check_error(await send(async_client, case), case.status, case.param)
    assert [child.pid for child in server.children()] == engines
    answer = await async_client.post("/v1/completions", json=completion("The fox", max_tokens=4))
    assert answer.status_code == 200
