"""A choice's text with the entries of its tokens."""

from collections.abc import Iterable
from itertools import islice

from octavo.core.channels import Channel
from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.core.request import Choice
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.content_filter import ContentFilter
from octavo.streaming.detokenizer import Detokenizer
from octavo.streaming.draft import Draft
from octavo.streaming.ledger import Ledger
from octavo.streaming.line import WrittenToken
from octavo.streaming.pieces import own_pieces, prompt_pieces
from octavo.streaming.pipeline import Pipeline
from octavo.streaming.token_text import TokenTexts


class EntryWriter:
    """Follows each token through the text, so that both come together.

    The prompt's text comes with its entries, where these are asked for, as the engine tells its log-probabilities.
    """

    def __init__(
        self, choice: Choice, vocabulary: Vocabulary, content_filter: ContentFilter | None, draft: Draft
    ) -> None:
        self._texts = TokenTexts(vocabulary)
        self._detokenizer = Detokenizer(vocabulary, own_pieces(choice, vocabulary))
        self._pipeline = Pipeline(choice, vocabulary, content_filter, draft.add_call)
        self._ledger = Ledger(vocabulary, draft)
        self._draft = draft
        self._echoes = choice.echo
        self._logprobs = choice.request.logprobs
        self._prompt = prompt_pieces(choice, vocabulary)
        self._begin(begins_with_image=choice.request.prompt_tokens[0] < 0)

    def _begin(self, *, begins_with_image: bool) -> None:
        """The first token of a prompt has no log-probability; the others wait for theirs, where these are asked for."""
        if not self._echoes:
            if not begins_with_image:
                next(self._prompt)
            return
        of_prompt = self._logprobs.of_prompt
        for token, piece in islice(self._prompt, 1 if of_prompt else None):
            self._echo(WrittenToken(token, piece, None, is_listed=of_prompt))

    @property
    def cut_reason(self) -> FinishReason | None:
        return self._pipeline.cut_reason

    def push(self, chunk: TokenChunk) -> None:
        """Tokens behind a cut are not counted, even if they came in the same chunk."""
        self._push_prompt(chunk.prompt_logprobs)
        logprobs = chunk.logprobs if self._logprobs.of_output else (None,) * len(chunk.tokens)
        for token, logprob in zip(chunk.tokens, logprobs, strict=True):
            self._push_token(token, logprob)
            if self.cut_reason is not None:
                break

    def flush(self) -> None:
        text = self._detokenizer.flush()
        self._ledger.close(len(text))
        self._ledger.settle(self._pipeline.flush(text))

    def _push_prompt(self, logprobs: Iterable[TokenLogprob]) -> None:
        for logprob, (token, piece) in zip(logprobs, self._prompt, strict=False):
            if self._echoes:
                self._echo(WrittenToken(token, piece, logprob, is_listed=True))
            else:
                self._draft.entries.append(self._texts.entry(token, piece, logprob, offset=None))

    def _echo(self, token: WrittenToken) -> None:
        self._ledger.settle([(Channel.ANSWER, self._write(token))])

    def _push_token(self, token: int, logprob: TokenLogprob | None) -> None:
        self._draft.num_tokens += 1
        self._draft.logprob_sum += logprob.logprob if logprob is not None else 0.0
        written = WrittenToken(token, self._detokenizer.piece(token), logprob, self._logprobs.of_output)
        self._ledger.settle(self._pipeline.push(self._write(written)))

    def _write(self, token: WrittenToken) -> str:
        """The characters that the token completes, of which the ledger knows now."""
        text = self._detokenizer.decode(token.piece)
        self._ledger.add(token, len(text), is_open=not self._detokenizer.is_between_characters)
        return text
