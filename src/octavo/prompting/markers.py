"""Which special tokens a text means, and which it only spells.

A conversation's strings are marked with a sentinel before a template joins them, so that what a user typed can be told
from what the template wrote; then special tokens are matched in the joined text, and the sentinels go.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from octavo.core.vocabulary import SpecialToken, Vocabulary, VocabularyKey
from octavo.prompting.trie import longest_of

Fragment = str | int
"""Part of a text to tokenize: plain text, in which no special token is looked for, or the id of a special token."""

SENTINELS = tuple(map(chr, range(0xFDD0, 0xFDF0)))
"""Unicode's noncharacters for a program's own use: in no meaningful text, and no template treats them as anything."""

_WHITE_SPACE = " \t\n\v\f\r"
"""What llama.cpp strips around a special token: isspace() of the C locale."""


class Markers:
    """The special tokens to be matched outside the tokenizer: all control tokens, and those that a template writes.

    Other special tokens are ordinary text, which the tokenizer itself finds in plain fragments.
    """

    def __init__(self, vocabulary: Vocabulary, template_source: str = "") -> None:
        tokens = [
            token
            for token in vocabulary.special_tokens
            if token.text and (token.is_control or _is_written_by(template_source, token.text))
        ]
        self._tokens = {token.text: token for token in reversed(tokens)}
        self._pattern = compiled(self._tokens)
        self._starts = compiled(self._tokens, "(?={})")
        self._plain_starts = compiled((t.text for t in tokens if not t.is_control), "(?=({}))")
        self._prefixes = {text[:end] for text in self._tokens for end in range(1, len(text))}
        self._suffixes = {text[start:] for text in self._tokens for start in range(1, len(text))}
        self._all_texts = "\0".join(self._tokens)
        self._longest = max(map(len, self._tokens), default=0)

    def protect(self, text: str, sentinel: str) -> str:
        """Put the sentinel into every place where `text`, alone or joined with others, could be part of a marker."""
        cuts = sorted({*self._marker_cuts(text), *self._tail_cuts(text), *self._head_cuts(text)})
        return sentinel.join(text[start:end] for start, end in pairwise([0, *cuts, len(text)])) if cuts else text

    def split(self, text: str, sentinel: str | None = None) -> list[Fragment]:
        """The fragments of a text, no plain one empty. Markers that a sentinel touches or breaks are plain text."""
        fragments: list[Fragment] = []
        start = 0
        is_stripping = False
        for begin, end, token in self._matches(text, sentinel):
            plain = text[start:begin]
            plain = plain.lstrip(_WHITE_SPACE) if is_stripping else plain
            fragments += self._plain(plain.rstrip(_WHITE_SPACE) if token.strips_left else plain, sentinel)
            fragments.append(token.id)
            start, is_stripping = end, token.strips_right
        plain = text[start:]
        return fragments + self._plain(plain.lstrip(_WHITE_SPACE) if is_stripping else plain, sentinel)

    def _marker_cuts(self, text: str) -> Iterator[int]:
        return (match.start() + 1 for match in self._starts.finditer(text))

    def _tail_cuts(self, text: str) -> Iterator[int]:
        """Behind the first character of what could begin a marker that the text after this one completes.

        Templates trim, so white space does not count as an end.
        """
        for end in {len(text), len(text.rstrip())}:
            for start in range(max(0, end - self._longest), end):
                if text[start:end] in self._prefixes:
                    yield start + 1

    def _head_cuts(self, text: str) -> Iterator[int]:
        """Behind the first character of a text that could end a marker, or be the middle of one."""
        stripped = text.strip()
        for start in {0, len(text) - len(text.lstrip())}:
            heads = (text[start:end] for end in range(start + 1, min(len(text), start + self._longest) + 1))
            if any(head in self._suffixes for head in heads):
                yield start + 1
        if stripped and len(stripped) < self._longest and stripped in self._all_texts:
            yield text.index(stripped) + 1
        if text and len(text) < self._longest and text in self._all_texts:
            yield 1

    def _matches(self, text: str, sentinel: str | None) -> Iterator[tuple[int, int, SpecialToken]]:
        position = 0
        while match := self._pattern.search(text, position):
            start = match.start()
            end = self._trusted_end(text, match, sentinel)
            position = start + 1 if end is None else end
            if end is not None:
                yield start, end, self._tokens[text[start:end]]

    def _trusted_end(self, text: str, match: re.Match[str], sentinel: str | None) -> int | None:
        """End of the longest marker at the match that is not a user's: a sentinel follows a user's character."""
        candidate: re.Match[str] | None = match
        while candidate and sentinel and text.startswith(sentinel, candidate.end()):
            candidate = self._pattern.match(text, candidate.start(), candidate.end() - 1)
        return candidate.end() if candidate else None

    def _plain(self, text: str, sentinel: str | None) -> list[Fragment]:
        """Text without its sentinels: in one piece, but cut where the tokenizer itself would find a marker."""
        if sentinel is None or sentinel not in text:
            return [text] if text else []
        parts = text.split(sentinel)
        joined = "".join(parts)
        inside = self._inside_plain_markers(joined)
        fragments: list[Fragment] = []
        start = position = 0
        for part in parts:
            position += len(part)
            if start < position and (position in inside or position == len(joined)):
                fragments.append(joined[start:position])
                start = position
        return fragments

    def _inside_plain_markers(self, text: str) -> set[int]:
        matches = self._plain_starts.finditer(text)
        return {place for match in matches for place in range(match.start(1) + 1, match.end(1))}


@lru_cache(maxsize=8)
def _markers(key: VocabularyKey, template_source: str) -> Markers:
    return Markers(key.vocabulary, template_source)


def markers_of(vocabulary: Vocabulary, template_source: str = "") -> Markers:
    """The markers of a vocabulary and a template, worked out once."""
    return _markers(VocabularyKey(vocabulary), template_source)


def split_special(text: str, vocabulary: Vocabulary) -> list[Fragment]:
    """The fragments of a text in which special tokens are meant."""
    return markers_of(vocabulary).split(text)


def _is_written_by(template_source: str, text: str) -> bool:
    # Some vocabularies have tokens for digits, or for runs of spaces and newlines, which any source happens to hold.
    return text.startswith(("<", "[")) and text.endswith((">", "]")) and text in template_source


def compiled(literals: Iterable[str], form: str = "(?:{})") -> re.Pattern[str]:
    """A pattern that matches any of the literals, the longest first; form: the pattern around them."""
    kept = list(literals)
    # (?!) matches nowhere.
    return re.compile(form.format(longest_of(kept)) if kept else "(?!)")
