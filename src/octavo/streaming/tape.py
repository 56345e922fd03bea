"""Text that is settled, to be taken in given lengths."""

from collections import deque

from octavo.streaming.segment import Segment


class Tape:
    """length: characters that can be taken."""

    def __init__(self) -> None:
        self.length = 0
        self._segments: deque[Segment] = deque()
        self._num_taken = 0  # of the first segment

    def append(self, segment: Segment) -> None:
        if segment[1]:
            self._segments.append(segment)
            self.length += len(segment[1])

    def take(self, length: int) -> list[Segment]:
        """The next characters, no more than there are."""
        taken: list[Segment] = []
        while length > 0:
            part = self._take_of_first(length)
            taken.append(part)
            length -= len(part[1])
        return taken

    def _take_of_first(self, length: int) -> Segment:
        channel, text = self._segments[0]
        part = text[self._num_taken : self._num_taken + length]
        self._num_taken += len(part)
        self.length -= len(part)
        if self._num_taken == len(text):
            self._segments.popleft()
            self._num_taken = 0
        return channel, part
