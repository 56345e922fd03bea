"""Tokens as a reader of log-probabilities sees them."""

from octavo.core.output import Alternative, LogprobEntry, TokenLogprob
from octavo.core.vocabulary import Vocabulary


class TokenTexts:
    """Makes the entries of tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def entry(self, token: int, data: bytes, logprob: TokenLogprob | None, offset: int | None) -> LogprobEntry:
        """data: what the token adds to the text."""
        name = self._name(token)
        if logprob is None:
            return LogprobEntry(name, data or None, None, (), offset)
        top = tuple([self._alternative(*each) for each in logprob.top])
        return LogprobEntry(name, data or None, logprob.logprob, top, offset)

    def cut_entry(self, data: bytes, logprob: TokenLogprob, offset: int) -> LogprobEntry:
        """Of a token of which only `data` is kept: nothing of the entry says what was cut."""
        top = tuple([self._alternative(*each) for each in logprob.top if each[0] != logprob.token])
        return LogprobEntry(_text(data), data or None, logprob.logprob, top, offset)

    def _alternative(self, token: int, logprob: float) -> Alternative:
        return Alternative(self._name(token), self._vocabulary.pieces[token] or None, logprob)

    def _name(self, token: int) -> str:
        piece = self._vocabulary.pieces[token]
        return _text(piece) if piece else self._vocabulary.control_texts.get(token, "")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "".join([f"\\x{byte:02x}" for byte in data])
