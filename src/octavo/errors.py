"""Everything that can go wrong, as one tree. HTTP statuses live in `octavo.api.errors`, nowhere else.

OctavoError
├── InvalidRequest             the request is malformed; `param` names the field
│   ├── UnknownField           strict mode: a field that no document names
│   └── UnsupportedGrammar     a schema or grammar that cannot be kept to the letter, or is none
├── UnsupportedByModel         well-formed, but this model cannot do it
│   ├── ContextLengthExceeded  the prompt alone does not fit
│   ├── InfillUnsupported      the model was not trained to fill gaps
│   ├── VisionUnsupported      the model sees no images
│   ├── ImageRefused           an image that cannot be read or is too large
│   │   └── ImageUrlRefused    an image that may not be fetched, or could not be
│   ├── AdapterRefused         an adapter that is not for this model, broken, or not where adapters may be
│   ├── PromptLogOff           a request that is to be logged, and no log
│   ├── LogEntryTooLarge       a request that is to be logged, and with its answer is more than a row may be
│   ├── RequestQuarantined     it ended the engine's process again and again
│   └── TemplateError          the chat template refused the messages, failed or ran out of time
├── ModelNotFound              no such model is served
│   └── AdapterNotFound        the model has no such adapter
├── LogEntryNotFound           no such row in the prompt log
├── Unauthenticated            no key, or one that is not known (any more)
├── Forbidden                  the key is not good for this, or a web page may not ask
├── RateLimited                the key's own limit is reached; try again after `retry_after` seconds
├── Overloaded                 the queue is full; try again after `retry_after` seconds
├── EngineUnavailable          loading, restarting or stopped; try again after `retry_after` seconds
│   ├── EngineDied             the engine's process ended while it worked on this request
│   └── PromptLogUnavailable   what is to be logged cannot be stored now, or the log not read; nothing else is refused
├── EngineError                the engine failed on this request and goes on with the others
├── ModelLoadError             a model file cannot be served
└── ConfigError                settings that cannot work together
"""


class OctavoError(Exception):
    """An error with a message for the person who caused it: what was given and what is allowed.

    `code` is a stable identifier for programs; `param` is the request field at fault, or None.
    Messages never hold a path, a stack trace or a key.
    """

    code = "internal_error"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidRequest(OctavoError):
    code = "invalid_request"


class UnknownField(InvalidRequest):
    code = "unknown_field"


class UnsupportedGrammar(InvalidRequest):
    code = "unsupported_grammar"


class UnsupportedByModel(OctavoError):
    code = "unsupported_by_model"


class ContextLengthExceeded(UnsupportedByModel):
    code = "context_length_exceeded"


class InfillUnsupported(UnsupportedByModel):
    code = "suffix_unsupported"


class VisionUnsupported(UnsupportedByModel):
    code = "vision_unsupported"


class ImageRefused(UnsupportedByModel):
    code = "invalid_image"


class ImageUrlRefused(ImageRefused):
    code = "image_url_refused"


class AdapterRefused(UnsupportedByModel):
    code = "adapter_refused"


class PromptLogOff(UnsupportedByModel):
    code = "prompt_log_off"


class LogEntryTooLarge(UnsupportedByModel):
    code = "log_entry_too_large"


class RequestQuarantined(UnsupportedByModel):
    code = "request_quarantined"


class TemplateError(UnsupportedByModel):
    code = "chat_template_error"


class ModelNotFound(OctavoError):
    code = "model_not_found"


class AdapterNotFound(ModelNotFound):
    code = "peft_not_found"


class LogEntryNotFound(OctavoError):
    code = "log_entry_not_found"


class Unauthenticated(OctavoError):
    code = "invalid_api_key"


class Forbidden(OctavoError):
    code = "forbidden"


class _RetryLater(OctavoError):
    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(_RetryLater):
    code = "rate_limit_exceeded"


class Overloaded(_RetryLater):
    code = "overloaded"


class EngineUnavailable(_RetryLater):
    code = "engine_unavailable"


class EngineDied(EngineUnavailable):
    code = "engine_died"


class PromptLogUnavailable(EngineUnavailable):
    code = "prompt_log_unavailable"


class EngineError(OctavoError):
    code = "engine_error"


class ModelLoadError(OctavoError):
    code = "model_load_error"


class ConfigError(OctavoError):
    code = "config_error"
