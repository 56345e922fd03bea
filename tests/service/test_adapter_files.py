"""Which files may be adapters."""

import os
from hashlib import blake2b
from pathlib import Path

import pytest

from octavo.errors import AdapterRefused
from octavo.service import AdapterFiles, AdapterFolder, no_folder
from octavo.service.adapter_files import digest_of

ELSEWHERE = "There is no such file in this server's folder of adapters."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of adapters beside a secret, with links of every kind between them."""
    folder = tmp_path / "adapters"
    (folder / "below").mkdir(parents=True)
    for file in (tmp_path / "secret.gguf", folder / "a.gguf", folder / "below" / "b.gguf"):
        file.write_bytes(b"GGUF")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.gguf").write_bytes(b"GGUF")
    (tmp_path / "adapters-too").mkdir()
    (tmp_path / "adapters-too" / "secret.gguf").write_bytes(b"GGUF")
    (folder / "inner-link.gguf").symlink_to("below/b.gguf")
    (folder / "outer-link.gguf").symlink_to("../secret.gguf")
    (folder / "link-to-folder").symlink_to("../outside")
    (folder / "way-back").symlink_to("../adapters/below")
    (folder / "loop.gguf").symlink_to("loop.gguf")
    os.mkfifo(folder / "pipe.gguf")
    return folder


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("a.gguf", "a.gguf"),
        ("./a.gguf", "a.gguf"),
        ("a.gguf/", "a.gguf"),
        ("below/b.gguf", "below/b.gguf"),
        ("below/../a.gguf", "a.gguf"),
        ("inner-link.gguf", "below/b.gguf"),
        ("way-back/b.gguf", "below/b.gguf"),
        ("../adapters/a.gguf", "a.gguf"),
    ],
)
def test_a_file_of_the_folder_is_found_and_its_links_are_followed(folder: Path, path: str, file: str) -> None:
    assert AdapterFolder(folder).find(path) == folder / file
    assert AdapterFolder(folder).find(str(folder / path)) == folder / file


def test_a_folder_may_itself_be_a_link(folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to("adapters")
    for path in ("a.gguf", str(link / "a.gguf"), str(folder / "a.gguf")):
        assert AdapterFolder(link).find(path) == folder / "a.gguf"


ATTACKS = [
    "../secret.gguf",
    "../missing.gguf",
    "below/../../secret.gguf",
    "below/../../../../../../etc/passwd",
    "%2e%2e/secret.gguf",
    "..%2fsecret.gguf",
    "..\\secret.gguf",
    "../adapters-too/secret.gguf",
    "/etc/passwd",
    "/etc/missing",
    "/dev/zero",
    "//etc/passwd",
    "~/secret.gguf",
    "outer-link.gguf",
    "link-to-folder/secret.gguf",
    "link-to-folder/missing.gguf",
    "loop.gguf",
    "a.gguf/..",
    "a.gguf\0",
    "\0",
    "../secret.gguf\0.gguf",
    "\ud800",
    "http://127.0.0.1/a.gguf",
    "file:///etc/passwd",
    "missing.gguf",
    "below",
    "",
    ".",
    "..",
    "/",
    "pipe.gguf",
    "x" * 100_000,
    "../" * 10_000,
]


@pytest.mark.parametrize("path", ATTACKS, ids=[repr(path[:30]) for path in ATTACKS])
def test_what_is_no_file_of_the_folder_is_refused_in_the_same_words(folder: Path, path: str) -> None:
    with pytest.raises(AdapterRefused) as refusal:
        AdapterFolder(folder).find(path)
    assert refusal.value.message == ELSEWHERE
    assert refusal.value.param == "path"


@pytest.mark.parametrize("path", ["secret.gguf", "outside/secret.gguf", "missing.gguf", "adapters-too/secret.gguf"])
def test_a_whole_path_outside_of_the_folder_is_refused_whether_there_is_a_file_or_not(folder: Path, path: str) -> None:
    with pytest.raises(AdapterRefused, match=ELSEWHERE):
        AdapterFolder(folder).find(str(folder.parent / path))


def test_nothing_is_opened_while_a_file_is_looked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> int:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(os, "scandir", opened)
    assert AdapterFolder(folder).find("a.gguf")
    for path in ATTACKS:
        with pytest.raises(AdapterRefused):
            AdapterFolder(folder).find(path)


def test_a_folder_that_is_gone_has_no_files(tmp_path: Path) -> None:
    with pytest.raises(AdapterRefused, match=ELSEWHERE):
        AdapterFolder(tmp_path / "gone").find("a.gguf")


def test_a_digest_is_that_of_the_content_alone(folder: Path) -> None:
    assert digest_of(folder / "a.gguf", 100) == blake2b(b"GGUF", digest_size=16).hexdigest()
    assert digest_of(folder / "a.gguf", 100) == digest_of(folder / "below" / "b.gguf", 100)
    (folder / "a.gguf").write_bytes(b"GGUf")
    assert digest_of(folder / "a.gguf", 100) != digest_of(folder / "below" / "b.gguf", 100)


@pytest.mark.parametrize("name", ["outer-link.gguf", "inner-link.gguf", "pipe.gguf", "below", "missing.gguf"])
def test_what_has_taken_the_place_of_a_file_is_not_read_nor_waited_for(folder: Path, name: str) -> None:
    with pytest.raises(AdapterRefused, match=r"^The adapter's file cannot be read\.$"):
        digest_of(folder / name, 100)


async def test_without_a_folder_and_without_downloads_nothing_is_loaded() -> None:
    files = AdapterFiles(no_folder, hub=None, max_size=100)
    with pytest.raises(AdapterRefused, match="started without --adapter-dir"):
        await files.file("a.gguf")
    with pytest.raises(AdapterRefused, match="started without --allow-adapter-downloads"):
        await files.file("hf:owner/repository")


def test_a_file_is_not_read_where_it_is_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest_of(folder / "a.gguf", 4)
    monkeypatch.setattr("octavo.core.adapters.digest_of", lambda _: pytest.fail("read"))
    with pytest.raises(AdapterRefused, match=r"^The adapter's file has 4 bytes; this server takes at most 3\.$"):
        digest_of(folder / "a.gguf", 3)
