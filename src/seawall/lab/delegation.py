# SPDX-License-Identifier: Apache-2.0
"""v2 below a delegated cgroup: the lab steps aside, so that its cgroup can hand memory on.

Kernel document: admin-guide/cgroup-v2.rst "No Internal Process Constraint".  What was handed on
for the lab stands in the name of the leaf that it steps into, so whoever cleans up after a
kill -9 knows what to take back, and takes back nothing else.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from seawall.lab import locks
from seawall.lab.cgroup_parent import V2_WANTED
from seawall.lab.small_files import read_text, write_text
from seawall.problems import UsageProblem

OUTSIDE: Final = "-outside"
"""Behind the lab's name, and then ``-CONTROLLER`` for each that was added."""


class Delegation:
    """The leaf for the lab itself."""

    def __init__(self, parent: str, name: str, wanted: Sequence[str]) -> None:
        self.parent = parent
        handed_on = read_text(f"{parent}/cgroup.subtree_control").split()
        self.added = tuple(name for name in wanted if name not in handed_on)
        self.folder = f"{parent}/{name}{OUTSIDE}" + "".join(f"-{name}" for name in self.added)
        self._lock: int | None = None

    @property
    def lock(self) -> Sequence[int]:
        """Its fd, once it is made."""
        return () if self._lock is None else (self._lock,)

    def step(self) -> None:
        """Move this process there and hand the controllers on; UsageProblem."""
        try:
            self._lock = locks.make_held(self.folder, locks.make_folder)
            write_text(f"{self.folder}/cgroup.procs", str(os.getpid()))
            for name in self.added:
                write_text(f"{self.parent}/cgroup.subtree_control", f"+{name}")
        except OSError as error:
            raise UsageProblem(f"{self.parent}: cannot hand memory on: {error.strerror}") from error

    def back(self) -> list[str]:
        """Undo all of it; what stayed."""
        if self._lock is None:
            return []
        take_back(self.parent, self.added)
        with suppress(OSError):
            write_text(f"{self.parent}/cgroup.procs", str(os.getpid()))
            os.rmdir(self.folder)
        os.close(self._lock)
        self._lock = None
        return [self.folder] if os.path.exists(self.folder) else []


def take_back(parent: str, added: Sequence[str]) -> None:
    """Hand these controllers on no longer, as far as the kernel lets."""
    for name in reversed(added):
        with suppress(OSError):
            write_text(f"{parent}/cgroup.subtree_control", f"-{name}")


def added_of(name: str) -> Sequence[str]:
    """The controllers in the name of such a leaf; none for any other name."""
    _, outside, words = name.partition(OUTSIDE)
    return tuple(word for word in words.split("-") if outside and word in V2_WANTED)
