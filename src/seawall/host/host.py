# SPDX-License-Identifier: Apache-2.0
"""The one protocol through which a machine is asked.

Four questions: read a file, list a folder, follow a link, ask a probe.  An answer that
did not come is an :class:`Unread` value with its reason, never an empty string or a zero.

Paths are always written as on the host (``/proc/meminfo``), whatever serves them: a live
machine, a container's view of it, an unpacked report or a recorded bundle.

This module touches nothing; it is the only part of ``host`` that pure code may import.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

Why: TypeAlias = Literal[
    "absent",  # ENOENT, ENOTDIR, EOPNOTSUPP: this machine does not have it
    "refused",  # EACCES, EPERM: it is there, and we may not
    "vanished",  # ESRCH, ENODEV: it went away while it was read
    "too_big",  # larger than the limit that the reader gave
    "no_answer",  # the expendable child did not come back before its deadline
    "not_reached",  # the verb's own --timeout ended before it was asked
    "not_captured",  # a bundle does not hold this question
    "malformed",  # it was read and is not what the kernel documents
    "failed",  # any other errno
    "bug",  # a fault of seawall's own: see readings/own_fault.py
]

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None

READ_LIMIT_BYTES: Final = 16 << 20
NOT_IN_REPORT: Final = "the report does not hold it"
"""``detail`` of what is ``not_captured`` in another tool's report."""
HERE_ONLY: Final = "asked only on the machine itself"
"""What processes are asked for, and --root named another tree: its pids may mean others here."""
BREAKS_OFF: Final = "the bundle does not hold it, or breaks off before it"
"""``detail`` of what is ``not_captured`` in a bundle that was cut on its way."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A question without an answer: what was asked, why it failed, and words about it."""

    path: str
    why: Why
    detail: str = ""


class Host(Protocol):
    """What can be asked of a machine.  See the module's text for the meaning of answers."""

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        """The whole content of a file; ``too_big`` instead of a cut one."""
        ...

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        """The same for many small files, in order, in one go."""
        ...

    def names(self, path: str) -> tuple[str, ...] | Unread:
        """The sorted names in a folder; those of folders end with ``/``."""
        ...

    def link(self, path: str) -> str | Unread:
        """The text of a symbolic link.  Magic links are read too, never followed."""
        ...

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        """What no file tells: ``now``, ``page_size``, ... (see ``probes.py``)."""
        ...
