"""How a name in a request is understood."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_builders import PuppetEngine

from octavo.core.adapters import Adapter
from octavo.core.limits import Limits
from octavo.errors import AdapterNotFound, AdapterRefused, EngineUnavailable, InvalidRequest, ModelNotFound
from octavo.service import ModelRegistry, ServedAdapter, ServedModel
from octavo.service.names import is_adapter_id
from octavo.service.registry import Reservation


def registry_of(adapters: dict[str, tuple[str, ...]]) -> ModelRegistry:
    """Models with the ids of their adapters."""
    registry = ModelRegistry([ServedModel(id, PuppetEngine(), created=1) for id in adapters], Limits())
    for model in registry:
        for id in adapters[model.id]:
            registry.reserve(id, Reservation.LOADING)
            registry.add(ServedAdapter(id, model, Adapter(f"{id}#1", "/a.gguf", "digest"), created=2))
    return registry


@pytest.fixture
def registry() -> ModelRegistry:
    return registry_of({"base": ("zorp", "owner/pirate:v2"), "other:7b": ("polite",)})


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("base", "base"),
        ("other:7b", "other:7b"),
        ("zorp", "zorp"),
        ("owner/pirate:v2", "owner/pirate:v2"),
        ("base:zorp", "zorp"),
        ("base:owner/pirate:v2", "owner/pirate:v2"),
        ("other:7b:polite", "polite"),
    ],
)
def test_a_model_an_adapter_and_both_together_are_names(registry: ModelRegistry, name: str, found: str) -> None:
    assert registry.get(name).id == found


@pytest.mark.parametrize(
    "name",
    [
        *("", ":", "base:", ":zorp", "zorp:base", "base:base", "base:zorp:", "base::zorp", "base:polite", "other:zorp"),
        *("other:7b:zorp", "Zorp", "zorp ", "base:nobody", "base/zorp"),
    ],
)
def test_a_name_of_nothing_is_refused_and_never_answered_by_a_model(registry: ModelRegistry, name: str) -> None:
    with pytest.raises(ModelNotFound) as refusal:
        registry.get(name)
    assert refusal.value.code == "model_not_found"
    assert refusal.value.param == "model"
    assert refusal.value.message.endswith("Served: base, other:7b, zorp, owner/pirate:v2, polite.")


def test_an_id_wins_over_the_syntax_of_model_and_adapter() -> None:
    registry = registry_of({"gpt-oss": ("120b", "20b"), "gpt-oss:120b": ("gpt-oss:20b",)})
    assert registry.get("gpt-oss:120b").base.id == "gpt-oss:120b"
    assert registry.get("gpt-oss:20b").base.id == "gpt-oss:120b"
    assert registry.get("gpt-oss", peft="120b").id == "120b"


def test_peft_names_an_adapter_of_the_model(registry: ModelRegistry) -> None:
    for name in ("base", "zorp", "base:zorp"):
        assert registry.get(name, peft="zorp").id == "zorp"


@pytest.mark.parametrize("peft", ["", "nobody", "polite", "base", "base:zorp", "ZORP"])
@pytest.mark.parametrize("name", ["base", "zorp"])
def test_an_adapter_that_the_model_does_not_have_is_not_found(registry: ModelRegistry, name: str, peft: str) -> None:
    with pytest.raises(AdapterNotFound) as refusal:
        registry.get(name, peft)
    assert refusal.value.code == "peft_not_found"
    assert refusal.value.param == "peft"
    assert refusal.value.message == f"The model 'base' has no adapter {peft!r}. There are: zorp, owner/pirate:v2."


def test_a_model_without_adapters_says_so() -> None:
    with pytest.raises(AdapterNotFound, match=r"^The model 'm' has no adapter 'x'. There are none.$"):
        registry_of({"m": ()}).get("m", "x")


@pytest.mark.parametrize("name", ["zorp", "base:zorp"])
def test_two_adapters_at_once_are_refused(registry: ModelRegistry, name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        registry.get(name, peft="owner/pirate:v2")
    assert refusal.value.param == "peft"
    assert refusal.value.code == "invalid_request"


def test_an_unknown_model_is_said_before_an_unknown_adapter(registry: ModelRegistry) -> None:
    with pytest.raises(ModelNotFound) as refusal:
        registry.get("nobody", peft="nobody")
    assert refusal.value.param == "model"


@pytest.mark.parametrize(("name", "peft"), [("first", None), ("base:first", None), ("base", "first")])
def test_an_adapter_that_the_server_was_started_with_is_unavailable_until_it_is_loaded(
    registry: ModelRegistry, name: str, peft: str | None
) -> None:
    registry.reserve("first", Reservation.AWAITED)
    assert registry.awaited == ["first"]
    with pytest.raises(EngineUnavailable, match="'first' is still being loaded"):
        registry.get(name, peft)


def test_an_adapter_that_a_client_loads_is_not_there_before_it_is_loaded(registry: ModelRegistry) -> None:
    registry.reserve("new", Reservation.LOADING)
    with pytest.raises(ModelNotFound):
        registry.get("new")
    assert registry.awaited == []


def test_a_model_is_chosen_by_its_own_id_or_is_the_first(registry: ModelRegistry) -> None:
    assert registry.model(None).id == "base"
    assert registry.model("other:7b").id == "other:7b"
    for name in ("zorp", "base:zorp", "nobody"):
        with pytest.raises(ModelNotFound) as refusal:
            registry.model(name)
        assert refusal.value.message == f"There is no model {name!r} here, only base, other:7b."


def test_a_name_that_is_taken_is_not_given_again_before_it_is_released(registry: ModelRegistry) -> None:
    registry.reserve("new", Reservation.LOADING)
    registry.withdraw("polite")
    for id, reason in {
        "base": "is the name of a served model",
        "zorp": "is already served; delete it first",
        "new": "is being loaded by another request",
        "polite": "is being deleted",
    }.items():
        with pytest.raises(AdapterRefused, match=reason) as refusal:
            registry.reserve(id, Reservation.LOADING)
        assert refusal.value.param == "id"
    registry.release("polite")
    registry.reserve("polite", Reservation.LOADING)


@pytest.mark.parametrize("id", ["base", "nobody", "base:zorp", ""])
def test_only_an_adapter_can_be_withdrawn_and_by_its_id(registry: ModelRegistry, id: str) -> None:
    with pytest.raises(AdapterNotFound) as refusal:
        registry.withdraw(id)
    assert refusal.value.param is None
    assert len(registry.adapters) == 3


NAMES = st.text("ab:", min_size=1, max_size=4)


@given(st.dictionaries(NAMES, st.sets(NAMES, max_size=3), min_size=1, max_size=3), NAMES, st.none() | NAMES)
def test_an_answer_is_always_by_what_was_named(given_ids: dict[str, set[str]], name: str, peft: str | None) -> None:
    taken = set(given_ids)
    adapters: dict[str, tuple[str, ...]] = {}
    for model, ids in given_ids.items():
        adapters[model] = tuple(sorted(ids - taken))
        taken |= ids
    pairs = {f"{model}:{id}": id for model, ids in adapters.items() for id in ids}
    try:
        served = registry_of(adapters).get(name, peft)
    except (ModelNotFound, InvalidRequest):
        if peft is None:
            assert name not in taken | set(pairs)
        return
    if peft is not None:
        assert served.id == peft
        assert peft in adapters[served.base.id]
    elif name in taken:
        assert served.id == name
    else:
        assert name == f"{served.base.id}:{served.id}"


@pytest.mark.parametrize("id", ["a", "7", "Zorp", "owner/name:v1.2", "a@b+c-d_e", "x" * 200, "a..", "a//b", "a:"])
def test_names_that_an_adapter_may_have(id: str) -> None:
    assert is_adapter_id(id)


@pytest.mark.parametrize(
    "id", ["", "x" * 201, "-a", ".a", "/a", ":a", "_a", "a b", "a\n", "a\0", "é", "a=b", "a?b", "a#b", "a%2fb", "a\\b"]
)
def test_names_that_an_adapter_may_not_have(id: str) -> None:
    assert not is_adapter_id(id)
