"""Bounds on what a request may ask for, all enforced before anything is allocated."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults of the API contract. Sizes are bytes, times seconds."""

    max_body: int = 8 * 2**20
    max_json_depth: int = 64
    max_json_items: int = 100_000
    max_n: int = 128
    max_prompts: int = 256
    max_stop_strings: int = 16
    max_stop_length: int = 256
    max_stop_tokens: int = 64
    max_top_logprobs: int = 20
    max_messages: int = 10_000
    max_images: int = 8
    max_image_size: int = 10 * 2**20
    max_image_pixels: int = 50_000_000
    max_fetch_time: float = 10.0
    max_adapters: int = 32
    max_adapter_size: int = 2 * 2**30
    max_tools: int = 128
    max_tools_size: int = 2**20
    max_schema: int = 64 * 2**10
    max_schema_depth: int = 32
    max_compile_time: float = 2.0
    max_queue_per_slot: int = 4
