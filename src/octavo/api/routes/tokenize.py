"""POST /v1/tokenize and /v1/detokenize."""

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.context import ApiContext
from octavo.api.convert import detokenize, text_tokens
from octavo.api.openapi import BODY_ERRORS, documented, error_responses
from octavo.api.record import record_of
from octavo.api.routes.reading import read_request
from octavo.api.schemas.tokenize import DetokenizeRequest, DetokenizeResponse, TokenizeRequest, TokenizeResponse


def add_tokenize(app: FastAPI, context: ApiContext) -> None:
    @app.post(
        "/v1/tokenize",
        summary="Turn a text into token ids",
        response_model=TokenizeResponse,
        responses=error_responses(404, 503, *BODY_ERRORS),
        openapi_extra=documented(TokenizeRequest),
    )
    async def create_tokens(request: Request) -> Response:
        wire = await read_request(request, TokenizeRequest, context)
        model = context.models.get(wire.model)
        record_of(request).model = model.id
        tokens = await text_tokens(wire, model)
        # Encoded as it is: the validation of a response looks at each of a million tokens.
        body = msgspec.json.encode({"tokens": tokens, "count": len(tokens)})
        return Response(body, media_type="application/json")

    @app.post(
        "/v1/detokenize",
        summary="Turn token ids into text",
        responses=error_responses(404, 503, *BODY_ERRORS),
        openapi_extra=documented(DetokenizeRequest),
    )
    async def create_text(request: Request) -> DetokenizeResponse:
        wire = await read_request(request, DetokenizeRequest, context)
        model = context.models.get(wire.model)
        record_of(request).model = model.id
        return DetokenizeResponse(text=detokenize(wire.tokens, model.tokenizer.vocabulary))
