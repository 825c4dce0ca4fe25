"""Pages of the ring buffer and formats as two kernels gave them, and pages made by hand."""

import struct
from pathlib import Path

from seawall.host.page_trace.event_format import EventFormat, parse

HOME = Path(__file__).with_name("files") / "page_trace"
KERNELS = ("6.1-debian", "6.18")
PAGE = 4096


def recorded(kernel: str, name: str) -> bytes:
    return (HOME / kernel / name).read_bytes()


def pages(kernel: str, kind: str) -> list[bytes]:
    data = recorded(kernel, f"{kind}.raw")
    return [data[at : at + PAGE] for at in range(0, len(data), PAGE)]


def event(kernel: str, name: str) -> EventFormat:
    return parse(recorded(kernel, f"{name}.format"))


def page(time: int, body: bytes, *, flags: int = 0, tail: bytes = b"") -> bytes:
    """A page with these records; ``flags`` are the top bits of its commit word."""
    return (struct.pack("<QQ", time, len(body) | flags) + body + tail).ljust(PAGE, b"\0")


def record(delta: int, payload: bytes) -> bytes:
    """A record of at most 112 bytes, which are whole words."""
    assert len(payload) % 4 == 0
    return struct.pack("<I", delta << 5 | len(payload) // 4) + payload


def freed(delta: int, frame: int, order: int = 0, number: int = 655) -> bytes:
    """mm_page_free of Linux 6.18."""
    return record(delta, struct.pack("<HBBiQI4x", number, 0, 0, 77, frame, order))
