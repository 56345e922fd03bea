"""What is on the disk of the spool."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from octavo.store.durable_files import append_durably, sync_folder
from octavo.store.outage import Outage
from octavo.store.segment import Segment, SegmentWriter
from octavo.store.set_aside import BAD, SetAside
from octavo.store.spool_folder import SUFFIX, SpoolFolder, folders_for_others, folders_in

SEGMENT_SIZE = 8 * 2**20


class SpoolFiles:
    """The segments of this process, and those that others left. For one thread.

    They are moved in the order in which they came. A segment is sealed when it is large, or when it is its turn, so
    that rows go as soon as the database takes them, and as many together as came meanwhile.
    """

    def __init__(self, root: Path, digest: str) -> None:
        """digest: of the database. Makes no folder."""
        self._root = root
        self._digest = digest
        self._own: SpoolFolder | None = None
        self._num_segments = 0
        self._writer: SegmentWriter | None = None
        self._sealed: deque[Segment] = deque()
        self._adopted: dict[Path, SpoolFolder] = {}
        self.aside = SetAside()
        self.leftovers = Outage("rows that were left in the prompt log's spool cannot be taken over")
        self.foreign = Outage("rows in the prompt log's spool are for another database, and wait for a start with it")

    def append(self, records: Sequence[bytes]) -> None:
        """Return when they are on the disk. Raises OSError; then none of them counts."""
        if self._writer is None:
            self._writer = SegmentWriter(self._next_path())
        try:
            self._writer.append(records)
        except OSError:
            self._seal()
            raise
        if self._writer.size >= SEGMENT_SIZE:
            self._seal()

    def oldest(self) -> Segment | None:
        """What is to be moved next; nothing is added to it any more."""
        if not self._sealed:
            self._seal()
        return self._sealed[0] if self._sealed else None

    def finish(self, segment: Segment) -> None:
        """Remove the oldest one. Raises OSError."""
        segment.remove()
        self._sealed.remove(segment)
        place = segment.path.parent
        if place in self._adopted and all(left.path.parent != place for left in self._sealed):
            self._adopted.pop(place).leave()

    def adopt(self) -> Sequence[Segment]:
        """Take over what processes left that have ended, and note what cannot be taken over. Raises OSError."""
        faults: list[OSError] = []
        found = [each for path in folders_in(self._root, self._digest) for each in self._adopt(path, faults)]
        for fault in faults:
            self.leftovers.note(fault)
        if not faults and not self._adopted:
            self.leftovers.end()
        self._look_for_others()
        self._count_aside()
        self._sealed.extend(found)
        return found

    def has_rows(self) -> bool:
        """Whether rows for the database are there, of whatever process. Raises OSError."""
        return any(any(path.glob(f"*{SUFFIX}")) for path in folders_in(self._root, self._digest))

    def set_aside(self, segment: Segment, content: bytes) -> None:
        """Keep what cannot be moved, in a file beside the segment's folder. Raises OSError."""
        append_durably(segment.path.parent.with_suffix(BAD), content)
        self._count_aside()

    def set_aside_whole(self, segment: Segment) -> None:
        """Keep a segment that cannot be read, as a file beside its folder. Raises OSError."""
        folder = segment.path.parent
        segment.path.rename(folder.with_name(f"{folder.name}-{segment.path.stem}{BAD}"))
        sync_folder(folder.parent)
        self._count_aside()

    def close(self) -> None:
        """Leave what there is to whoever comes next."""
        self._seal()
        for folder in (*self._adopted.values(), *((self._own,) if self._own else ())):
            folder.leave()

    def _count_aside(self) -> None:
        with suppress(OSError):  # it is only told; whoever set something aside must not do it twice for that
            self.aside = SetAside.found(self._root)

    def _next_path(self) -> Path:
        if self._own is None or not self._own.path.exists():
            if self._own is not None:  # somebody took it away
                self._own.leave()
            self._own = SpoolFolder.make(self._root, self._digest)
        self._num_segments += 1
        return self._own.new_segment(self._num_segments)

    def _seal(self) -> None:
        if self._writer is not None:
            self._sealed.append(self._writer.seal())
            self._writer = None

    def _adopt(self, path: Path, faults: list[OSError]) -> Sequence[Segment]:
        """Nothing where another process has it. What cannot be read stays there, with its fault in the list."""
        try:
            folder = SpoolFolder.adopt(path)
            return () if folder is None else self._take_over(folder, faults)
        except OSError as fault:
            faults.append(fault)
            return ()

    def _take_over(self, folder: SpoolFolder, faults: list[OSError]) -> Sequence[Segment]:
        segments: list[Segment] = []
        for path in folder.segments:
            try:
                segments.append(Segment.found(path))
            except OSError as fault:
                faults.append(fault)
        if segments:
            self._adopted[folder.path] = folder
        else:
            folder.leave()
        return segments

    def _look_for_others(self) -> None:
        num_left = sum(map(_is_left, folders_for_others(self._root, self._digest)))
        if num_left:
            self.foreign.note(FileExistsError(f"{num_left} folders"))
        else:
            self.foreign.end()


def _is_left(path: Path) -> bool:
    """Whether no process has it; true where that cannot be found out, as somebody has to look at it."""
    try:
        folder = SpoolFolder.adopt(path)
    except OSError:
        return True
    if folder is not None:
        folder.leave()
    return folder is not None
