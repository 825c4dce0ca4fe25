# SPDX-License-Identifier: Apache-2.0
"""``seawall guard status --json``."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from seawall.host.host import Unread
from seawall.readings.guard_processes import GuardProcess, GuardProcesses
from seawall.views.documents.document_fields import Document, shown, unread


class GuardAnswer(NamedTuple):
    """Whether a guard runs, and what it last wrote."""

    runs: bool | None
    """None: could not be seen, for its folder is root's."""
    pid: int | None
    age_seconds: float | None
    """Of the page; None: there is none, or it cannot be told, for the clock was set back."""
    is_old: bool
    """The page is too old to be believed, or there is none, or how old it is cannot be told."""
    words: str
    """The same in a sentence."""
    page: Mapping[str, Any] | None
    """/run/seawall/status.json as the guard wrote it; None: none that can be read."""
    memory: GuardProcesses | Unread
    """What its processes hold; where none runs there are no processes."""


STATUS: Final = Document(
    name="guard-status",
    verb="seawall guard status --json",
    about="Whether a guard runs on this machine, and what it says. Additive within the major "
    "number.",
    pages=(GuardAnswer,),
    shapes={
        GuardAnswer: (*shown("runs pid age_seconds is_old words page"), *unread("memory")),
        GuardProcesses: (*unread("pss_bytes"), *shown("processes")),
        GuardProcess: (*shown("name pid"), *unread("pss_bytes")),
    },
)
