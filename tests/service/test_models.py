"""What is served, by name."""

import logging

import pytest

from octavo.core.limits import Limits
from octavo.core.messages import Message, Role
from octavo.engine.base import EngineInfo
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import ModelNotFound
from octavo.service import ModelRegistry, ServedModel


class TemplatedEngine(ScriptedEngine):
    """An engine whose model brings a chat template; a restart may bring another one."""

    template: str | None = "first"

    @property
    def info(self) -> EngineInfo:
        return EngineInfo(context_length=100, num_slots=1, chat_template=self.template, fingerprint="fp")


def rendered(model: ServedModel) -> str:
    return model.chat_template.render([Message(Role.USER, "hello")], bos_token="", eos_token="")


def served(name: str) -> ServedModel:
    return ServedModel(name, ScriptedEngine(ScriptedSpec()), created=1)


def test_a_model_is_found_by_its_name_and_models_keep_their_order() -> None:
    models = [served("b"), served("a")]
    registry = ModelRegistry(models, Limits())
    assert registry.get("a") is models[1]
    assert list(registry) == models


def test_an_unknown_name_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ModelNotFound) as refusal:
        ModelRegistry([served("b"), served("a")], Limits()).get("c")
    assert refusal.value.message == "The model 'c' is not served here. Served: b, a."
    assert refusal.value.param == "model"


async def test_a_model_is_ready_while_its_engine_is() -> None:
    model = served("a")
    assert model.is_ready
    await model.engine.close()
    assert not model.is_ready


def test_a_model_without_a_chat_template_gets_the_default_one_which_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    model = served("a")
    assert model.chat_template is model.chat_template
    assert "hello" in rendered(model)
    assert [record.getMessage() for record in caplog.records] == [
        "model a has no chat template, the default one (ChatML) is used"
    ]


def test_a_chat_template_is_compiled_once_and_again_when_the_engine_brings_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    engine = TemplatedEngine(ScriptedSpec())
    model = ServedModel("a", engine, created=1)
    template = model.chat_template
    assert rendered(model) == "first"
    assert model.chat_template is template
    engine.template = "second"
    assert rendered(model) == "second"
    assert caplog.records == []


def test_users_share_what_is_computed_unless_they_are_isolated() -> None:
    shared = ServedModel("m", ScriptedEngine(ScriptedSpec()), 0)
    assert shared.cache_key("", "a", "job-1") == shared.cache_key("", None, "job-2")
    isolated = ServedModel("m", ScriptedEngine(ScriptedSpec()), 0, isolates_users=True)
    assert isolated.cache_key("", "a", "job-1") == isolated.cache_key("", "a", "job-2")
    others = [isolated.cache_key("", user, job) for user, job in (("b", "job-1"), (None, "job-1"), (None, "job-2"))]
    assert len({isolated.cache_key("", "a", "job-1"), *others}) == 4
    assert len(isolated.cache_key("", "a" * 1_000_000, "job-1")) < 100
