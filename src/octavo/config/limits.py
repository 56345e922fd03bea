"""Bounds on what a request may ask for and how it may come."""

from pydantic import BaseModel, ByteSize

from octavo.config.option import option

LIMITS = "Limits of a request"


class LimitSettings(BaseModel):
    max_body: ByteSize | None = option(
        None,
        "Size of a request's body: bytes, or as in 8MiB. Default: 8.0MiB, and 32.0MiB with --mmproj.",
        panel=LIMITS,
        metavar="SIZE",
        ge=1,
    )
    max_headers: ByteSize = option(
        ByteSize(64 * 2**10), "Size of its request line and headers together.", panel=LIMITS, metavar="SIZE", ge=1024
    )
    max_receive_time: float = option(
        30.0,
        "Time in which a whole request must have come, from its first byte or the opening of its connection.",
        panel=LIMITS,
        metavar="SECONDS",
        gt=0,
        allow_inf_nan=False,
    )
    max_unread: ByteSize = option(
        ByteSize(64 * 2**10),
        "Size of what waits to be read by its client; the answer goes on when that is read.",
        panel=LIMITS,
        metavar="SIZE",
        ge=1024,
    )
    max_unread_time: float = option(
        30.0,
        "Time in which a client must read as much; then its connection is closed.",
        panel=LIMITS,
        metavar="SECONDS",
        gt=0,
        allow_inf_nan=False,
    )
    max_json_depth: int = option(64, "Nesting of its JSON.", panel=LIMITS, metavar="N", ge=2, le=512)
    max_json_items: int = option(
        100_000, "Lists, objects and their members in its JSON.", panel=LIMITS, metavar="N", ge=2
    )
    max_n: int = option(128, "Samples of a prompt.", panel=LIMITS, metavar="N", ge=1)
    max_prompts: int = option(256, "Prompts.", panel=LIMITS, metavar="N", ge=1)
    max_stop_strings: int = option(16, "Stop strings.", panel=LIMITS, metavar="N", ge=1)
    max_stop_length: int = option(256, "Characters of a stop string.", panel=LIMITS, metavar="N", ge=1)
    max_stop_tokens: int = option(64, "Stop tokens.", panel=LIMITS, metavar="N", ge=1)
    max_top_logprobs: int = option(20, "Most probable tokens told with each.", panel=LIMITS, metavar="N", ge=0)
    max_messages: int = option(10_000, "Messages of a conversation.", panel=LIMITS, metavar="N", ge=1)
    max_images: int = option(8, "Images of a conversation.", panel=LIMITS, metavar="N", ge=0)
    max_image_size: ByteSize = option(
        ByteSize(10 * 2**20), "Size of an image's file.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_image_pixels: int = option(50_000_000, "Pixels of an image.", panel=LIMITS, metavar="N", ge=1)
    max_fetch_time: float = option(
        10.0, "Time in which an image must be fetched.", panel=LIMITS, metavar="SECONDS", gt=0, allow_inf_nan=False
    )
    max_adapters: int = option(32, "Adapters that are served at a time.", panel=LIMITS, metavar="N", ge=0)
    max_adapter_size: ByteSize = option(
        ByteSize(2 * 2**30), "Size of an adapter's file.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_tools: int = option(128, "Functions that a model may call.", panel=LIMITS, metavar="N", ge=1)
    max_tools_size: ByteSize = option(
        ByteSize(2**20), "Size of all their schemas together.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_schema: ByteSize = option(
        ByteSize(64 * 2**10), "Size of a schema or grammar.", panel=LIMITS, metavar="SIZE", ge=1
    )
    max_schema_depth: int = option(32, "Nesting of a schema.", panel=LIMITS, metavar="N", ge=1, le=512)
    max_compile_time: float = option(
        2.0, "Time in which a grammar must be ready.", panel=LIMITS, metavar="SECONDS", gt=0, allow_inf_nan=False
    )
    max_queue_per_slot: int = option(
        4, "Sequences that wait for each slot; more are refused with 503.", panel=LIMITS, metavar="N", ge=0
    )
