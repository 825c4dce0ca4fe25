"""Frames: what is packed comes back, and what somebody forged does no harm."""

import json
import math
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.blackbox.boxes import BOOT, UNIX, frame

from seawall.blackbox.frame import (
    ALIGN_BYTES,
    BODY_MOST_BYTES,
    CRC_OFFSET,
    HEADER,
    KINDS,
    PAYLOAD_MOST_BYTES,
    Frame,
    FrameHead,
    body_of,
    head_at,
    pack,
)

WORDS = st.text(max_size=20)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)
FRAMES = st.builds(
    Frame, st.integers(1, 2**63 - 1), st.sampled_from(KINDS), st.floats(0, 3e10),
    st.floats(0, 9e9), st.uuids().map(str), st.integers(0, 2**63 - 1),
    st.dictionaries(WORDS, JSONS, max_size=4),
)  # fmt: skip


def forged(payload: bytes, **fields: object) -> bytes:
    """A frame whose checksum is right, with that payload and those fields of the header."""
    values = {
        "magic": b"SWbb", "version": 1, "kind": 2, "zero": 0, "size": len(payload), "crc": 0,
        "sequence": 7, "unix": UNIX, "monotonic": 5.0, "boot": bytes(16), "tick": 3, **fields,
    }  # fmt: skip
    values["crc"] = zlib.crc32(payload, zlib.crc32(HEADER.pack(*values.values())))
    return HEADER.pack(*values.values()) + payload


def head_of(data: bytes) -> FrameHead:
    head = head_at(data, 0)
    assert head is not None
    return head


@given(FRAMES, st.integers(0, 9))
def test_what_is_packed_comes_back(given_frame: Frame, level: int) -> None:
    data = pack(given_frame, level)
    assert len(data) % ALIGN_BYTES == 0
    head = head_of(data)
    assert Frame(*head[2:], body_of(data, head)) == given_frame


def test_floats_come_back_to_the_bit() -> None:
    values = [0.1 + 0.2, 1e-310, math.pi, -0.0, math.inf, -math.inf]
    data = pack(frame(1)._replace(body={"x": list(values)}))
    found = body_of(data, head_of(data))["x"]
    assert isinstance(found, list)
    assert struct.pack("6d", *found) == struct.pack("6d", *values)


@given(FRAMES, st.data())
def test_one_changed_byte_is_seen(given_frame: Frame, data: st.DataObject) -> None:
    packed = bytearray(pack(given_frame))
    size = head_of(bytes(packed)).size
    at = data.draw(st.integers(0, size - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    assert head_at(bytes(packed), 0) is None


@given(st.binary(max_size=300))
def test_garbage_is_no_frame(data: bytes) -> None:
    assert head_at(b"SWbb\x01" + data, 0) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"sequence": 0}, {"sequence": 2**63}, {"sequence": 2**64 - 1}, {"tick": 2**63},
        {"unix_seconds": math.nan}, {"unix_seconds": math.inf}, {"unix_seconds": -1.0},
        {"unix_seconds": 1e300}, {"monotonic_seconds": -1.0}, {"monotonic_seconds": 1e200},
    ],
    ids=str,
)  # fmt: skip
def test_numbers_that_nobody_can_reckon_with_are_refused_at_both_ends(
    changed: dict[str, float],
) -> None:
    with pytest.raises(ValueError, match="cannot have"):
        pack(frame(1)._replace(**changed))  # type: ignore[arg-type]
    short = {name.removesuffix("_seconds"): value for name, value in changed.items()}
    assert head_at(forged(zlib.compress(b"{}"), **short), 0) is None


@pytest.mark.parametrize("boot", ["", "xyz", BOOT[:-2], BOOT + "ab"])
def test_a_boot_id_has_sixteen_bytes(boot: str) -> None:
    with pytest.raises(ValueError, match=r"boot id|hexadecimal"):
        pack(frame(1)._replace(boot_id=boot))


def test_a_body_that_is_too_large_is_not_packed() -> None:
    with pytest.raises(ValueError, match="too large"):
        pack(frame(1)._replace(body={"x": "a" * BODY_MOST_BYTES}))


PAYLOADS = {
    "bomb": lambda: zlib.compress(bytes(300 << 20), 9),
    "blown-up": lambda: zlib.compress(b"{" + b" " * BODY_MOST_BYTES + b"}"),
    "cut": lambda: zlib.compress(b'{"a": 1}')[:-4],
    "list": lambda: zlib.compress(b"[1]"),
    "number": lambda: zlib.compress(b"3"),
    "no-utf8": lambda: zlib.compress(b'{"a": \xff}'),
    "deep": lambda: zlib.compress(b"[" * 100_000),
    "long": lambda: zlib.compress(b'{"a": ' + b"9" * 100_000 + b"}"),
    "raw": lambda: b"not zlib",
    "none": lambda: b"",
}
"""Made when they are wanted: a bomb takes a second."""


@pytest.mark.parametrize("name", PAYLOADS)
def test_hostile_payloads_are_value_errors(name: str) -> None:
    payload = PAYLOADS[name]()
    assert len(payload) < PAYLOAD_MOST_BYTES
    data = forged(payload)
    with pytest.raises(ValueError, match="frame 7: "):
        body_of(data, head_of(data))


def test_the_frame_that_the_page_of_the_format_tells_of() -> None:
    """Field by field, so that no change of the code goes unnoticed."""
    data = pack(Frame(9, "round", 1.5, 2.5, BOOT, 4, {"a": 1}))
    assert data[:8] == b"SWbb\x01\x03\x00\x00"
    size, crc, sequence, unix, monotonic = struct.unpack_from("<IIQdd", data, 8)
    assert (sequence, unix, monotonic) == (9, 1.5, 2.5)
    assert data[40:56].hex() == BOOT.replace("-", "")
    assert data[56:64] == struct.pack("<Q", 4)
    assert json.loads(zlib.decompress(data[64 : 64 + size])) == {"a": 1}
    blank = data[:CRC_OFFSET] + bytes(4) + data[CRC_OFFSET + 4 : 64 + size]
    assert zlib.crc32(blank) == crc
