"""The fields of the contract."""

REQUEST_FIELDS = (
    "model",
    "prompt",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "n",
    "best_of",
    "temperature",
    "top_p",
    "min_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "echo",
    "loglikelihood",
    "stop",
    "stop_token_ids",
    "include_stop_str_in_output",
    "ignore_eos",
    "seed",
    "stream",
    "stream_options.include_usage",
    "suffix",
    "chat_template_kwargs",
    "reasoning_effort",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "user",
    "peft",
    "image_url",
)

LATER_FIELDS = ("log_prompt",)
"""Refused by this version where they ask for something, rather than ignored."""

RESPONSE_FIELDS = (
    "id",
    "object",
    "created",
    "system_fingerprint",
    "choices",
    "finish_reason",
    "reasoning_content",
    "tool_calls",
    "usage",
    "error",
)

FIELDS = (*REQUEST_FIELDS, *LATER_FIELDS, *RESPONSE_FIELDS)
