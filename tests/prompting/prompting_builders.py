"""A byte-level tokenizer with special tokens, and chat templates in the styles of well-known model families."""

import re
from collections import defaultdict
from collections.abc import Sequence

from octavo.core.channels import Channel, ChannelFormat
from octavo.core.images import Image, ImageTokens
from octavo.core.messages import Message, PlacedImage, Role
from octavo.core.vocabulary import InfillTokens, SpecialToken, Vocabulary
from octavo.prompting.markers import Fragment
from support.pictures import image_tokens

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'] ~ eos_token }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)


def control(id: int, text: str, *, strips_left: bool = False, strips_right: bool = False) -> SpecialToken:
    return SpecialToken(id, text, is_control=True, strips_left=strips_left, strips_right=strips_right)


def user_defined(id: int, text: str) -> SpecialToken:
    return SpecialToken(id, text, is_control=False)


START = control(256, "<|im_start|>")
END = control(257, "<|im_end|>")
BOS = control(258, "<s>")
EOS = control(259, "</s>")
TOOL_CALL = user_defined(260, "<tool_call>")
SPECIAL_TOKENS = (START, END, BOS, EOS, TOOL_CALL)


def vocabulary(
    *special_tokens: SpecialToken,
    bos_token: int | None = None,
    adds_bos: bool = False,
    eog_tokens: tuple[int, ...] = (),
    infill: InfillTokens | None = None,
    adds_space_prefix: bool = False,
) -> Vocabulary:
    """256 single bytes, and behind them the special tokens, whose ids go on from there in any order."""
    pieces = [bytes([byte]) for byte in range(256)] + [b""] * len(special_tokens)
    for token in special_tokens:
        pieces[token.id] = b"" if token.is_control else token.text.encode()
    return Vocabulary(
        pieces=tuple(pieces),
        special_tokens=special_tokens,
        eog_tokens=frozenset(eog_tokens),
        bos_token=bos_token,
        adds_bos=adds_bos,
        eos_token=eog_tokens[0] if eog_tokens else None,
        infill=infill,
        adds_space_prefix=adds_space_prefix,
    )


class ByteEncoder:
    """A token for each byte; like llama.cpp's tokenizer it finds user-defined tokens in plain fragments by itself, and
    puts a space before each fragment where the vocabulary says so."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.num_calls = 0
        self._space = " " if vocabulary.adds_space_prefix else ""
        self._user_defined = {token.text: token.id for token in vocabulary.special_tokens if not token.is_control}

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        self.num_calls += 1
        tokens: list[int] = []
        for fragment in fragments:
            tokens += [fragment] if isinstance(fragment, int) else self._plain(self._space + fragment)
        return tuple(tokens)

    async def encode_image(self, image: Image) -> ImageTokens:
        return image_tokens(image)

    def decode(self, tokens: Sequence[int]) -> str:
        texts = {token.id: token.text.encode() for token in self.vocabulary.special_tokens}
        return b"".join(texts.get(token, self.vocabulary.pieces[token]) for token in tokens).decode()

    def _plain(self, text: str) -> list[int]:
        for special, id in self._user_defined.items():
            if special in text:
                before, after = text.split(special, 1)
                return [*self._plain(before), id, *self._plain(after)]
        return list(text.encode())


def user(content: str, name: str | None = None) -> Message:
    return Message(Role.USER, content, name)


def showing(*parts: str | Image, role: Role = Role.USER) -> Message:
    """A message of texts and images."""
    content, images = "", []
    for part in parts:
        if isinstance(part, Image):
            images.append(PlacedImage(part, len(content)))
        else:
            content += part
    return Message(role, content, images=tuple(images))


def system(content: str) -> Message:
    return Message(Role.SYSTEM, content)


def assistant(content: str) -> Message:
    return Message(Role.ASSISTANT, content)


def split(channels: ChannelFormat, text: str) -> tuple[str, str]:
    """Reasoning and answer; markers and the white space around them are neither."""
    by_text = dict(channels.markers)
    markers = "|".join(map(re.escape, sorted(by_text, key=len, reverse=True)))
    channel, texts = channels.initial, defaultdict[Channel, str](str)
    for part in re.split(rf"\s*({markers})\s*", text):
        if part in by_text:
            channel = by_text[part]
        else:
            texts[channel] += part
    return texts[Channel.REASONING], texts[Channel.ANSWER]
