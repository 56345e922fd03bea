"""Names of functions, as they stand between markers."""

import re

from octavo.streaming.tool_formats.reader import Reader, Reading

_NAME = re.compile(r"[\w.-]*")


def read_name(reader: Reader) -> Reading[str]:
    """The name that follows, and the white space around it; empty where none does.

    It ends where no name goes on so: what only looks like a call is told early.
    """
    yield from reader.space()
    name = yield from reader.take(_NAME)
    yield from reader.space()
    return name
