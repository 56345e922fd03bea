"""What clients can ask for."""

import logging
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b

from octavo.engine.base import Engine, EngineInfo, EngineState, Tokenizer
from octavo.prompting import DEFAULT_CHAT_TEMPLATE, ChatTemplate
from octavo.streaming.tool_formats import GENERIC, ToolFormat, format_of

_logger = logging.getLogger(__name__)


class ServedModel:
    """An engine under the name that clients know.

    created: Unix time in seconds.
    isolates_users: whether computed tokens are shared only between requests of one user, and with nobody by those that
        name none.
    `info`, `tokenizer`, `chat_template` and `tool_format` raise EngineUnavailable until the engine has been ready once.
    """

    def __init__(self, id: str, engine: Engine, created: int, *, isolates_users: bool = False) -> None:
        self.id = id
        self.engine = engine
        self.created = created
        self._isolates_users = isolates_users
        self._template: tuple[str | None, ChatTemplate] | None = None

    @property
    def base(self) -> "ServedModel":
        """The model itself; of an adapter, the one that it changes."""
        return self

    @property
    def adapter_key(self) -> str:
        """By which the engine knows the adapter that is used; empty where none is."""
        return ""

    def in_use(self) -> AbstractContextManager[None]:
        """As long as the block runs, requests may be computed. Raises AdapterNotFound where it is being unloaded."""
        return nullcontext()

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self.engine.tokenizer

    def cache_key(self, key_id: str, user: str | None, job_id: str) -> str:
        """Requests with the same one share what is computed of their prompts; those of different keys never do."""
        if not self._isolates_users:
            return key_id
        narrow = f"job {job_id}" if user is None else f"user {blake2b(user.encode(), digest_size=16).hexdigest()}"
        return f"{key_id} {narrow}"

    @property
    def is_ready(self) -> bool:
        return self.engine.health().state is EngineState.READY

    @property
    def chat_template(self) -> ChatTemplate:
        """The model's own template, or the default one where it has none. Raises TemplateError if it is no template."""
        source = self.info.chat_template
        if self._template is None or self._template[0] != source:
            self._template = (source, self._compile(source))
        return self._template[1]

    @property
    def tool_format(self) -> ToolFormat:
        """How the model writes calls, as its template shows, or as it is told to where that has no place for tools.

        Raises as chat_template does, and TemplateError where the template cannot be rendered.
        """
        template = self.chat_template
        return format_of(template.source) if template.tool_shape.knows_tools else GENERIC

    def _compile(self, source: str | None) -> ChatTemplate:
        if source is None:
            _logger.info("model %s has no chat template, the default one (ChatML) is used", self.id)
        return ChatTemplate(DEFAULT_CHAT_TEMPLATE if source is None else source)
