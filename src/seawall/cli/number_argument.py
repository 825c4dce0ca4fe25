# SPDX-License-Identifier: Apache-2.0
"""Numbers on a command line."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def a_number(of_what: str = "", *, least: int = 1) -> Callable[[str], int]:
    """A ``type`` for argparse: decimal, not below ``least``, at most nine digits."""

    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text[:9]) == int(text):
            raise ArgumentTypeError(f"{text!r} is not a number {of_what}".rstrip())
        return int(text)

    return number
