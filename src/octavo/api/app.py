"""The HTTP application."""

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from octavo.api.auth import Authenticate
from octavo.api.browser_guard import BrowserGuard
from octavo.api.context import ApiContext
from octavo.api.errors import MethodNotAllowed, PathNotFound, error_response, handle_octavo_error, internal_error
from octavo.api.limits import BodyLimits
from octavo.api.observe import Observe
from octavo.api.openapi import openapi_of
from octavo.api.rate_limits import RateLimits
from octavo.api.routes.adapters import add_adapters
from octavo.api.routes.chat import add_chat
from octavo.api.routes.completions import add_completions
from octavo.api.routes.health import add_health
from octavo.api.routes.logs import add_logs
from octavo.api.routes.metrics import add_metrics
from octavo.api.routes.models import add_models
from octavo.api.routes.pages import add_pages
from octavo.api.routes.tokenize import add_tokenize
from octavo.constraints import GrammarMaker
from octavo.core.browser_access import AllowedHosts, AllowedOrigins
from octavo.core.keyring import Keyring
from octavo.core.limits import Limits
from octavo.errors import OctavoError
from octavo.service import (
    AdapterLoader,
    GenerationService,
    ImageSource,
    ModelRegistry,
    RateLimiter,
)
from octavo.store.prompt_log import PromptLog
from octavo.telemetry import Trace, no_trace
from octavo.telemetry.metrics import Metrics

_DESCRIPTION = "Text generation with OctoAI's and OpenAI's API."


def create_app(
    *,
    models: ModelRegistry,
    adapters: AdapterLoader,
    service: GenerationService,
    images: ImageSource,
    metrics: Metrics,
    limits: Limits,
    keyring: Keyring,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    limiter: RateLimiter,
    prompt_log: PromptLog | None,
    is_strict: bool,
    trace: Trace = no_trace,
) -> FastAPI:
    """The application; it starts and stops nothing. prompt_log: None where there is none.
    is_strict: unknown fields are errors."""
    grammars = GrammarMaker(limits.max_compile_time)
    bodies = ThreadPoolExecutor(1, "bodies")
    context = ApiContext(models, adapters, service, images, metrics, limits, grammars, prompt_log, is_strict, bodies)
    app = FastAPI(
        title="Octavo",
        version=version("octavo"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # the framework's own tells what clients send
    )
    for add_routes in (add_completions, add_chat, add_models, add_adapters, add_tokenize, add_health, add_metrics):
        add_routes(app, context)
    add_logs(app, context)
    add_pages(app)
    app.openapi = openapi_of(app, limits, needs_key=not keyring.is_open)  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
    app.add_exception_handler(OctavoError, handle_octavo_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_middleware(BodyLimits, max_body=limits.max_body)
    app.add_middleware(RateLimits, limiter=limiter)
    app.add_middleware(Authenticate, keyring=keyring)
    app.add_middleware(BrowserGuard, hosts=hosts, origins=origins)
    app.add_middleware(Observe, metrics=metrics, trace=trace)
    return app


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    """The framework's own errors: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return error_response(PathNotFound("Nothing is served at this path; see /docs."))
    if error.status_code == 405:
        allow = ", ".join(sorted(_methods_at(request)))
        return error_response(MethodNotAllowed(f"This path answers to {allow}, not to {request.method}.", allow=allow))
    return error_response(internal_error())


def _methods_at(request: Request) -> set[str]:
    """Of all routes at the request's path; the framework names only those of the first."""
    routes = (route for route in request.app.routes if isinstance(route, Route))
    return {
        method
        for route in routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
