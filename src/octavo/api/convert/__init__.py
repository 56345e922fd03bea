"""Wire requests to jobs: every default chosen, every text tokenized, every grammar made, nothing optional left."""

from octavo.api.convert.bounds import check_limits
from octavo.api.convert.chat import chat_images, chat_job
from octavo.api.convert.completions import completion_job
from octavo.api.convert.tokens import detokenize, prompt_texts, text_tokens

__all__ = [
    "chat_images",
    "chat_job",
    "check_limits",
    "completion_job",
    "detokenize",
    "prompt_texts",
    "text_tokens",
]
