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

import json
import math
import struct
import zlib
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from seawall.host.host import JSON

Kind: TypeAlias = Literal["start", "mind", "tick", "round", "line"]
"""start: whose ticks follow (machine, settings, mounts).  mind: what the judge remembered.
tick: what the judge saw (``replay/ticks.py``).  round: what files held (``rounds.py``).
line: of the decision journal, or of the kernel's log."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAGIC: Final = b"SWbb"
VERSION: Final = 1
ALIGN_BYTES: Final = 512
HEADER: Final = struct.Struct("<4sBBHIIQdd16sQ")
CRC_OFFSET: Final = 12
PAYLOAD_MOST_BYTES: Final = 4 << 20
"""Compressed."""
BODY_MOST_BYTES: Final = 32 << 20
"""The JSON text: a box is hostile input, and zlib makes much of little."""


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


class Head(NamedTuple):
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
    """The bytes of a frame, filled up to a multiple of ALIGN_BYTES; ValueError: too large."""
    text = json.dumps(frame.body, separators=(",", ":")).encode()
    payload = zlib.compress(text, level)
    if len(payload) > PAYLOAD_MOST_BYTES or len(text) > BODY_MOST_BYTES:
        raise ValueError(f"a frame of {len(payload):,} bytes is too large")
    fields = [
        MAGIC, VERSION, KINDS.index(frame.kind), 0, len(payload), 0, frame.sequence,
        frame.unix_seconds, frame.monotonic_seconds,
        bytes.fromhex(frame.boot_id.replace("-", "")), frame.tick,
    ]  # fmt: skip
    fields[5] = zlib.crc32(payload, zlib.crc32(HEADER.pack(*fields)))
    whole = HEADER.pack(*fields) + payload
    return whole + bytes(-len(whole) % ALIGN_BYTES)


def head_at(data: bytes | memoryview, offset: int) -> Head | None:
    """The frame that begins there; None when there is none, or its checksum is wrong."""
    if offset + HEADER.size > len(data):
        return None
    magic, version, kind, _, size, crc, sequence, unix, monotonic, boot, tick = HEADER.unpack_from(
        data, offset
    )
    end = offset + HEADER.size + size
    if magic != MAGIC or version != VERSION or kind >= len(KINDS) or end > len(data):
        return None
    if size > PAYLOAD_MOST_BYTES or not (math.isfinite(unix) and math.isfinite(monotonic)):
        return None
    blank = bytearray(data[offset : offset + HEADER.size])
    blank[CRC_OFFSET : CRC_OFFSET + 4] = bytes(4)
    if zlib.crc32(data[offset + HEADER.size : end], zlib.crc32(blank)) != crc:
        return None
    text = bytes(boot).hex()
    boot_id = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return Head(
        offset, HEADER.size + size, sequence, KINDS[kind], unix, monotonic, boot_id, tick
    )  # fmt: skip


def body_of(data: bytes | memoryview, head: Head) -> dict[str, JSON]:
    """What the frame holds; ValueError when it is no JSON object of ours, or absurdly large."""
    packed = data[head.offset + HEADER.size : head.offset + head.size]
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(packed, BODY_MOST_BYTES)
        body = json.loads(text)
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"frame {head.sequence}: {error}") from error
    if not isinstance(body, dict):
        raise ValueError(f"frame {head.sequence}: expected an object")
    return body
