# SPDX-License-Identifier: Apache-2.0
"""A fault of our own in one part: a parser, a reading, a sum or a rule.

It is caught where parts meet (``read_as``, ``Snapshot.get``, ``judge``), becomes an ``Unread``
of kind ``bug``, and the rest is answered: on a node that fails a traceback helps nobody.
"""

from typing import Final

from seawall.host.host import Unread
from seawall.problems import ParseProblem, UsageProblem

REPORT: Final = "this is a bug in seawall; please report it"
_OURS: Final = "seawall."

RAISES = False
"""Tests set it: there a fault is a traceback."""


def unread_of(what: str, error: Exception) -> Unread:
    """Why ``what`` has no value; an error that is meant for the caller is raised again."""
    if isinstance(error, ParseProblem):
        return Unread(what, "malformed", str(error))
    if RAISES or isinstance(error, UsageProblem):
        raise error
    if isinstance(error, MemoryError):
        return Unread(what, "failed", "there was no memory left to hold it")
    return Unread(what, "bug", f"{type(error).__name__} in {_place(error)}: {REPORT}")


def _place(error: Exception) -> str:
    """Module and line, of ours, where it happened."""
    place = "a module of Python's"
    step = error.__traceback__
    while step is not None:
        name = str(step.tb_frame.f_globals.get("__name__"))
        if name.startswith(_OURS) and name != __name__:
            place = f"{name}, line {step.tb_lineno}"
        step = step.tb_next
    return place
