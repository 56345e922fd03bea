"""What parent and child say to each other: msgpack messages, each behind its length in four bytes.

Both ends are ours and speak over a socket pair, so a frame that cannot be read is a bug or a dying peer, never input.
"""

import struct
from asyncio import IncompleteReadError, StreamReader

import msgspec

from octavo.core.adapters import Adapter
from octavo.core.images import Image, ImageTokens
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import Vocabulary
from octavo.engine.base import CacheUse, EngineInfo, Fragment
from octavo.engine.specs import EngineSpec

LENGTH = struct.Struct("!I")


class Load(msgspec.Struct, tag="load"):
    """adapters: what an earlier child had loaded beside."""

    spec: EngineSpec
    adapters: tuple[Adapter, ...] = ()


class Submit(msgspec.Struct, tag="submit"):
    request: GenerationRequest


class Cancel(msgspec.Struct, tag="cancel"):
    request_id: str


class Encode(msgspec.Struct, tag="encode"):
    call: int
    fragments: tuple[Fragment, ...]


class HoldImage(msgspec.Struct, tag="hold_image"):
    """Until it is dropped, requests may show it. It is held once, however many do."""

    image: Image


class DropImage(msgspec.Struct, tag="drop_image"):
    digest: str


class EncodeImage(msgspec.Struct, tag="encode_image"):
    """digest: of an image that is held."""

    call: int
    digest: str


class LoadAdapter(msgspec.Struct, tag="load_adapter"):
    call: int
    adapter: Adapter


class UnloadAdapter(msgspec.Struct, tag="unload_adapter"):
    call: int
    key: str


class Shutdown(msgspec.Struct, tag="shutdown"):
    pass


class Progress(msgspec.Struct, tag="progress"):
    """of loading, 0..1"""

    fraction: float


class Ready(msgspec.Struct, tag="ready"):
    """lost_adapters: keys of those of `Load` that could not be loaded again."""

    info: EngineInfo
    vocabulary: Vocabulary
    lost_adapters: tuple[str, ...] = ()


class LoadFailed(msgspec.Struct, tag="load_failed"):
    message: str


class Posted(msgspec.Struct, array_like=True, gc=False):
    """A TokenChunk for one request, packed: who passes it on need not look into it."""

    request_id: str
    num_tokens: int
    is_last: bool
    chunk: msgspec.Raw

    @classmethod
    def of(cls, request_id: str, chunk: TokenChunk) -> "Posted":
        packed = msgspec.Raw(_encoder.encode(chunk))
        return cls(request_id, len(chunk.tokens), chunk.finish_reason is not None, packed)


class Chunks(msgspec.Struct, tag="chunks"):
    """All that came out of the engine since the last frame."""

    chunks: list[Posted]


class Failed(msgspec.Struct, tag="failed"):
    """The engine refused or gave up one request and goes on with the others.

    is_refusal: its grammar cannot be followed, which is no fault of the engine.
    """

    request_id: str
    message: str
    is_refusal: bool = False


class Cancelled(msgspec.Struct, tag="cancelled"):
    """The request is given up, but for the step that it may be part of: `Running` says when that is over."""

    request_id: str


class Encoded(msgspec.Struct, tag="encoded"):
    call: int
    tokens: tuple[int, ...]


class ImageEncoded(msgspec.Struct, tag="image_encoded"):
    call: int
    tokens: ImageTokens


class Done(msgspec.Struct, tag="done"):
    """A call that gives nothing back has succeeded."""

    call: int


class CallFailed(msgspec.Struct, tag="call_failed"):
    """code: of the error's class. param: as the error has it."""

    call: int
    code: str
    message: str
    param: str | None = None


class Activity(msgspec.Struct, tag="activity"):
    """Sequences in slots, in the queue, and in the last step; sent when one of them, or of the cache, has changed."""

    num_running: int
    num_waiting: int
    batch_size: int
    cache: CacheUse = CacheUse()


class Running(msgspec.Struct, tag="running"):
    """The requests that have slots; sent when they are others than the last time."""

    ids: frozenset[str]


class Alive(msgspec.Struct, tag="alive"):
    """Sent every second, also while it loads. step: as in EngineHealth."""

    step: int


Call = Encode | EncodeImage | LoadAdapter | UnloadAdapter
ToChild = Load | Submit | Cancel | HoldImage | DropImage | Call | Shutdown
Result = Encoded | ImageEncoded | Done | CallFailed
ToParent = Progress | Ready | LoadFailed | Chunks | Failed | Cancelled | Result | Activity | Running | Alive

_encoder = msgspec.msgpack.Encoder()
_decode_to_child = msgspec.msgpack.Decoder(ToChild).decode
_decode_to_parent = msgspec.msgpack.Decoder(ToParent).decode


def pack(message: ToChild | ToParent) -> bytes:
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


async def read_for_child(reader: StreamReader) -> ToChild | None:
    """The next message, or None when the parent is gone."""
    body = await _read(reader)
    return None if body is None else _decode_to_child(body)


async def read_for_parent(reader: StreamReader) -> ToParent | None:
    """The next message, or None when the child is gone."""
    body = await _read(reader)
    return None if body is None else _decode_to_parent(body)


async def _read(reader: StreamReader) -> bytes | None:
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return await reader.readexactly(length)
    except (IncompleteReadError, ConnectionError):
        return None
