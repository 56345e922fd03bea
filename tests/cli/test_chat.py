"""`octavo chat` against real servers: the scripted one, and one that remembers what it was asked."""

import base64
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from support.processes import OCTAVO, SECONDS, Server, clean_environment, run_octavo, serving

from .recording import CHAT, Answer, RecordingServer, recording
from .typing_person import CTRL_C, CTRL_D, TypingPerson, typing_person

FOX = "The quick brown fox jumps over the lazy dog."
REASONED = Answer.stream(
    {"role": "assistant"}, {"reasoning_content": "hm"}, {"reasoning_content": "m"}, {"content": "42"}
)
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif", "BMP": "image/bmp"}
PROMPT = "> "
DIM, NORMAL = "\x1b[2m", "\x1b[0m"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_for("Ctrl-C stops the server")


@pytest.fixture
def recorder() -> Iterator[RecordingServer]:
    with recording() as server:
        server.answers["POST", CHAT] = Answer.stream({"role": "assistant"}, {"content": "fine"})
        yield server


@pytest.fixture
def person(recorder: RecordingServer, tmp_path: Path) -> Iterator[TypingPerson]:
    """In a conversation with the recorder."""
    with typing_person("chat", "--url", recorder.url, folder=tmp_path) as person:
        person.wait_for(PROMPT)
        yield person


def picture(folder: Path, format: str = "PNG") -> Path:
    """A file whose name does not tell its format."""
    path = folder / f"a picture of {format}"
    Image.new("RGB", (2, 2), "red").save(path, format)
    return path


def data_url(file: Path, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(file.read_bytes()).decode()}"


def image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def said(*texts: str) -> list[dict[str, str]]:
    """A conversation that the user begins."""
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


def ask(recorder: RecordingServer, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return run_octavo("chat", "hi", "--url", recorder.url, *arguments, folder=folder)


class TestOneQuestion:
    def test_is_the_argument(self, server: Server, tmp_path: Path) -> None:
        done = run_octavo("chat", "hi", "--url", server.url, folder=tmp_path)

        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, FOX, b"")

    def test_is_standard_input_where_that_is_no_terminal(self, recorder: RecordingServer, tmp_path: Path) -> None:
        done = run_octavo("chat", "--url", recorder.url, folder=tmp_path, prompt="héllo\n\n".encode())

        assert (done.returncode, done.stdout) == (0, b"fine")
        assert recorder.bodies == [{"model": "first", "messages": said("héllo\n"), "stream": True}]

    def test_is_asked_with_all_that_the_options_say(self, recorder: RecordingServer, tmp_path: Path) -> None:
        options = {"--model": "m", "--peft": "zorp", "--max-tokens": "5", "--temperature": "0.5", "--top-p": "0.9"}
        flags = [part for option in options.items() for part in option]
        done = ask(recorder, tmp_path, *flags, "--seed", "7", "--stop", "a", "--stop", "b", "--system", "Be brief.")

        assert done.returncode == 0
        assert recorder.bodies == [
            {
                "model": "m",
                "messages": [{"role": "system", "content": "Be brief."}, *said("hi")],
                "peft": "zorp",
                "max_tokens": 5,
                "temperature": 0.5,
                "top_p": 0.9,
                "seed": 7,
                "stop": ["a", "b"],
                "stream": True,
            }
        ]

    def test_has_an_answer_that_is_shown_as_it_comes_and_that_ctrl_c_ends(self, server: Server, tmp_path: Path) -> None:
        command = (OCTAVO, "chat", '@script {"hang_at": 2}\n', "--url", server.url)
        with subprocess.Popen(
            command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.read(8) == b"The quic"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS)

        assert (process.returncode, errors) == (130, b"")

    def test_has_reasoning_beside_its_answer(self, recorder: RecordingServer, tmp_path: Path) -> None:
        recorder.answers["POST", CHAT] = REASONED

        done = ask(recorder, tmp_path)

        assert (done.returncode, done.stdout, done.stderr) == (0, b"42", b"hmm\n")

    def test_has_dimmed_reasoning_before_its_answer_on_a_terminal(
        self, recorder: RecordingServer, tmp_path: Path
    ) -> None:
        recorder.answers["POST", CHAT] = REASONED

        with typing_person("chat", "hi", "--url", recorder.url, folder=tmp_path) as person:
            assert person.wait_for("42\r\n") == f"{DIM}hm{NORMAL}{DIM}m{NORMAL}{DIM}\n{NORMAL}42\r\n"
            assert person.wait_until_it_ends() == 0

    def test_cannot_have_an_answer_that_gives_a_terminal_orders(
        self, recorder: RecordingServer, tmp_path: Path
    ) -> None:
        order = "\x1b]0;title\x07"
        recorder.answers["POST", CHAT] = Answer.stream({"reasoning_content": order}, {"content": f"{order}\tend"})

        with typing_person("chat", "hi", "--url", recorder.url, folder=tmp_path) as person:
            shown = person.wait_for("end")

        assert r"\x1b]0;title\x07" + "\x1b[0m" in shown
        assert r"\x1b]0;title\x07" + "\tend" in shown
        assert ask(recorder, tmp_path).stdout.decode() == f"{order}\tend"

    def test_fails_in_one_line_where_the_server_refuses_it(self, server: Server, tmp_path: Path) -> None:
        done = run_octavo("chat", "hi", "--url", server.url, "--model", "nope", folder=tmp_path)

        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"octavo: The server answered 404: The model 'nope' is not served here.")
        assert done.stderr.count(b"\n") == 1

    def test_fails_in_one_line_behind_an_answer_that_breaks_off(self, server: Server, tmp_path: Path) -> None:
        done = run_octavo("chat", '@script {"raise_at": 2}\n', "--url", server.url, folder=tmp_path)

        assert (done.returncode, done.stdout) == (1, b"The quic")
        assert done.stderr == b"octavo: The script asks for an error at token 2.\n"

    def test_fails_where_no_server_is(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        done = run_octavo("chat", "hi", "--url", url, folder=tmp_path)

        assert done.returncode == 1
        assert done.stderr.decode() == f"octavo: No server answers at {url}. Start one with: octavo serve\n"

    @pytest.mark.parametrize("body", [b"data: {\n\n", b'data: {"choices": [{"text": "x"}]}\n\n', b"data: [1]\n\n"])
    def test_fails_in_one_line_where_the_answer_is_something_else(
        self, recorder: RecordingServer, tmp_path: Path, body: bytes
    ) -> None:
        recorder.answers["POST", CHAT] = Answer(body)

        done = ask(recorder, tmp_path)

        assert done.returncode == 1
        assert done.stderr.decode() == (
            f"octavo: What {recorder.url} answered cannot be read; is it a server of this API?\n"
        )

    def test_fails_before_it_is_asked_where_it_is_not_utf8(self, recorder: RecordingServer, tmp_path: Path) -> None:
        done = run_octavo("chat", os.fsdecode(b"\xff"), "--url", recorder.url, folder=tmp_path)

        assert (done.returncode, done.stderr) == (2, b"octavo: A text of the request is not UTF-8.\n")
        assert recorder.bodies == []


class TestImages:
    @pytest.mark.parametrize(("format", "media_type"), FORMATS.items())
    def test_are_sent_with_the_type_that_their_bytes_have(
        self, recorder: RecordingServer, tmp_path: Path, format: str, media_type: str
    ) -> None:
        file = picture(tmp_path, format)

        done = ask(recorder, tmp_path, "--image", file.name)

        assert done.returncode == 0
        content = [image_part(data_url(file, media_type)), {"type": "text", "text": "hi"}]
        assert recorder.bodies[0]["messages"] == [{"role": "user", "content": content}]

    def test_come_before_the_text_in_their_order_and_urls_are_passed_on(
        self, recorder: RecordingServer, tmp_path: Path
    ) -> None:
        file = picture(tmp_path)
        urls = ["HTTPS://example.com/a b.png?q=ü", "http://example.com/c", "data:image/png;base64,AAAA"]
        images = [urls[0], str(file), *urls[1:]]

        done = ask(recorder, tmp_path, *[part for image in images for part in ("--image", image)])

        assert done.returncode == 0
        expected = [urls[0], data_url(file), *urls[1:]]
        assert recorder.bodies[0]["messages"][0]["content"] == [
            *map(image_part, expected),
            {"type": "text", "text": "hi"},
        ]

    def test_of_the_largest_size_are_sent(self, recorder: RecordingServer, tmp_path: Path) -> None:
        file = tmp_path / "large"
        file.write_bytes(b"BM".ljust(10 * 2**20, b"\0"))

        assert ask(recorder, tmp_path, "--image", "large").returncode == 0
        assert recorder.bodies[0]["messages"][0]["content"][0] == image_part(data_url(file, "image/bmp"))

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("missing.png", "The image 'missing.png' cannot be read: No such file or directory."),
            ("folder", "The image 'folder' cannot be read: Is a directory."),
            ("/dev/zero", "The image '/dev/zero' has more than 10 MiB."),
            ("large", "The image 'large' has more than 10 MiB."),
            ("text.png", "'text.png' is not an image; PNG, JPEG, WebP, GIF and BMP can be sent."),
            ("empty.png", "'empty.png' is not an image; PNG, JPEG, WebP, GIF and BMP can be sent."),
        ],
    )
    def test_that_cannot_be_sent_are_named_before_anything_is(
        self, recorder: RecordingServer, tmp_path: Path, name: str, message: str
    ) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "large").write_bytes(b"BM".ljust(10 * 2**20 + 1, b"\0"))
        (tmp_path / "text.png").write_text("PNG")
        (tmp_path / "empty.png").touch()

        done = ask(recorder, tmp_path, "--image", name)

        assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"octavo: {message}\n")
        assert recorder.requests == []

    def test_are_refused_by_a_model_that_sees_none(self, server: Server, tmp_path: Path) -> None:
        done = run_octavo("chat", "hi", "--url", server.url, "--image", str(picture(tmp_path)), folder=tmp_path)

        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"octavo: The server answered 4")


class TestConversation:
    def test_is_remembered(self, recorder: RecordingServer, person: TypingPerson) -> None:
        for line in ("one", "", "two"):
            person.enter(line)
            person.wait_for(PROMPT)

        assert [body["messages"] for body in recorder.bodies] == [said("one"), said("one", "fine", "two")]

    @pytest.mark.parametrize("ending", ["/exit\n", "/exit \n", CTRL_D])
    def test_ends_when_the_person_says_so(self, person: TypingPerson, ending: str) -> None:
        person.press(ending)

        assert person.wait_until_it_ends() == 0

    def test_says_which_model_answers_and_how_to_end_it(self, recorder: RecordingServer, tmp_path: Path) -> None:
        with typing_person("chat", "--url", recorder.url, folder=tmp_path) as person:
            shown = person.wait_for(PROMPT)

        assert "first answers. /help lists the commands, Ctrl-D ends the conversation." in shown

    def test_is_answered_turn_by_turn(self, server: Server, tmp_path: Path) -> None:
        with typing_person("chat", "--url", server.url, folder=tmp_path) as person:
            person.wait_for(PROMPT)
            for line in ("hi", "again"):
                person.enter(line)
                assert f"{FOX}\n" in person.wait_for(PROMPT)

    def test_goes_on_without_a_turn_that_failed(self, recorder: RecordingServer, person: TypingPerson) -> None:
        finished = recorder.answers["POST", CHAT]
        recorder.answers["POST", CHAT] = Answer(
            b'data: {"choices": [{"delta": {"content": "so far"}}]}\n\ndata: {"error": {"message": "That was it."}}\n\n'
        )
        person.enter("one")
        assert "so far\noctavo: That was it.\n" in person.wait_for(PROMPT)

        recorder.answers["POST", CHAT] = finished
        person.enter("two")
        person.wait_for(PROMPT)

        assert recorder.bodies[1]["messages"] == said("two")

    def test_goes_on_when_the_server_refuses_or_breaks_off(
        self, recorder: RecordingServer, person: TypingPerson
    ) -> None:
        recorder.answers["POST", CHAT] = Answer.of({"error": {"message": "The queue\nis full."}}, 503)
        person.enter("one")
        assert "octavo: The server answered 503: The queue is full." in person.wait_for(PROMPT)

        recorder.answers["POST", CHAT] = Answer(b"")
        person.enter("two")
        assert "octavo: The server broke off before the end of its answer." in person.wait_for(PROMPT)

    def test_is_not_begun_where_no_server_is(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        with typing_person("chat", "--url", url, folder=tmp_path) as person:
            person.wait_for("octavo: No server answers")
            assert person.wait_until_it_ends() == 1

    def test_keeps_what_came_of_an_answer_that_ctrl_c_stops(
        self, recorder: RecordingServer, person: TypingPerson
    ) -> None:
        finished = recorder.answers["POST", CHAT]
        recorder.answers["POST", CHAT] = Answer.stream({"reasoning_content": "hm"}, {"content": "so far"}, hangs=True)
        person.enter("one")
        person.wait_for("so far")
        person.press(CTRL_C)
        person.wait_for(PROMPT)
        assert recorder.client_is_gone.wait(SECONDS)

        recorder.answers["POST", CHAT] = finished
        person.enter("two")
        person.wait_for(PROMPT)

        assert recorder.bodies[1]["messages"] == said("one", "so far", "two")

    def test_forgets_a_question_that_ctrl_c_stops_before_its_answer(
        self, recorder: RecordingServer, person: TypingPerson
    ) -> None:
        finished = recorder.answers["POST", CHAT]
        recorder.answers["POST", CHAT] = Answer.stream({"reasoning_content": "hm, hm"}, hangs=True)
        person.enter("one")
        person.wait_for("hm, hm")
        person.press(CTRL_C)
        person.wait_for(PROMPT)

        recorder.answers["POST", CHAT] = finished
        person.enter("two")
        person.wait_for(PROMPT)

        assert recorder.bodies[1]["messages"] == said("two")

    def test_keeps_an_answer_without_text_and_no_reasoning(
        self, recorder: RecordingServer, person: TypingPerson
    ) -> None:
        recorder.answers["POST", CHAT] = Answer.stream({"reasoning_content": "too long"})
        for line in ("one", "two"):
            person.enter(line)
            person.wait_for(PROMPT)

        assert recorder.bodies[1]["messages"] == said("one", "", "two")

    def test_gives_up_a_line_at_ctrl_c(self, recorder: RecordingServer, person: TypingPerson) -> None:
        person.press("not this")
        person.wait_for("not this")
        person.press(CTRL_C)
        person.enter("")  # a signal between two keys is noticed with the next one, or only at the end of the line
        person.enter("this")
        person.wait_for("fine")

        assert [body["messages"] for body in recorder.bodies] == [said("this")]

    @pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
    def test_goes_on_behind_a_line_that_is_not_utf8(
        self, recorder: RecordingServer, tmp_path: Path, errors: str
    ) -> None:
        variables = {"PYTHONIOENCODING": f"utf-8:{errors}"}
        with typing_person("chat", "--url", recorder.url, folder=tmp_path, **variables) as person:
            person.wait_for(PROMPT)
            person.enter(os.fsdecode(b"ab\xffcd"))
            assert " is not UTF-8.\n" in person.wait_for(PROMPT)
            person.enter("héllo 🦊")
            person.wait_for(PROMPT)

        assert [body["messages"] for body in recorder.bodies] == [said("héllo 🦊")]

    def test_is_forgotten_when_it_is_cleared_but_for_the_system_message(
        self, recorder: RecordingServer, tmp_path: Path
    ) -> None:
        file = picture(tmp_path)
        system = {"role": "system", "content": "Be brief."}
        with typing_person("chat", "--url", recorder.url, "--system", "Be brief.", folder=tmp_path) as person:
            person.wait_for(PROMPT)
            for line in ("one", f"/image '{file}'", "/clear", "two"):
                person.enter(line)
                person.wait_for(PROMPT)

        assert [body["messages"] for body in recorder.bodies] == [[system, *said("one")], [system, *said("two")]]

    def test_shows_images_with_the_next_message_only(self, recorder: RecordingServer, tmp_path: Path) -> None:
        file, url = picture(tmp_path), "https://example.com/cat"
        with typing_person("chat", "--url", recorder.url, "--image", url, folder=tmp_path) as person:
            person.wait_for(PROMPT)
            for line in ("one", f"/image '{file.name}' {url}", f"/image {url}"):
                person.enter(line)
                shown = person.wait_for(PROMPT)
            assert "The next message has 3 images." in shown
            for line in ("two", "three"):
                person.enter(line)
                person.wait_for(PROMPT)

        one, _, two, _, three = recorder.bodies[2]["messages"]
        assert one["content"] == [image_part(url), {"type": "text", "text": "one"}]
        assert two["content"] == [*map(image_part, (data_url(file), url, url)), {"type": "text", "text": "two"}]
        assert three["content"] == "three"

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("/image", "/image needs a file or a URL."),
            ("/image it's.png", "/image it's.png: No closing quotation."),
            ("/image missing.png", "The image 'missing.png' cannot be read: No such file or directory."),
            ("/image ~/missing.png", "The image '~/missing.png' cannot be read: No such file or directory."),
            ("/claer", "There is no command /claer; /help lists them."),
            ("/help", "Ctrl-C stops an answer."),
        ],
    )
    def test_is_not_disturbed_by_a_command(
        self, recorder: RecordingServer, person: TypingPerson, line: str, message: str
    ) -> None:
        person.enter(line)
        assert message in person.wait_for(PROMPT)
        person.enter(" /image is text")
        person.wait_for(PROMPT)

        assert [body["messages"] for body in recorder.bodies] == [said(" /image is text")]

    def test_has_nothing_but_its_answers_in_a_file(self, recorder: RecordingServer, tmp_path: Path) -> None:
        recorder.answers["POST", CHAT] = REASONED
        with (
            (tmp_path / "answers").open("wb") as answers,
            typing_person("chat", "--url", recorder.url, folder=tmp_path, stdout=answers.fileno()) as person,
        ):
            person.wait_for(PROMPT)
            for line in ("one", "/help", "two"):
                person.enter(line)
                person.wait_for(PROMPT)

        assert (tmp_path / "answers").read_bytes() == b"42\n42\n"
