"""Adapters are tried where they can do no harm."""

from pathlib import Path

import pytest

from numeric.tiny_gguf import TinyModel, write_tiny_gguf
from numeric.tiny_lora import write_lora, write_tiny_lora
from octavo.engine.runners.llama_cpp import adapter_trial
from octavo.engine.runners.llama_cpp.adapter_trial import try_adapter
from octavo.errors import AdapterRefused
from support.bad_adapters import pair, with_one, write_bad_adapter


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return write_tiny_gguf(tmp_path_factory.mktemp("tried") / "tiny.gguf")


def refusal(model: Path, adapter: Path) -> str:
    with pytest.raises(AdapterRefused) as refused:
        try_adapter(model, adapter)
    assert str(adapter.parent) not in refused.value.message, "paths are nobody's business"
    return refused.value.message


def test_an_adapter_of_the_model_passes(tiny: TinyModel, tmp_path: Path) -> None:
    write_tiny_lora(tmp_path / "good.gguf", tiny)
    try_adapter(tiny.path, tmp_path / "good.gguf")


def test_an_adapter_for_another_model_is_refused_with_llama_cpp_s_reason(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    write_lora(path, pair("blk.99.attn_q.weight"))
    assert "blk.99.attn_q.weight" in refusal(tiny.path, path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not an adapter" * 100])
def test_what_is_no_gguf_file_is_refused(content: bytes, tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "wrong.gguf"
    path.write_bytes(content)
    assert refusal(tiny.path, path).startswith("The file is no adapter for this model: ")


def test_a_file_that_is_not_there_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    refusal(tiny.path, tmp_path / "missing.gguf")


def test_a_file_that_ends_the_process_that_reads_it_is_refused_by_its_end(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "deadly.gguf"
    write_bad_adapter("an alpha of another type", path, tiny)
    assert "did not survive" in refusal(tiny.path, path)


def test_an_adapter_with_which_nothing_can_be_computed_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "nan.gguf"
    write_lora(path, with_one(float("nan")))
    assert "not numbers" in refusal(tiny.path, path)


def test_an_adapter_that_takes_too_long_is_refused(
    tiny: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_lora(tmp_path / "slow.gguf", tiny)
    monkeypatch.setattr(adapter_trial, "SECONDS", 0)
    assert "within 0 s" in refusal(tiny.path, tmp_path / "slow.gguf")
