"""Adapters from Hugging Face, played by a server of the test."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, constants

from octavo.errors import AdapterRefused
from octavo.service import AdapterFiles, AdapterHub, no_folder

FILES = {
    "owner/one": {"zorp.gguf": b"adapter", "README.md": b"text"},
    "owner/large": {"large.gguf": b"too long"},
    "owner/two": {"a.gguf": b"first", "deep/b.gguf": b"second"},
    "owner/none": {"model.safetensors": b"x"},
}
COMMIT = "0" * 40
MAX_SIZE = 7


class FakeHub(BaseHTTPRequestHandler):
    """As much of the service as a download needs."""

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def _answer(self, *, is_head: bool) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            self._list("/".join(parts[2:4]), is_info=len(parts) == 4)
        else:
            self._send_file("/".join(parts[:2]), "/".join(parts[4:]), is_head=is_head)

    def _list(self, repository: str, *, is_info: bool) -> None:
        if repository not in FILES:
            self._fail(repository)
        elif is_info:
            siblings = [{"rfilename": name} for name in FILES[repository]]
            self._send(200, json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode())
        else:
            tree = [{"type": "file", "path": name, "size": 1, "oid": COMMIT} for name in FILES[repository]]
            self._send(200, json.dumps(tree).encode())

    def _send_file(self, repository: str, file: str, *, is_head: bool) -> None:
        if file not in FILES.get(repository, {}):
            self._fail(repository)
        else:
            content = FILES[repository][file]
            etag = f'"{repository}-{file}"'.replace("/", "-")
            self._send(200, content, is_head=is_head, ETag=etag, **{"X-Repo-Commit": COMMIT})

    def _fail(self, repository: str) -> None:
        if repository == "owner/broken":
            self._send(400, b"")
        elif repository == "owner/gated":
            self._send(403, b"", **{"X-Error-Code": "GatedRepo"})
        else:
            code = "EntryNotFound" if repository in FILES else "RepoNotFound"
            self._send(404, b"", **{"X-Error-Code": code})

    def _send(self, status: int, content: bytes, *, is_head: bool = False, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not is_head:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AdapterHub]:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeHub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield AdapterHub(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("reference", "content"),
    [
        ("hf:owner/one", b"adapter"),
        ("hf:owner/one:zorp.gguf", b"adapter"),
        ("hf:owner/two:a.gguf", b"first"),
        ("hf:owner/two:deep/b.gguf", b"second"),
    ],
)
async def test_a_file_of_a_repository_is_downloaded(hub: AdapterHub, reference: str, content: bytes) -> None:
    file = await AdapterFiles(no_folder, hub, MAX_SIZE).file(reference)
    assert file.read_bytes() == content
    assert not file.is_symlink()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("hf:owner/two", "has several .gguf files; name one of them after a colon: a.gguf, deep/b.gguf."),
        ("hf:owner/none", "The repository 'owner/none' has no .gguf file."),
        ("hf:owner/one:other.gguf", "The repository 'owner/one' has no file 'other.gguf'."),
        ("hf:owner/nothing", "Hugging Face has no repository 'owner/nothing' that this server may read."),
        ("hf:owner/nothing:a.gguf", "Hugging Face has no repository 'owner/nothing' that this server may read."),
        ("hf:owner/large", "The adapter's file has 8 bytes; this server takes at most 7."),
        ("hf:owner/gated", "only to those who asked for it, and not to this server."),
        ("hf:owner/broken", "The adapter of 'owner/broken' could not be downloaded; the server's log says why."),
    ],
)
async def test_what_cannot_be_had_is_refused_with_its_reason(hub: AdapterHub, reference: str, message: str) -> None:
    with pytest.raises(AdapterRefused) as refusal:
        await hub.download(reference, MAX_SIZE)
    assert refusal.value.message.endswith(message)
    assert refusal.value.param == "path"


@pytest.mark.parametrize(
    "reference",
    [
        *("hf:", "hf:owner", "hf:owner/", "hf:/x", "hf:a/b/c", "hf:../..", "hf:owner/one\n", "hf:https://127.0.0.1/x"),
        *("hf:owner/one:", "hf:owner/one:README.md", "hf:owner/one?x:zorp.gguf", "hf:owner/one:/etc/x.gguf"),
        *("hf:owner/one:../zorp.gguf", "hf:owner/one:a/../b.gguf", "hf:owner/one:a//b.gguf"),
    ],
)
async def test_what_is_no_reference_is_refused_before_anything_is_asked_for(reference: str) -> None:
    with pytest.raises(AdapterRefused, match=r"^A reference to Hugging Face is hf:owner/repository or "):
        await AdapterHub("http://127.0.0.1:1").download(reference, MAX_SIZE)


async def test_a_service_that_is_out_of_reach_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda _: None)  # between the library's own attempts
    with pytest.raises(AdapterRefused, match="could not be downloaded"):
        await AdapterHub("http://127.0.0.1:1").download("hf:owner/one:zorp.gguf", MAX_SIZE)


def cached(folder: Path) -> list[Path]:
    return [*folder.rglob("*.gguf")]


async def test_nothing_is_downloaded_of_a_file_that_is_too_large_or_of_unknown_size(
    hub: AdapterHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AdapterRefused):
        await hub.download("hf:owner/large:large.gguf", MAX_SIZE)
    sized = HfApi.hf_hub_download

    def unsized(*given: Any, **options: Any) -> Any:
        return replace(sized(*given, **options), file_size=None)

    monkeypatch.setattr(HfApi, "hf_hub_download", unsized)
    with pytest.raises(AdapterRefused, match="size of the adapter's file is not known"):
        await hub.download("hf:owner/one:zorp.gguf", MAX_SIZE)
    assert cached(tmp_path) == []


async def test_what_was_downloaded_is_there_when_the_service_is_out_of_reach(
    hub: AdapterHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await hub.download("hf:owner/one:zorp.gguf", MAX_SIZE)
    assert await AdapterHub("http://127.0.0.1:1").download("hf:owner/one:zorp.gguf", MAX_SIZE) == file
    with pytest.raises(AdapterRefused, match="has 7 bytes"):
        await AdapterHub("http://127.0.0.1:1").download("hf:owner/one:zorp.gguf", MAX_SIZE - 1)
