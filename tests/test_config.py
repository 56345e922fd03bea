"""Where settings come from, and what is said about bad ones."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.config import Settings, key_for_calls, load_settings, options
from octavo.errors import ConfigError

PORTS = st.none() | st.integers(0, 65535)


@pytest.fixture(autouse=True)
def clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for option in options():
        monkeypatch.delenv(f"OCTAVO_{option.name.upper()}", raising=False)


def write_file(text: str, name: str = "octavo.toml") -> None:
    Path(name).write_text(text, encoding="utf-8")


def test_without_any_source_every_option_has_its_default() -> None:
    settings = load_settings({})

    assert settings == Settings()
    assert (settings.host, settings.port, settings.models, settings.engine) == ("127.0.0.1", 8080, (), "llama")


@given(file=PORTS, variable=PORTS, flag=PORTS)
def test_a_flag_wins_over_the_environment_which_wins_over_the_file(
    tmp_path_factory: pytest.TempPathFactory, file: int | None, variable: int | None, flag: int | None
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        if file is not None:
            write_file(f"port = {file}")
        if variable is not None:
            patch.setenv("OCTAVO_PORT", str(variable))
        settings = load_settings({} if flag is None else {"port": str(flag)})

    given_ports = [port for port in (flag, variable, file) if port is not None]
    assert settings.port == (given_ports or [8080])[0]


def test_names_in_the_file_may_be_written_as_flags_are() -> None:
    write_file("drain-timeout = 5\nmax_n = 3\n")

    settings = load_settings({})

    assert (settings.drain_timeout, settings.max_n) == (5.0, 3)


def test_another_file_can_be_named_by_flag_or_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    write_file("port = 1")
    write_file("port = 2", "other.toml")
    write_file("port = 3", "third.toml")

    monkeypatch.setenv("OCTAVO_CONFIG", "other.toml")

    assert load_settings({}).port == 2
    assert load_settings({"config": "third.toml"}).port == 3


def test_an_empty_variable_is_an_absent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_PORT", "")

    assert load_settings({}).port == 8080


def test_a_model_in_the_environment_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_MODELS", "my model.gguf")

    assert load_settings({}).models == ("my model.gguf",)


def test_a_list_is_a_list_in_the_file_and_of_repeated_flags_and_json_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_file("content-filter = ['a, b', '\\d{3}']")
    assert load_settings({}).content_filter == ("a, b", r"\d{3}")

    monkeypatch.setenv("OCTAVO_CONTENT_FILTER", r'["[a-z]", "\\d"]')
    assert load_settings({}).content_filter == ("[a-z]", r"\d")

    assert load_settings({"content_filter": ["[", "c"]}).content_filter == ("[", "c")

    monkeypatch.setenv("OCTAVO_ADAPTER", '["zorp=my folder/a,b=c.gguf", "b=hf:owner/repo"]')
    assert load_settings({}).adapter == ("zorp=my folder/a,b=c.gguf", "b=hf:owner/repo")
    assert load_settings({}).adapters == [("zorp", "my folder/a,b=c.gguf"), ("b", "hf:owner/repo")]


@pytest.mark.parametrize("text", ["a,b", "a b", " a,  b ", "a\nb"])
def test_keys_and_names_in_the_environment_have_commas_or_spaces_between_them(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api_key", "allow_hosts", "allow_origins"):
        monkeypatch.setenv(f"OCTAVO_{name.upper()}", text)

    settings = load_settings({})

    assert settings.api_key == settings.allow_hosts == settings.allow_origins == ("a", "b")
    assert key_for_calls() == "a"


@pytest.mark.parametrize(
    ("file", "variable", "flags", "is_set"),
    [
        ("", "", {}, False),
        ("api-key = ['a']", "", {}, True),
        ("api-key = 'a'", "", {}, True),
        ("", "a", {}, True),
        ("", "", {"api_key": ["a"]}, True),
        ("", "", {"keys_file": "no.json"}, True),
    ],
)
def test_a_server_needs_a_key_where_there_are_some_or_a_file_of_them(
    file: str, variable: str, flags: dict[str, object], is_set: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(file)
    if variable:
        monkeypatch.setenv("OCTAVO_API_KEY", variable)

    assert load_settings(flags).has_keys == is_set


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("OCTAVO_API_KEY", " , ", "OCTAVO_API_KEY: must have a key."),
        ("OCTAVO_API_KEY", "", "OCTAVO_API_KEY: must have a key."),
        ("OCTAVO_KEYS_FILE", "", "OCTAVO_KEYS_FILE '': must be the path of a file."),
    ],
)
def test_keys_that_came_out_empty_open_nothing(
    name: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)

    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        load_settings({})


def test_a_key_that_no_header_can_carry_is_an_error_that_names_where_it_was_set_but_not_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OCTAVO_API_KEY", "fine,schlüssel")

    with pytest.raises(ConfigError, match=r"^OCTAVO_API_KEY: must be 1 to 512 visible ASCII characters"):
        load_settings({})


def test_settings_are_shown_without_keys_and_so_are_errors() -> None:
    assert "secret" not in repr(load_settings({"api_key": ["secret"], "port": "1"}))
    with pytest.raises(ConfigError) as caught:
        load_settings({"api_key": [b"secret", 3], "port": "x"})

    assert "--api-key: must be a valid string" in caught.value.message
    assert "secret" not in caught.value.message


def test_sizes_may_have_units() -> None:
    assert load_settings({"max_body": "2MiB"}).max_body == 2 * 2**20
    assert load_settings({"max_body": "1000"}).max_body == 1000


def test_the_name_of_a_log_level_may_be_in_any_case() -> None:
    assert load_settings({"log_level": "WARNING"}).log_level == "warning"


@pytest.mark.parametrize(
    ("file", "variables", "flags", "message"),
    [
        ("port = -1", {}, {}, "port in octavo.toml -1: must be greater than or equal to 0."),
        ("", {"OCTAVO_PORT": "x"}, {}, "OCTAVO_PORT 'x': must be a valid integer"),
        ("port = -1", {"OCTAVO_PORT": "x"}, {"port": "y"}, "--port 'y': must be a valid integer"),
        ("", {}, {"log_level": "loud"}, "--log-level 'loud': must be 'debug', 'info', 'warning' or 'error'."),
        ("", {}, {"key_tokens": "1" + "0" * 400}, f"--key-tokens '1{'0' * 400}': must be "),
        ("", {}, {"key_requests": "1000000000001"}, "--key-requests '1000000000001': must be less than or equal to"),
        ("", {}, {"slots": "257"}, "--slots '257': must be less than or equal to 256."),
        ("", {}, {"ctx": "0"}, "--ctx '0': must be greater than or equal to 2."),
        ("", {}, {"drain_timeout": "inf"}, "--drain-timeout 'inf': must be a finite number."),
        ("", {}, {"request_timeout": "0"}, "--request-timeout '0': must be greater than 0."),
        ("", {"OCTAVO_CONTENT_FILTER": "[a-z]"}, {}, "OCTAVO_CONTENT_FILTER '[a-z]': must be a list; in the env"),
        ("", {"OCTAVO_CONTENT_FILTER": "3"}, {}, "OCTAVO_CONTENT_FILTER '3': must be a list; in the env"),
        ("content_filter = [3]", {}, {}, "content_filter in octavo.toml 3: must be a valid string."),
        ("", {"OCTAVO_ADAPTER": "zorp=a.gguf"}, {}, "OCTAVO_ADAPTER 'zorp=a.gguf': must be a list; in the env"),
        ("", {}, {"adapter": ["zorp"]}, "--adapter 'zorp': must be ID=PATH."),
        ("", {}, {"adapter": ["a=b", "=x"]}, "--adapter 'a=b' '=x': must be ID=PATH."),
        ("adapter = ['a=']", {}, {}, "adapter in octavo.toml 'a=': must be ID=PATH."),
        ("", {}, {"adapter": ["a=x", "a=y"]}, "--adapter 'a=x' 'a=y': two adapters have the same id."),
        ("", {}, {"engine": "vllm"}, "--engine 'vllm': this engine is not yet supported"),
        ("", {}, {"models": ["hf:a/b"]}, "MODEL 'hf:a/b': downloads from Hugging Face are not yet supported"),
        ("", {}, {"models": ["a", "b"]}, "MODEL 'a' 'b': more than one model is not yet supported."),
        ("", {}, {"scripted_text": "x"}, "The llama engine has no --scripted-text."),
        ("threads = 2", {}, {"engine": "scripted"}, "The scripted engine has no --threads."),
        ("deterministic = true", {}, {"engine": "scripted"}, "The scripted engine has no --deterministic."),
        ("draft = 'a.gguf'", {}, {"engine": "scripted"}, "The scripted engine has no --draft."),
        ("speculation = false", {}, {"draft": "a.gguf"}, "A --draft model is of no use with --no-speculation"),
        ("prt = 1\nhots = 2", {}, {}, "Unknown settings in octavo.toml: prt, hots."),
        ("config = 'x'", {}, {}, "Unknown settings in octavo.toml: config."),
        ("port = ", {}, {}, "The settings file octavo.toml is not TOML:"),
    ],
)
def test_a_bad_setting_is_named_with_its_source_and_value(
    file: str, variables: dict[str, str], flags: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(file)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as caught:
        load_settings(flags)

    assert caught.value.message.startswith(message)


def test_all_bad_settings_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings({"port": "x", "slots": "y"})

    assert "--port 'x'" in caught.value.message
    assert "--slots 'y'" in caught.value.message


def test_every_option_is_described() -> None:
    assert all(option.help.endswith(".") for option in options())


def test_the_readme_lists_every_option() -> None:
    readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")

    missing = [option.flag for option in options() if f"`{option.flag}`" not in readme and not option.is_argument]

    assert missing == []
