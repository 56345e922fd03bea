"""A conversation as the text that a model was trained on."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from octavo.core.messages import Message
from octavo.prompting.guard import RenderGuard
from octavo.prompting.sandbox import TemplateSandbox

DEFAULT_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""ChatML, for models that bring no template."""


class ChatTemplate:
    """A Jinja chat template of a model file, with the variables and extensions that Hugging Face gives to one.

    source: the template. deadline: seconds that a rendering may take.
    Raises TemplateError where the source is not a template.
    """

    def __init__(self, source: str, *, deadline: float = 2.0) -> None:
        self.source = source
        self._deadline = deadline
        self._code = TemplateSandbox(RenderGuard(deadline)).compiled(source)

    def render(
        self,
        messages: Sequence[Message],
        *,
        bos_token: str,
        eos_token: str,
        variables: Mapping[str, object] = MappingProxyType({}),
    ) -> str:
        """The prompt for a conversation. Raises TemplateError: refused by the template, failed, or over its bounds.

        variables: further ones for the template; of those that it always gets, they may change add_generation_prompt
            and documents.
        """
        defaults: dict[str, object] = {"add_generation_prompt": True, "documents": None}
        own: dict[str, object] = {
            "messages": [_as_dict(message) for message in messages],
            "bos_token": bos_token,
            "eos_token": eos_token,
            "tools": None,  # templates ask whether it is none; an undefined variable is not
        }
        return TemplateSandbox(RenderGuard(self._deadline)).render(self._code, {**defaults, **variables, **own})


def _as_dict(message: Message) -> dict[str, str]:
    optional = {
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        # the names by which templates of different families look for it
        "reasoning_content": message.reasoning,
        "reasoning": message.reasoning,
        "thinking": message.reasoning,
    }
    given = {field: value for field, value in optional.items() if value is not None}
    return {"role": message.role.value, "content": message.content, **given}
