# SPDX-License-Identifier: Apache-2.0
"""The Huffman code of header strings (RFC 7541 section 5.2 and appendix B), decoding.

The code is canonical: within a length, codes rise with the symbol, so the lengths alone tell it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from seawall.host.grpc_unix.grpc_problems import WireProblem

_EOS: Final = 256
_LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
)  # fmt: skip
"""Bits of each byte's code, then of the end of a string."""
_PADDING_MOST: Final = 7


@cache
def codes() -> Mapping[tuple[int, int], int]:
    """(length, code) -> symbol."""
    found: dict[tuple[int, int], int] = {}
    code = before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(_LENGTHS)):
        code <<= length - before
        found[length, code] = symbol
        code, before = code + 1, length
    return found


def decode(data: bytes) -> bytes:
    """WireProblem: an end of string within it, or a padding that is none."""
    table = codes()
    out = bytearray()
    code = length = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            symbol = table.get((length, code))
            if symbol is None:
                continue
            if symbol == _EOS:
                raise WireProblem("an end of string within a header's string")
            out.append(symbol)
            code = length = 0
    # What is left has to be the beginning of the end of string: ones.
    if length > _PADDING_MOST or code != (1 << length) - 1:
        raise WireProblem("a header's string whose padding is none")
    return bytes(out)
