"""`octavo chat`: messages go to a running server, its answers come to the terminal."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from octavo.cli.answer import AnswerPrinter
from octavo.cli.assistant import Assistant
from octavo.cli.chat_session import ChatSession
from octavo.cli.client import ServerClient
from octavo.cli.conversation import Conversation, Message, question
from octavo.cli.image_files import image_part
from octavo.cli.sampling import Sampling
from octavo.cli.terminal import read_text, typed_lines

PROMPT = "> "


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """None leaves the choice to the server. peft: id of an adapter."""

    model: str | None
    system: str | None
    peft: str | None
    sampling: Sampling


def chat(text: str | None, images: Sequence[str], *, url: str, key: str | None, options: ChatOptions) -> None:
    """Get one text answered, the argument or standard input; where that is a terminal, have a conversation.

    images: files and URLs, for the first message. Raises CallFailed and ConfigError.
    """
    parts = [image_part(image) for image in images]
    conversation = Conversation(options.system)
    is_session = text is None and sys.stdin.isatty()
    asked = None if is_session else question(read_text(text, noun="question"), parts)
    with ServerClient(url, key) as client:
        assistant = Assistant(client, options.model or client.first_model(), options.peft, options.sampling)
        if asked is None:
            ChatSession(assistant, conversation, parts).run(typed_lines(PROMPT))
        else:
            _ask(assistant, conversation.followed_by(asked))


def _ask(assistant: Assistant, messages: Sequence[Message]) -> None:
    printer = AnswerPrinter()
    try:
        printer.show(assistant.answer(messages))
    finally:
        if sys.stdout.isatty():
            printer.end_line()
