"""Jinja for templates that come with model files: nobody has read them, so they are given little and bounded in all."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from types import BuiltinMethodType, CodeType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context
from jinja2.ext import Extension
from jinja2.filters import FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter, safe_range
from jinja2.tests import TESTS
from jinja2.utils import Cycler, Joiner, Namespace

from octavo.errors import TemplateError
from octavo.prompting.growth import INTERCEPTED_OPERATORS, operation_size, printf_size, replace_size, widths
from octavo.prompting.guard import RenderGuard
from octavo.prompting.metering import CONCATENATE, METER, WEIGH, metered

_SHALLOW_FILTERS = "count d default first items last length list map reject rejectattr reverse select selectattr"
_DEEP_FILTERS = "abs capitalize dictsort float groupby int lower max min sort string title trim unique upper wordcount"
"""Jinja's own filters whose result is no larger than what they are given, up to a small factor. The deep ones read all
of it, to compare it or to make text of it."""
_SHALLOW_TESTS = (
    "boolean callable defined divisibleby escaped even false filter float integer iterable mapping none number odd "
    "sameas sequence string test true undefined"
)

_STR_METHODS = (
    "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace "
    "istitle isupper lower lstrip partition removeprefix removesuffix rfind rindex rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title upper"
)
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(_STR_METHODS.split()),
    list: frozenset({"copy"}),
    tuple: frozenset(),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    bytes: frozenset(),
    int: frozenset(),
    float: frozenset({"is_integer"}),
}
"""Methods of plain values that a template may call; three more of str are replaced by bounded ones."""

_JINJA_ARGUMENTS = frozenset({"_loop_vars", "_block_vars"})
"""What compiled templates add to the arguments of a call."""

_MAX_TIME_FORMAT = 256
_MAX_JSON_INDENT = 16
_MAX_MESSAGE = 300


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """The environment of a compilation or a rendering, one at a time, since it takes longer to make than most prompts.

    It has no loader, so a template cannot reach another, and keeps nothing of a rendering: a template can change none
    of what it has.
    """

    intercepted_binops = INTERCEPTED_OPERATORS

    def __init__(self) -> None:
        self._guard = RenderGuard(0)  # of the present rendering
        # Constants are not folded: a compiled template would have done the work before any deadline.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            optimized=False,
            finalize=pass_context(lambda _context, value: self._guard.text(value)),
        )
        self._bounded_methods: dict[str, Callable[..., str]] = {
            "format": self._format,
            "join": self._join,
            "replace": self._replace,
        }
        self.globals = {
            "cycler": Cycler,
            "dict": dict,
            "joiner": Joiner,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "range": safe_range,
            "strftime_now": self._strftime_now,
        }
        self.filters = self._filters()
        self.tests = {
            name: test if name in _SHALLOW_TESTS.split() else self._bounded(test) for name, test in TESTS.items()
        }

    def compiled(self, source: str) -> CodeType:
        """Compile a template. Raises TemplateError."""
        with _as_template_error():
            return self.compile(source)

    def render(self, code: CodeType, variables: Mapping[str, object], guard: RenderGuard) -> str:
        """Render what `compiled` returned. Raises TemplateError."""
        self._guard = guard
        with _as_template_error():
            template = jinja2.Template.from_code(self, code, self.make_globals(None))
            return self._guard.join(template.generate(variables))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._guard.tick()
        if not isinstance(obj, Macro):
            self._guard.weigh(args)
            self._guard.weigh([value for name, value in kwargs.items() if name not in _JINJA_ARGUMENTS])
        return self._guard.meter(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self._guard.tick()
        self._guard.pay(operation_size(self._guard, operator, left, right))
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for plain, methods in _METHODS.items():
            if isinstance(obj, plain) and attr not in methods:
                return False
        return not isinstance(obj, type) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Jinja's hook for methods of str that need a replacement, whichever way a template gets at them."""
        if not isinstance(value, BuiltinMethodType) or not isinstance(value.__self__, str):
            return None
        bounded = self._bounded_methods.get(value.__name__)
        text = value.__self__
        # A closure: the attributes of a functools.partial would be open to the template.
        return None if bounded is None else lambda *args, **kwargs: bounded(text, *args, **kwargs)

    def concat(self, pieces: Iterable[str]) -> str:
        """Jinja's hook for joining the output of a macro or a block."""
        return self._guard.join(pieces)

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Jinja's hook for making tracebacks that show the template, which nobody would see."""
        raise

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        return super()._generate(metered(source), name, filename, defer_init)

    def _filters(self) -> dict[str, Callable[..., Any]]:
        own: dict[str, Callable[..., Any]] = {
            "format": self._printf,
            "indent": self._indent,
            "replace": self._replace,
            "safe": lambda value: self._guard.text(value),
            "tojson": self._tojson,
        }
        deep = {name: FILTERS[name] for name in _DEEP_FILTERS.split()} | own
        shallow = {name: FILTERS[name] for name in _SHALLOW_FILTERS.split()}
        return {
            **{name: self._bounded(function) for name, function in deep.items()},
            **{name: self._metered(function) for name, function in shallow.items()},
            "join": self._join_filter,
            METER: lambda value: self._guard.meter(value),
            WEIGH: self._weighed,
            CONCATENATE: lambda values: self._guard.join(map(self._guard.text, values)),
        }

    def _bounded(self, function: Any) -> Callable[..., Any]:
        @wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self._guard.weigh(args)
            self._guard.weigh(kwargs)
            return self._guard.meter(function(*args, **kwargs))

        return bounded

    def _metered(self, function: Any) -> Callable[..., Any]:
        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            return self._guard.meter(function(*args, **kwargs))

        return metered

    def _weighed(self, value: object) -> object:
        self._guard.weigh(value)
        return value

    def _join(self, separator: str, values: Iterable[str]) -> str:
        return self._guard.join(values, separator)

    def _join_filter(self, values: Iterable[object], d: object = "", attribute: str | None = None) -> str:
        if attribute is not None:
            values = (self.getitem(value, attribute) for value in values)
        return self._guard.join(map(self._guard.text, values), self._guard.text(d))

    def _replace(self, value: object, old: object, new: object, count: int | None = None) -> str:
        text, old, new = str(value), str(old), str(new)
        self._guard.pay(replace_size(text, old, new))
        return text.replace(old, new, -1 if count is None else count)

    def _printf(self, template: object, *args: object, **kwargs: object) -> str:
        self._guard.pay(printf_size(self._guard, str(template), kwargs or args))
        return str(template) % (kwargs or args)

    def _format(self, template: str, *args: object, **kwargs: object) -> str:
        return _BoundedFormatter(self, self._guard).vformat(template, args, kwargs)

    def _indent(self, text: object, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        indent: Callable[..., str] = FILTERS["indent"]
        num_columns = len(width) if isinstance(width, str) else width
        self._guard.pay((len(str(text).splitlines()) + 2) * num_columns)
        return indent(str(text), width, first, blank)

    def _tojson(
        self,
        value: object,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Hugging Face's filter: plain JSON, where Jinja's own escapes HTML."""
        num_columns = len(indent) if isinstance(indent, str) else indent or 0
        if num_columns > _MAX_JSON_INDENT:
            self._guard.refuse(f"tojson indents by at most {_MAX_JSON_INDENT}")
        encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        return self._guard.join(encoder.iterencode(value))

    def _strftime_now(self, format: str) -> str:
        if len(format) > _MAX_TIME_FORMAT:
            self._guard.refuse(f"a time format has at most {_MAX_TIME_FORMAT} characters")
        return datetime.now().strftime(format)


class GenerationTag(Extension):
    """`{% generation %}…{% endgeneration %}`, with which training code marks answers; here it only groups."""

    tags = {"generation"}  # noqa: RUF012 (Jinja declares it so)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    def __repr__(self) -> str:
        # The inherited one shows the values, whose size nobody would have measured.
        return "<Namespace>"


class _BoundedFormatter(SandboxedFormatter):
    def __init__(self, sandbox: TemplateSandbox, guard: RenderGuard) -> None:
        super().__init__(sandbox)
        self._guard = guard

    def format_field(self, value: Any, format_spec: str) -> str:
        self._guard.pay(self._guard.weigh(value) + widths(format_spec))
        formatted: str = super().format_field(value, format_spec)
        return formatted


def _raise_exception(message: object = "") -> NoReturn:
    raise TemplateError(f"the model's chat template refused the messages: {_short(message)}", param="messages")


@contextmanager
def _as_template_error() -> Iterator[None]:
    try:
        yield
    except TemplateError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise _failure(f"line {error.lineno}: {_short(error.message)}") from error
    except RecursionError as error:
        raise _failure("it nests too deeply") from error
    except Exception as error:  # a template can make Python raise whatever Python can raise
        raise _failure(_short(error)) from error


def _failure(reason: str) -> TemplateError:
    return TemplateError(f"the model's chat template failed: {reason}", param="messages")


def _short(message: object) -> str:
    text = " ".join(str(message).split())
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE] + "…"
