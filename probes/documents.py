"""Requests for the server's pages, and for what lies beside their files."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from probes.answer import Answer, exchange
from probes.counts import Counts
from probes.target import Target

ROOT = Path(__file__).parents[1]
OK = (200,)
EXPECTED = (*OK, 400, 404, 414, 416, 431)
MIN_PAGES = 4
NUM_PARTS = 100_000
MAX_HEADER = 60_000
"""Bytes of a header that is just not too large."""
FILES = ("etc/passwd", "pyproject.toml", "proc/self/environ")
UPS = (
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%5c",
    "%2e%2e%5c",
    "..\\",
    "....//",
    "..;/",
    "%252e%252e%252f",
    ".%00./",
)
DEPTHS = (1, 3, 8)
MAX_GROWTH = 2
"""Of a page, as the metrics have more lines with each status; parts of it together must not be more."""
MAX_ERROR = 4096
MIN_LINE = 12
RANGES = (
    "bytes=0-0",
    "bytes=-1",
    "bytes=5-",
    "bytes=5-1",
    "bytes=--5",
    "bytes=-0",
    f"bytes=0-{10**30}",
    f"bytes={10**30}-",
    f"bytes=-{10**30}",
    f"bytes={2**63}-{2**64}",
    "bytes=0-0,0-0,0-0",
    "bytes=",
    "bytes",
    "items=0-1",
    "bytes=a-b",
    "bytes=0-\xff",
    "bytes=" + "0-," * 5000,
)
CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range")
JUNK = (
    "",
    "*",
    "x",
    '"x"',
    'W/"',
    "Thu, 99 Foo 99999 99:99:99 GMT",
    "-1",
    str(10**400),
    '"' * 5000,
    '"a", ' * 5000,
    "\xff",
)


async def pages_of(target: Target, counts: Counts) -> dict[str, bytes]:
    """The paths to which `/` and its pages link, with the body of each."""
    pages, waiting = dict[str, bytes](), ["/"]
    while waiting:
        path = waiting.pop()
        answer = await _get(target, path)
        counts.judge(path, answer, OK)
        counts.count(f"{path}: whole", answer.is_whole)
        pages[path] = answer.body
        links = re.findall(r'(?:href=|src=|: ?)"(/[^"]*)"', answer.body.decode()) if path in ("/", "/docs") else []
        waiting += [link for link in links if link not in pages]
    counts.count("pages", len(pages) >= MIN_PAGES, f"{list(pages)}")
    return pages


def traversals(pages: list[str]) -> Iterator[str]:
    """Spellings of files that are elsewhere, below each page and below nothing."""
    for page in dict.fromkeys(("", *(page.rstrip("/") for page in pages))):
        for file in FILES:
            yield from (f"{page}{slashes}{file}" for slashes in ("//", "///", "/%2f", "/%5c", "/./", "/.//"))
            for up in UPS:
                yield from (f"{page}/{up * depth}{file}" for depth in DEPTHS)
        yield from (f"{page}%00", f"{page}%00.html", f"{page}/%00/etc/passwd", f"{page}/..", f"{page}/../..")
    for file in FILES:
        yield from (
            f"file:///{file}",
            f"http://127.0.0.1/{file}",
            f"/file:///{file}",
            quote(f"/{file}", ""),
            f"/{ROOT}/{file}",
        )
    yield from ("/\0", "/docs\0", "/docs\0/etc/passwd", "\\etc\\passwd", "//", "/../", "*", "")


def bad_headers() -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """A name, a header's line, and the statuses that it may get."""
    fitting = "bytes=" + ",".join(["0-"] * ((MAX_HEADER - 6) // 3))
    for value in (*RANGES, fitting):
        yield f"range {value[:30]!r}", f"range: {value}", EXPECTED
    yield f"range of {NUM_PARTS} parts", "range: bytes=" + "0-," * NUM_PARTS, (431,)
    for name in CONDITIONS:
        for value in JUNK:
            yield f"{name} {value[:20]!r} of {len(value)}", f"{name}: {value}", EXPECTED


def queries() -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from ((f"?{'x' * size}", EXPECTED) for size in (1, 1000, MAX_HEADER))
    yield f"?{'x' * 10**6}", (414, 431)
    yield from (
        (query, EXPECTED) for query in (f"?{'a=1&' * 15_000}", "?" * 5000, "?x=%00", "?x=%ff", "?file=../../etc/passwd")
    )


async def documents(target: Target) -> Counts:
    """Static and document routes (A10): nothing from elsewhere, and no answer is larger than its page."""
    counts, secrets = Counts(), secret_lines()
    pages = await pages_of(target, counts)
    for path in traversals(list(pages)):
        judge_elsewhere(counts, f"path {path[:60]!r}", await _get(target, path), list(pages.values()), secrets)
    for page, body in pages.items():
        for name, line, expected in bad_headers():
            judge(counts, f"{page}: {name}", await _get(target, page, line), expected, len(body), secrets)
        for query, expected in queries():
            answer = await _get(target, page + query)
            judge(counts, f"{page}{query[:20]} of {len(query)}", answer, expected, len(body), secrets)
    counts.figures["pages"] = len(pages)
    return counts


def secret_lines() -> tuple[str, ...]:
    """A part of each of the files that are asked for."""
    lines = map(_first_line, (Path("/etc/passwd"), ROOT / "pyproject.toml"))
    return ("PATH=", *filter(None, lines))


def judge_elsewhere(counts: Counts, name: str, answer: Answer, pages: list[bytes], secrets: tuple[str, ...]) -> None:
    """Whatever its path is taken for: a success shows a page."""
    judge(counts, name, answer, EXPECTED, max(map(len, pages)), secrets)
    counts.count(f"{name}: a page", answer.status >= 400 or answer.body in pages, f"{answer.body[:200]!r}")


def judge(
    counts: Counts, name: str, answer: Answer, expected: tuple[int, ...], size: int, secrets: tuple[str, ...]
) -> None:
    """size: of the page, in bytes."""
    counts.judge(name, answer, expected)
    counts.count(f"{name}: whole", answer.is_whole, f"{len(answer.body)} bytes came")
    held = next((secret for secret in secrets if secret in answer.body.decode("utf-8", "replace")), "")
    counts.count(f"{name}: no other file", not held, held)
    most = MAX_GROWTH * size if answer.status < 400 else MAX_ERROR
    counts.count(f"{name}: not larger", len(answer.body) <= most, f"{len(answer.body)} bytes, {size} are the page's")
    counts.worst("largest answer, KiB", len(answer.body) / 1024)


async def _get(target: Target, path: str, *lines: str) -> Answer:
    return await exchange(target.place, target.place.head(path, *lines, method="GET"))


def _first_line(file: Path) -> str:
    """That says something; "" where there is none."""
    lines = file.read_text().splitlines() if file.exists() else []
    return next((line for line in lines if len(line) > MIN_LINE), "")
