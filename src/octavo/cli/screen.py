"""What `octavo serve` shows while it starts."""

import json
import logging
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from octavo.engine.base import EngineHealth, EngineInfo, EngineState

log = logging.getLogger("octavo.serve")

ShowHealth = Callable[[EngineHealth], None]
OPEN_WARNING = (
    "This address can be reached from other machines, and no key is needed: whoever reaches it can use the server. "
    "Make a key with `octavo keys create NAME --keys-file keys.json`, and serve with `--keys-file keys.json`."
)
NUM_STEPS = 4
"""Of the lines that stand for a progress bar where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is, or will be, served. file: None for the scripted engine. needs_key: to ask it anything."""

    model_id: str
    file: Path | None
    url: str
    is_loopback: bool
    needs_key: bool

    @property
    def is_open(self) -> bool:
        """Whether strangers may use it."""
        return not (self.is_loopback or self.needs_key)


class Screen(Protocol):
    def opening(self, place: Place) -> None:
        """HTTP answers, the model is not loaded yet."""
        ...

    def loading(self, place: Place) -> AbstractContextManager[ShowHealth]:
        """Shows how far the model is, each time it is told."""
        ...

    def welcome(self, place: Place, info: EngineInfo) -> None:
        """Everything is ready."""
        ...


class ConsoleScreen:
    """For people, on stderr; a progress bar only where that is a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def opening(self, place: Place) -> None:
        self._say(f"Octavo listens on {place.url}")
        if place.is_open:
            self._say(f"WARNING: {OPEN_WARNING}", style="bold red")

    def loading(self, place: Place) -> AbstractContextManager[ShowHealth]:
        return _bar(self._console, place) if self._console.is_terminal else _lines(self._say, place)

    def welcome(self, place: Place, info: EngineInfo) -> None:
        facts = welcome_facts(place, info)
        width = max(len(name) for name, _ in facts)
        for name, value in facts:
            self._print(Text.assemble((f"  {name:<{width}}  ", "bold"), value))
        self._say("\nTry it:\n", style="bold")
        self._say(example_call(place))
        self._say("\nCtrl-C stops the server.")

    def _say(self, line: str, style: str = "") -> None:
        self._print(Text(line, style=style))

    def _print(self, text: Text) -> None:
        # Wrapped by the terminal, not by us: a call that is broken into lines cannot be pasted.
        self._console.print(text, soft_wrap=True)


class LogScreen:
    """For machines: log records in place of a screen."""

    def opening(self, place: Place) -> None:
        log.info("listening", extra={"fields": {"url": place.url}})
        if place.is_open:
            log.warning(OPEN_WARNING)

    def loading(self, place: Place) -> AbstractContextManager[ShowHealth]:
        return _lines(log.info, place)

    def welcome(self, place: Place, info: EngineInfo) -> None:
        log.info("serving", extra={"fields": dict(welcome_facts(place, info))})


def welcome_facts(place: Place, info: EngineInfo) -> list[tuple[str, str]]:
    """What is served, where and how, as name and value."""
    described = [(name, value) for name, _, value in (line.partition(": ") for line in info.description)]
    return [
        ("serving", place.model_id),
        *([("file", str(place.file))] if place.file else []),
        ("context length", f"{info.context_length} tokens"),
        ("slots", f"{info.num_slots} sequences at the same time, more wait in turns"),
        *described,
        ("API", f"{place.url}/v1"),
        ("documentation", f"{place.url}/docs"),
    ]


def example_call(place: Place) -> str:
    """A shell command that streams a chat answer."""
    messages = [{"role": "user", "content": "What is a fox?"}]
    body = json.dumps({"model": place.model_id, "messages": messages, "stream": True}, ensure_ascii=False)
    key = '-H "Authorization: Bearer $OCTAVO_API_KEY" ' if place.needs_key else ""
    url = f"{place.url}/v1/chat/completions"
    return f"  curl -N {url} {key}-H 'content-type: application/json' -d {shlex.quote(body)}"


@contextmanager
def _bar(console: Console, place: Place) -> Iterator[ShowHealth]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"Loading {place.model_id}", total=1.0)

        def show(health: EngineHealth) -> None:
            progress.update(task, completed=health.progress, description=_status(place, health))

        yield show


@contextmanager
def _lines(say: Callable[[str], None], place: Place) -> Iterator[ShowHealth]:
    last: tuple[str, int] | None = None

    def show(health: EngineHealth) -> None:
        nonlocal last
        now = (_status(place, health), int(health.progress * NUM_STEPS))
        if now != last:
            say(now[0] if health.message else f"{now[0]}: {health.progress:.0%}")
        last = now

    yield show


def _status(place: Place, health: EngineHealth) -> str:
    verb = "Restarting" if health.state is EngineState.RESTARTING else "Loading"
    return f"{verb} {place.model_id}" + (f": {health.message}" if health.message else "")
