"""What ends a choice because of its text."""

from collections.abc import Mapping
from typing import Protocol

from octavo.core.channels import Channel
from octavo.streaming.segment import Segment


class Cutter(Protocol):
    """Ends a text somewhere.

    push and flush give the text that is now certain to stay, and the text behind the end once that was found.
    """

    @property
    def is_cut(self) -> bool: ...

    def push(self, text: str) -> tuple[str, str]: ...

    def flush(self) -> tuple[str, str]: ...


class Cuts:
    """Lets each channel's cutter see its text; the first that finds an end ends all channels.

    Text that a cutter holds back is decided when another channel begins, so that the order stays.
    """

    def __init__(self, cutters: Mapping[Channel, Cutter]) -> None:
        self._cutters = cutters
        self._channel = Channel.HIDDEN
        self.is_cut = False

    def push(self, segments: list[Segment]) -> list[Segment]:
        if not self._cutters:
            return segments
        cut: list[Segment] = []
        for channel, text in segments:
            if channel is not self._channel:
                cut += self.flush()
                self._channel = channel
            cut += self._part(text)
        return cut

    def flush(self) -> list[Segment]:
        cutter = self._cutters.get(self._channel)
        return [] if self.is_cut or cutter is None else self._cut(cutter, cutter.flush())

    def _part(self, text: str) -> list[Segment]:
        if self.is_cut:
            return [(Channel.HIDDEN, text)]
        cutter = self._cutters.get(self._channel)
        return [(self._channel, text)] if cutter is None else self._cut(cutter, cutter.push(text))

    def _cut(self, cutter: Cutter, texts: tuple[str, str]) -> list[Segment]:
        kept, dropped = texts
        self.is_cut = cutter.is_cut
        return [(self._channel, kept), (Channel.HIDDEN, dropped)] if self.is_cut else [(self._channel, kept)]


class SpareFirst:
    """Lets the text of a choice's first tokens past its cuts, wherever it is held back on the way.

    num_tokens: how many tokens that is.
    """

    def __init__(self, cuts: Cuts, num_tokens: int) -> None:
        self._cuts = cuts
        self._num_tokens = num_tokens
        self._num_characters = 0

    def count(self, text: str) -> None:
        """The characters that the choice's next token completes."""
        if self._num_tokens > 0:
            self._num_tokens -= 1
            self._num_characters += len(text)

    def push(self, segments: list[Segment]) -> list[Segment]:
        if self._num_characters == 0:
            return self._cuts.push(segments)
        passed: list[Segment] = []
        for channel, text in segments:
            spared = text[: self._num_characters]
            self._num_characters -= len(spared)
            passed += [(channel, spared)] if spared else []
            passed += self._cuts.push([(channel, text[len(spared) :])])
        return passed

    def flush(self) -> list[Segment]:
        return self._cuts.flush()
