# SPDX-License-Identifier: Apache-2.0
"""One frame of the black box: a header with a checksum, and JSON that is compressed.

======  ====  =======================================================================
offset  type  header, little-endian, 64 bytes
======  ====  =======================================================================
0       4s    magic ``SWbb``
4       B     version of the format, 1
5       B     kind, its place in KINDS
6       H     zero
8       I     bytes of the payload behind the header
12      I     CRC-32 (zlib) of the header, this field zero, and the payload
16      Q     sequence: 1, 2, 3 ... over the life of the file, boots included
24      d     time of the frame, Unix seconds
32      d     the same by the monotonic clock of its boot
40      16s   boot id (/proc/sys/kernel/random/boot_id) as bytes
56      Q     number of the guard's tick that it tells of, or of the last before it; 0: none
======  ====  =======================================================================

A frame begins at a multiple of 512 bytes, the least that a disk writes as a whole.
"""

import functools
import json
import struct
import zlib
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from seawall.host.host import JSON

Kind: TypeAlias = Literal["start", "mind", "tick", "round", "line"]
"""start: whose ticks follow (machine, settings, mounts).  mind: what the judge remembered.
tick: what the judge saw (``replay/tick_encoder.py``).  round: what files held
(``round_frames.py``).  line: of the decision journal, or of the kernel's log."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAGIC: Final = b"SWbb"
VERSION: Final = 1
ALIGN_BYTES: Final = 512
HEADER: Final = struct.Struct("<4sBBHIIQdd16sQ")
CRC_OFFSET: Final = 12
_NO_CRC: Final = bytes(4)
PAYLOAD_MOST_BYTES: Final = 4 << 20
"""Compressed."""
BODY_MOST_BYTES: Final = 16 << 20
"""The JSON text: a box is hostile input, and both zlib and JSON make much of little."""
_NUMBER_END: Final = 1 << 63
_UNIX_END: Final = 32_503_680_000.0
"""The year 3000: no date of a frame is one that a calendar refuses (Linux itself ends in 2262)."""
_MONOTONIC_END: Final = 1e10


class Frame(NamedTuple):
    """What a frame says; times in seconds."""

    sequence: int
    kind: Kind
    unix_seconds: float
    monotonic_seconds: float
    boot_id: str
    """As the kernel writes it, with hyphens."""
    tick: int
    body: dict[str, JSON]


class FrameHead(NamedTuple):
    """A frame whose checksum is right, not yet unpacked: its place in the file."""

    offset: int
    size: int
    """Header and payload, without what fills it up to ALIGN_BYTES."""
    sequence: int
    kind: Kind
    unix_seconds: float
    monotonic_seconds: float
    boot_id: str
    tick: int


def pack(frame: Frame, level: int = 1) -> bytes:
    """The bytes of a frame, filled up to a multiple of ALIGN_BYTES; ValueError: not of ours."""
    return seal_frame(frame, compress_body(frame.body, level))


def compress_body(body: dict[str, JSON], level: int = 1) -> bytes:
    """The payload of a frame with that body; ValueError: too large."""
    text = json.dumps(body, separators=(",", ":")).encode()
    payload = zlib.compress(text, level)
    if len(payload) > PAYLOAD_MOST_BYTES or len(text) > BODY_MOST_BYTES:
        raise ValueError(f"a frame of {len(payload):,} bytes ({len(text):,} of JSON) is too large")
    return payload


def seal_frame(frame: Frame, payload: bytes) -> bytes:
    """As ``pack``, of a body that was squeezed before; the frame's own body does not count."""
    boot = bytes.fromhex(frame.boot_id.replace("-", ""))
    numbers = frame.sequence, frame.tick, frame.unix_seconds, frame.monotonic_seconds
    if len(boot) != 16 or not _are_sane(*numbers):
        raise ValueError(f"a frame cannot have boot id {frame.boot_id[:40]!r} and {numbers}")
    fields = [
        MAGIC, VERSION, KINDS.index(frame.kind), 0, len(payload), 0, frame.sequence,
        frame.unix_seconds, frame.monotonic_seconds, boot, frame.tick,
    ]  # fmt: skip
    fields[5] = zlib.crc32(payload, zlib.crc32(HEADER.pack(*fields)))
    whole = HEADER.pack(*fields) + payload
    return whole + bytes(-len(whole) % ALIGN_BYTES)


def size_at(data: bytes | memoryview, offset: int) -> int | None:
    """Bytes of header and payload as the header there says; None: it is no header of ours.

    Nothing is checked yet but the header's form: ``head_at`` may still say that it is torn.
    """
    if offset + HEADER.size > len(data):
        return None
    magic, version, kind, _, size, *_ = HEADER.unpack_from(data, offset)
    return HEADER.size + int(size) if _is_header(magic, version, kind, size) else None


def aligned(size: int) -> int:
    """The bytes that a frame of ``size`` takes in the file."""
    return size + -size % ALIGN_BYTES


def head_at(data: bytes | memoryview, offset: int, base: int = 0) -> FrameHead | None:
    """The frame that begins there; None when there is none, or its checksum is wrong.

    ``base``: where ``data`` begins in the file.
    """
    if offset + HEADER.size > len(data):
        return None
    magic, version, kind, _, size, crc, sequence, unix, monotonic, boot, tick = HEADER.unpack_from(
        data, offset
    )
    end = offset + HEADER.size + size
    if not _is_header(magic, version, kind, size) or end > len(data):
        return None
    so_far = zlib.crc32(_NO_CRC, zlib.crc32(data[offset : offset + CRC_OFFSET]))
    if zlib.crc32(data[offset + CRC_OFFSET + len(_NO_CRC) : end], so_far) != crc:
        return None
    if not _are_sane(sequence, tick, unix, monotonic):
        return None
    return FrameHead(
        base + offset, end - offset, sequence, KINDS[kind], unix, monotonic, _boot_id(boot), tick
    )  # fmt: skip


def _is_header(magic: bytes, version: int, kind: int, size: int) -> bool:
    return (
        magic == MAGIC and version == VERSION and kind < len(KINDS) and size <= PAYLOAD_MOST_BYTES
    )


def body_of(data: bytes | memoryview, head: FrameHead, base: int = 0) -> dict[str, JSON]:
    """What the frame holds; ValueError when it is no JSON object of ours, or absurdly large.

    ``base``: where ``data`` begins in the file.
    """
    begin = head.offset - base
    try:
        body = json.loads(_text(data[begin + HEADER.size : begin + head.size]))
    except (zlib.error, RecursionError, ValueError) as error:
        raise ValueError(f"frame {head.sequence}: {error}") from error
    if isinstance(body, dict):
        return body
    raise ValueError(f"frame {head.sequence}: expected an object")


def _text(payload: bytes | memoryview) -> bytes:
    stream = zlib.decompressobj()
    text = stream.decompress(payload, BODY_MOST_BYTES + 1)
    if len(text) > BODY_MOST_BYTES or not stream.eof:
        raise ValueError(f"cut, or more than {BODY_MOST_BYTES:,} bytes")
    return text


def _are_sane(sequence: int, tick: int, unix: float, monotonic: float) -> bool:
    """Whether nobody who reckons with them has to fear them; NaN is not."""
    return (
        0 < sequence < _NUMBER_END
        and 0 <= tick < _NUMBER_END
        and 0.0 <= unix < _UNIX_END
        and 0.0 <= monotonic < _MONOTONIC_END
    )


@functools.lru_cache(maxsize=64)
def _boot_id(boot: bytes) -> str:
    text = boot.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
