"""Adapters on Hugging Face."""

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from octavo.errors import AdapterRefused
from octavo.service.adapter_size import check_size
from octavo.service.daemon_thread import in_daemon_thread

HUB_PREFIX = "hf:"

_REPOSITORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SUFFIX = ".gguf"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HubReference:
    """A repository, and one of its files; no file stands for its only .gguf file."""

    repository: str
    file: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of hf:owner/repository[:file]. Raises AdapterRefused."""
        repository, colon, file = text.removeprefix(HUB_PREFIX).partition(":")
        if _REPOSITORY.fullmatch(repository) is None or (colon and not _is_adapter_file(file)):
            message = "A reference to Hugging Face is hf:owner/repository or hf:owner/repository:FILE.gguf."
            raise AdapterRefused(message, param="path")
        return cls(repository, file or None)


class AdapterHub:
    """Downloads adapters into the machine's cache of Hugging Face files, one at a time.

    endpoint: of the service; None is what huggingface_hub takes by itself.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint
        self._turn = asyncio.Lock()

    async def download(self, text: str, max_size: int) -> Path:
        """The file of hf:owner/repository[:file]. Raises AdapterRefused, also where it has more than max_size bytes."""
        reference = HubReference.parse(text)
        async with self._turn:
            _log.info("an adapter of %s is fetched from Hugging Face", reference.repository)
            return await in_daemon_thread(lambda: self._fetch(reference, max_size))

    def _fetch(self, reference: HubReference, max_size: int) -> Path:
        try:
            return self._fetched(reference, max_size)
        except AdapterRefused:
            raise
        except Exception as error:  # of whatever library brings the bytes
            raise AdapterRefused(_reason(reference, error), param="path") from error

    def _fetched(self, reference: HubReference, max_size: int) -> Path:
        from huggingface_hub import HfApi  # most servers download nothing, and start sooner without it
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        hub = HfApi(endpoint=self._endpoint)
        file = reference.file or _only_adapter(reference.repository, hub.list_repo_files(reference.repository))
        check_size(hub.hf_hub_download(reference.repository, file, dry_run=True).file_size, max_size)
        return Path(hub.hf_hub_download(reference.repository, file)).resolve()


def _only_adapter(repository: str, files: Sequence[str]) -> str:
    adapters = [file for file in files if _is_adapter_file(file)]
    if not adapters:
        raise AdapterRefused(f"The repository {repository!r} has no {_SUFFIX} file.", param="path")
    if len(adapters) > 1:
        message = f"The repository {repository!r} has several {_SUFFIX} files; name one of them after a colon: "
        raise AdapterRefused(f"{message}{', '.join(adapters)}.", param="path")
    return adapters[0]


def _reason(reference: HubReference, error: Exception) -> str:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return f"Hugging Face gives {reference.repository!r} only to those who asked for it, and not to this server."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"Hugging Face has no repository {reference.repository!r} that this server may read."
    is_missing = isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError)
    if is_missing:  # and not only out of reach
        return f"The repository {reference.repository!r} has no file {reference.file!r}."
    _log.warning("the download of an adapter of %s failed", reference.repository, exc_info=error)
    return f"The adapter of {reference.repository!r} could not be downloaded; the server's log says why."


def _is_adapter_file(name: str) -> bool:
    """Its path goes down only, so that it stays within the cache."""
    return name.endswith(_SUFFIX) and not {"", ".", ".."} & {*name.split("/")}
