"""Where the files of adapters may be."""

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from octavo.core import adapters
from octavo.errors import AdapterRefused
from octavo.service.adapter_hub import HUB_PREFIX, AdapterHub
from octavo.service.adapter_size import check_size

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Whatever has taken the place of a file that was looked at before: no link is followed, and no pipe waited for."""

PathFinder = Callable[[str], Path]
"""From a path as it was given to the file. Raises AdapterRefused."""


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """The files that references may name.

    hub: None where nothing may be downloaded. max_size: bytes that a file may have.
    """

    find: PathFinder
    hub: AdapterHub | None
    max_size: int

    async def file(self, reference: str) -> Path:
        """The file that a path or hf:owner/repository[:file] names. Raises AdapterRefused."""
        if not reference.startswith(HUB_PREFIX):
            return await asyncio.to_thread(self.find, reference)
        if self.hub is None:
            message = (
                "This server loads no adapters from Hugging Face; it was started without --allow-adapter-downloads."
            )
            raise AdapterRefused(message, param="path")
        return await self.hub.download(reference, self.max_size)


class AdapterFolder:
    """A folder, and whatever lies in it or below."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, path: str) -> Path:
        """A file of the folder, by its path in it or its whole one; links are followed as far as they stay inside.

        Raises AdapterRefused, with the same words whatever the reason: nobody is told what there is elsewhere. Nothing
        is opened.
        """
        try:
            folder = self._folder.resolve(strict=True)
            file = (folder / path).resolve(strict=True)
            if file.is_relative_to(folder) and stat.S_ISREG(file.stat().st_mode):
                return file
        except (OSError, ValueError, RuntimeError):  # no such file; no path at all; links in a circle
            pass
        raise AdapterRefused("There is no such file in this server's folder of adapters.", param="path")


def no_folder(path: str) -> Path:
    message = "This server loads no adapters from files; it was started without --adapter-dir."
    raise AdapterRefused(message, param="path")


def digest_of(file: Path, max_size: int) -> str:
    """Of the file's content. Raises AdapterRefused where it cannot be read, or has more than max_size bytes."""
    try:
        with open(file, "rb", opener=_open_at_once) as content:
            check_size(os.fstat(content.fileno()).st_size, max_size)
            return adapters.digest_of(content)
    except OSError as error:
        raise AdapterRefused("The adapter's file cannot be read.", param="path") from error


def _open_at_once(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("not a regular file")
    return descriptor
