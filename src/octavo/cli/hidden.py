"""Secrets of the command line, which every user of the machine could read there."""

import sys

FLAGS = ("--api-key", "--log-db", "--url")
"""Of keys, and of URLs, which may have a password."""


def hide_secrets(command: str) -> None:
    """Take all arguments out of the process's title where one of them may be a secret."""
    if any(argument.startswith(FLAGS) for argument in sys.argv[1:]):
        from setproctitle import setproctitle

        setproctitle(f"octavo {command}")
