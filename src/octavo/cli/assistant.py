"""A model that answers messages."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from octavo.cli.answer import Delta
from octavo.cli.client import ServerClient
from octavo.cli.conversation import Message
from octavo.cli.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Assistant:
    """A model of a running server. peft: id of the adapter to use with it, or None."""

    client: ServerClient
    model: str
    peft: str | None
    sampling: Sampling

    def answer(self, messages: Sequence[Message]) -> Generator[Delta, None, None]:
        """The answer as it comes; closing the iterator ends the request. Raises CallFailed and ConfigError."""
        body = {"model": self.model, "messages": messages, "peft": self.peft, **self.sampling.to_wire()}
        return self.client.stream("/v1/chat/completions", Delta.from_wire, body)
