# SPDX-License-Identifier: Apache-2.0
"""What all readings share: from an answer of the host to a typed value or an Unread.

A reading is one module named as the kernel names the file.  It holds a frozen dataclass, a
pure ``parse(data: bytes)`` that raises only :class:`~seawall.problems.ParseProblem`, and
``read(host)`` that gives the value or an :class:`~seawall.host.host.Unread`.
A topic (what a rule may ask for) is a class whose module has such a ``read``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from seawall.host.host import READ_LIMIT_BYTES, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.own_fault import unread_of

T = TypeVar("T")

DIGITS_MOST: Final = 20  # of an unsigned 64-bit number; longer ones are absurd


class Unlimited:
    """The kernel's ``max``: no limit.  Never compared with a number by accident."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNLIMITED"


UNLIMITED: Final = Unlimited()


def parse_number(text: bytes, line: int, what: str) -> int:
    """A plain non-negative decimal of at most 64 bits; ParseProblem otherwise."""
    if not text.isdigit() or len(text) > DIGITS_MOST:
        raise ParseProblem(line, f"a number for {what}", text)
    number = int(text)
    if number >> 64:
        raise ParseProblem(line, f"a number of at most 64 bits for {what}", text)
    return number


def parse_signed(text: bytes, line: int, what: str) -> int:
    """The same with an optional minus sign."""
    if text[:1] == b"-":
        return -parse_number(text[1:], line, what)
    return parse_number(text, line, what)


def parse_fraction(text: bytes, line: int, what: str) -> float:
    """A decimal such as ``12.34``; no exponent, sign, nan or infinity."""
    whole, dot, part = text.partition(b".")
    if dot and not part.isdigit():
        raise ParseProblem(line, f"a decimal for {what}", text)
    return parse_number(whole, line, what) + (float(b"0." + part[:DIGITS_MOST]) if dot else 0.0)


def decode_name(raw: bytes) -> str:
    """A name from the kernel as text; bytes that are not UTF-8 survive as surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def read_as(
    host: Host, path: str, parse: Callable[[bytes], T], limit_bytes: int = READ_LIMIT_BYTES
) -> T | Unread:
    """Read and parse one file; a problem of either becomes an Unread that names the path."""
    data = host.read(path, limit_bytes)
    if isinstance(data, Unread):
        return data
    try:
        return parse(data)
    except Exception as error:  # noqa: BLE001 - one file's fault is not the others'
        return unread_of(path, error)


def read_each_as(
    host: Host, paths: Sequence[str], parse: Callable[[bytes], T]
) -> Iterator[T | Unread]:
    """The same for many small files, in order."""
    for path, data in zip(paths, host.read_each(paths), strict=True):
        if isinstance(data, Unread):
            yield data
            continue
        try:
            value: T | Unread = parse(data)
        except Exception as error:  # noqa: BLE001 - as above
            value = unread_of(path, error)
        yield value
