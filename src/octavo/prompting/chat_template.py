"""A conversation as the text that a model was trained on."""

from collections.abc import Sequence

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
        self, messages: Sequence[Message], *, add_generation_prompt: bool = True, bos_token: str, eos_token: str
    ) -> str:
        """The prompt for a conversation. Raises TemplateError: refused by the template, failed, or over its bounds."""
        variables: dict[str, object] = {
            "messages": [_as_dict(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            "bos_token": bos_token,
            "eos_token": eos_token,
            # Templates ask whether these are none; an undefined variable is not.
            "tools": None,
            "documents": None,
        }
        return TemplateSandbox(RenderGuard(self._deadline)).render(self._code, variables)


def _as_dict(message: Message) -> dict[str, str]:
    optional = {"name": message.name, "tool_call_id": message.tool_call_id}
    given = {field: value for field, value in optional.items() if value is not None}
    return {"role": message.role.value, "content": message.content, **given}
