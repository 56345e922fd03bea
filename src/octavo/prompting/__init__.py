"""From conversations and texts to tokens."""

from octavo.prompting.chat import ChatPrompt, encode_chat
from octavo.prompting.chat_template import DEFAULT_CHAT_TEMPLATE, ChatTemplate
from octavo.prompting.images import checked_image, image_too_large
from octavo.prompting.infill import encode_infill
from octavo.prompting.markers import split_special
from octavo.prompting.tokenization import TextEncoder, encode_text, tokenize

__all__ = [
    "DEFAULT_CHAT_TEMPLATE",
    "ChatPrompt",
    "ChatTemplate",
    "TextEncoder",
    "checked_image",
    "encode_chat",
    "encode_infill",
    "encode_text",
    "image_too_large",
    "split_special",
    "tokenize",
]
