"""The least that streaming costs in this framework: an application that only writes events that are ready.

python -m benchmarks.bare_stream --port 8081

It answers any POST to /v1/completions with `max_tokens` events, one in each turn of the event loop, as long as Octavo's
are. What Octavo takes more than this is its own work.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

EVENT = (
    b'data: {"id":"cmpl-00000000000000000000000000000000","object":"text_completion","created":1760000000,'
    b'"model":"scripted","system_fingerprint":"fp_scripted","choices":[{"index":0,"text":"fox ","logprobs":null,'
    b'"finish_reason":null}]}\n\n'
)
DONE = b"data: [DONE]\n\n"


async def complete(request: Request) -> Response:
    """Stream as many events as the request asks for tokens."""
    fields = await request.json()
    return StreamingResponse(_events(fields["max_tokens"]), media_type="text/event-stream")


async def ready(_: Request) -> Response:
    """Answer as soon as there is a server."""
    return JSONResponse({})


async def _events(number: int) -> AsyncIterator[bytes]:
    for _ in range(number):
        yield EVENT
        await asyncio.sleep(0)
    yield DONE


def main() -> None:
    """Serve until a signal comes, with the settings that matter for speed as `octavo serve` has them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare_stream", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    routes = [Route("/v1/completions", complete, methods=["POST"]), Route("/ready", ready)]
    uvicorn.run(
        Starlette(routes=routes),
        port=parser.parse_args().port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        backlog=2048,
    )


if __name__ == "__main__":
    main()
