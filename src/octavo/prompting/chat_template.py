"""A conversation as the text that a model was trained on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType

from octavo.core.messages import Message
from octavo.core.tools import Tool
from octavo.prompting.guard import RenderGuard
from octavo.prompting.sandbox import TemplateSandbox
from octavo.prompting.template_values import message_value, tool_value
from octavo.prompting.tool_history import shaped, uses_tools
from octavo.prompting.tool_shape import NO_TOOL_SHAPE, ToolShape
from octavo.prompting.tool_trials import find_shape

DEFAULT_CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""ChatML, for models that bring no template."""


class ChatTemplate:
    """A Jinja chat template of a model file, with the variables and extensions that Hugging Face gives to one.

    source: the template. deadline: seconds of the processor's time that a rendering may take.
    Raises TemplateError where the source is not a template.
    """

    def __init__(self, source: str, *, deadline: float = 5.0) -> None:
        self.source = source
        self.is_quick = False
        """Whether its rendering of the last short conversation kept nobody waiting: see encode_chat."""
        self._deadline = deadline
        self._sandboxes = [TemplateSandbox()]  # those that no rendering is in
        self._code = self._sandboxes[0].compiled(source)

    @cached_property
    def tool_shape(self) -> ToolShape:
        """In what shape it takes tools, calls and results, found by rendering it. Raises TemplateError."""
        return find_shape(self._in_shape)

    def render(
        self,
        messages: Sequence[Message],
        *,
        bos_token: str,
        eos_token: str,
        variables: Mapping[str, object] = MappingProxyType({}),
        tools: Sequence[Tool] = (),
        deadline: float = math.inf,
    ) -> str:
        """The prompt for a conversation. Raises TemplateError: refused by the template, failed, or over its bounds.

        variables: further ones for the template; of those that it always gets, they may change add_generation_prompt
            and documents.
        tools: what may be called. Where the template has no place for them, or for calls and results in the messages,
            they are written into the messages' texts; see tool_prompt.
        deadline: seconds; the template's own holds where it is shorter.
        """
        has_tools = bool(tools) or any(map(uses_tools, messages))
        shape = self.tool_shape if has_tools else NO_TOOL_SHAPE
        own = {"bos_token": bos_token, "eos_token": eos_token}
        return self._in_shape(messages, tools, shape, {**variables, **own}, deadline)

    def _in_shape(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        shape: ToolShape,
        variables: Mapping[str, object] = MappingProxyType({"bos_token": "", "eos_token": ""}),
        deadline: float = math.inf,
    ) -> str:
        defaults: dict[str, object] = {"add_generation_prompt": True, "documents": None}
        shown_tools = [tool_value(tool, shape) for tool in tools] if shape.knows_tools else []
        own: dict[str, object] = {
            "messages": [message_value(message, shape) for message in shaped(messages, tools, shape)],
            "tools": shown_tools or None,  # templates ask whether it is none; an undefined variable is not
        }
        guard = RenderGuard(min(deadline, self._deadline))
        with self._sandbox() as sandbox:
            return sandbox.render(self._code, {**defaults, **variables, **own}, guard)

    @contextmanager
    def _sandbox(self) -> Iterator[TemplateSandbox]:
        """One for this rendering alone; others may be in other threads."""
        try:
            sandbox = self._sandboxes.pop()
        except IndexError:
            sandbox = TemplateSandbox()
        try:
            yield sandbox
        finally:
            self._sandboxes.append(sandbox)
