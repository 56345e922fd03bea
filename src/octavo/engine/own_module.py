"""How our modules are run as processes of their own."""

import sys


def own_module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command. Nothing is imported from the folder in which the server was started (-P): others may write there."""
    return (sys.executable, "-P", "-m", name, *arguments)
