"""What the prompt log keeps of a request."""

import msgspec


class LogEntry(msgspec.Struct, frozen=True):
    """A request with log_prompt, from its arrival to its end, whatever ended it.

    id: of the answer, as in its body; unique. request_id: as in the x-request-id header and the server's log.
    created: Unix time in seconds. key_id: of the key that was used; empty where none is needed. user: empty for none.
    endpoint: the route's path. model: as served. status: HTTP's, or 499 where the client went away.
    request: its body, JSON text. prompts: the texts that the model was given, one for each prompt.
    answer: the whole body, JSON text, streamed or not; of an error its body, of what was broken off what had come.
    seconds, seconds_to_first_token: from the arrival; the latter None where no token came.
    """

    id: str
    request_id: str
    created: float
    key_id: str
    user: str
    endpoint: str
    model: str
    status: int
    request: str
    prompts: tuple[str, ...]
    answer: str
    finish_reasons: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    seconds_to_first_token: float | None = None
