# SPDX-License-Identifier: Apache-2.0
"""The errors that Seawall raises on purpose.

Exception
 |- UsageProblem      the caller's words or input are unusable: one line, exit status 2
 |   |- BundleProblem a bundle or a black box that is cut, foreign, oversized or hostile
 |   |- BlackboxProblem the black box cannot be written here
 |   `- OutputProblem the answer cannot be written: a full disk behind stdout
 `- ParseProblem      a kernel file is not what it is documented to be; becomes an Unread

Everything else that escapes is a bug of ours: a traceback, exit status 70.
"""


class UsageProblem(Exception):
    """What was expected, where, and what to do, in one line."""


class BundleProblem(UsageProblem):
    """The bundle cannot be used; nothing of it was believed."""


class BlackboxProblem(UsageProblem):
    """There is no room for the black box, or another one writes it."""


class OutputProblem(UsageProblem):
    """Nobody can read what was found, for stdout does not take it."""


class ParseProblem(Exception):
    """A known field is malformed: ``line`` counts from 1, 0 means the whole file."""

    def __init__(self, line: int, expected: str, found: bytes = b"") -> None:
        self.line = line
        self.expected = expected
        self.found = found[:60]
        where = f"line {line}: " if line else ""
        super().__init__(f"{where}expected {expected}, found {self.found!r}")
