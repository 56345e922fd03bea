"""A conversation at the terminal."""

import shlex
from collections.abc import Iterable, Sequence

from octavo.cli.answer import AnswerPrinter
from octavo.cli.assistant import Assistant
from octavo.cli.conversation import Conversation, ImagePart, Message, question
from octavo.cli.image_files import image_part
from octavo.cli.terminal import write_aside, write_error
from octavo.errors import ConfigError, OctavoError

EXIT = "/exit"
HELP = """\
/image FILE…  show images with the next message: files or URLs, quoted as in a shell
/clear        forget the conversation
/exit         end it; Ctrl-D does so too
/help         show this
Ctrl-C stops an answer. A line that begins with a space is never a command.
"""


class ChatSession:
    """Carries out the lines that a person types: messages and commands. images: for the first message."""

    def __init__(self, assistant: Assistant, conversation: Conversation, images: Sequence[ImagePart] = ()) -> None:
        self._assistant = assistant
        self._conversation = conversation
        self._images = list(images)

    def run(self, lines: Iterable[str]) -> None:
        """Until the lines end or one of them says so. What goes wrong with one is said, and the next one is taken."""
        write_aside(f"{self._assistant.model} answers. /help lists the commands, Ctrl-D ends the conversation.\n")
        for line in lines:
            if line.rstrip() == EXIT:
                return
            try:
                self._carry_out(line)
            except OctavoError as error:
                write_error(error.message)

    def _carry_out(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        if command.startswith("/"):
            self._obey(command, argument)
        elif line.strip():
            self._take_turn(line)

    def _obey(self, command: str, argument: str) -> None:
        match command:
            case "/image":
                self._add_images(argument)
            case "/clear":
                self._clear()
            case "/help":
                write_aside(HELP)
            case _:
                raise ConfigError(f"There is no command {command}; /help lists them. Messages may begin with a space.")

    def _add_images(self, argument: str) -> None:
        try:
            names = shlex.split(argument)
        except ValueError as error:
            raise ConfigError(f"/image {argument}: {error}.") from error
        if not names:
            raise ConfigError("/image needs a file or a URL.")
        self._images += [image_part(name) for name in names]
        write_aside(f"The next message has {len(self._images)} image{'s' if len(self._images) > 1 else ''}.\n")

    def _clear(self) -> None:
        self._conversation.clear()
        self._images.clear()

    def _take_turn(self, text: str) -> None:
        asked = question(text, self._images)
        self._images.clear()
        answer = self._shown_answer(asked)
        if answer is not None:
            self._conversation.add(asked, answer)

    def _shown_answer(self, asked: Message) -> str | None:
        """What came of it before it ended or Ctrl-C stopped it; None where it was stopped before it began."""
        printer = AnswerPrinter()
        try:
            printer.show(self._assistant.answer(self._conversation.followed_by(asked)))
        except KeyboardInterrupt:
            if not printer.text:
                write_aside("\n")
                return None
        finally:
            printer.end_line()
        return printer.text
