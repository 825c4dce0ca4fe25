# SPDX-License-Identifier: Apache-2.0
"""Looks at the guard's files: a stat(2) each time, a read only where the page is another one.

How old a page is counts from when it was seen to change, by the clock that nobody sets.
"""

import os
import time
from typing import Final

from seawall.agent.culprits import Accusation, Culprit, accusation_of
from seawall.agent.guard_page import PAGE_MOST_BYTES, GuardPage, parse_page
from seawall.problems import ParseProblem

BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
OLD_SECONDS: Final = 30.0
"""The guard writes at least every ten seconds."""
_JOURNAL_TAIL_BYTES: Final = 512 << 10
"""A decision with 250 workloads takes 180 KB."""
_TRIES_MOST: Final = 5
"""Its line may come a moment after the page."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
PROOF_SECONDS: Final = 600.0
"""So long what a decision proved is said of the shortage that goes on."""


class PageWatch:
    """``look`` as often as one likes; ``problem`` says what could not be read."""

    def __init__(self, folder: str, boot_id: str, now: float) -> None:
        self.boot_id = boot_id
        self.page: GuardPage | None = None
        """The last one of this boot, however old."""
        self.problem = "the guard has written no page yet"
        self.accusation: Accusation | None = None
        self._path = f"{folder}/status.json"
        self._journal = f"{folder}/decisions.jsonl"
        self._mark = (0, 0, 0)
        self._changed_at = now
        self._decision, self._tries = "", 0

    def look(self, now: float) -> bool:
        """Whether the page is another one than last time."""
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"
            return False
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if mark == self._mark:
            return False
        is_first = self._mark == (0, 0, 0)
        self._mark = mark
        page = self._read()
        if page is None:
            return False
        # The first one may be of a guard that died long ago.
        age = max(0.0, time.time() - found.st_mtime) if is_first else 0.0
        self._changed_at = now - age
        self.page, self.problem = page, ""
        self._hear(page)
        return True

    def age(self, now: float) -> float:
        """Seconds since it last changed, or since the first look."""
        return now - self._changed_at

    def current(self, now: float) -> GuardPage | None:
        """The page, while it can be believed; None: the guard is silent."""
        page = self.page
        if page is None or page.state == "stopped" or self.age(now) > OLD_SECONDS:
            return None
        return page

    def silence(self, now: float) -> str:
        """Why there is none, in words."""
        if self.page is None:
            return f"no guard tells anything: {self.problem}"
        if self.page.state == "stopped":
            return "the guard was stopped"
        return f"the guard's page is {self.age(now):.0f} s old: it hangs, or has died"

    def forget_proof(self) -> None:
        """That shortage is over: who was proved in it need not be the next one's cause."""
        self.accusation = None

    def proved(self, now: float) -> tuple[Culprit, ...]:
        """Whom a decision of the last minutes proved."""
        said = self.accusation
        if said is None or now - said.seconds > PROOF_SECONDS:
            return ()
        return said.proved

    def _read(self) -> GuardPage | None:
        try:
            data = _read_tail(self._path, PAGE_MOST_BYTES)
            page = parse_page(data)
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror}"
        except ParseProblem as problem:
            self.problem = f"{self._path}: {problem}"
        else:
            if page.boot_id == self.boot_id:
                return page
            self.problem = f"{self._path}: of another boot"
        return None

    def _hear(self, page: GuardPage) -> None:
        """The last decision about the node, once for each decision that the page names."""
        last = page.last
        if last is None or last.decision == self._decision:
            return
        try:
            lines = _read_tail(self._journal, _JOURNAL_TAIL_BYTES).split(b"\n")
        except OSError as error:
            self.problem = f"{self._journal}: {error.strerror}"
            return
        said = next((one for line in reversed(lines) if (one := accusation_of(line))), None)
        if said is not None and said.boot_id == self.boot_id:
            self.accusation = said
        self._tries += 1
        is_there = said is not None and said.decision == last.decision
        if is_there or last.trigger != "node_short" or self._tries >= _TRIES_MOST:
            self._decision, self._tries = last.decision, 0


def boot_id_here() -> str:
    """Of the running kernel; empty: it could not be read."""
    try:
        return _read_tail(BOOT_ID, 64).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _read_tail(path: str, most: int) -> bytes:
    """Its last bytes."""
    fd = os.open(path, _FLAGS)
    try:
        size = os.fstat(fd).st_size
        if size > most:
            os.lseek(fd, size - most, os.SEEK_SET)
        with open(fd, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(fd)
