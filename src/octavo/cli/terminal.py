"""Standard input, output and error of a command that talks to a person or to a pipe."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from octavo.errors import ConfigError

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_DIM, _NORMAL = "\x1b[2m", "\x1b[0m"


def read_text(argument: str | None, *, noun: str) -> str:
    """The argument, or standard input without the one newline that ends its last line. Raises ConfigError.

    noun: what the text is called in an error.
    """
    if argument is not None:
        return argument
    if sys.stdin.isatty():
        raise ConfigError(f"Give a {noun} as an argument or on standard input.")
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"The {noun} on standard input is not UTF-8 (byte {error.start}).") from error


def typed_lines(prompt: str) -> Iterator[str]:
    """What a person types, until Ctrl-D. Ctrl-C gives up the line that stands there."""
    with suppress(ImportError):  # not everywhere; with it lines can be edited and are remembered
        import readline  # noqa: F401
    while True:
        try:
            line = _typed_line(prompt)
        except EOFError:
            write_aside("\n")
            return
        except KeyboardInterrupt:
            write_aside("\n")
        except UnicodeDecodeError:
            write_error("This line is not UTF-8.")
        else:
            yield line


def write_text(text: str) -> None:
    """To standard output at once: as it is into a pipe or a file, and for a terminal as `shown` has it."""
    _write(sys.stdout, shown(text) if sys.stdout.isatty() else text)


@contextmanager
def until_pipe_breaks() -> Iterator[None]:
    """The block ends without a word when who reads its standard output has seen enough, as `head` soon has."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered would fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_aside(text: str) -> None:
    """To standard error at once, dimmed where that is a terminal: what is no part of the answer."""
    _write(sys.stderr, f"{_DIM}{shown(text)}{_NORMAL}" if sys.stderr.isatty() else text)


def write_error(message: str) -> None:
    """To standard error: what went wrong with a line, after which the next one is taken."""
    _write(sys.stderr, f"octavo: {shown(message)}\n")


def shown(text: str) -> str:
    """The text with control characters spelled out, by which a model or a server could give a terminal orders."""
    return text.translate(_CONTROLS)


def _typed_line(prompt: str) -> str:
    if sys.stdout.isatty():
        return input(prompt)
    write_aside(prompt)  # input would write it to standard output
    return input()


def _write(stream: TextIO, text: str) -> None:
    stream.buffer.write(text.encode(errors="replace"))
    stream.buffer.flush()
