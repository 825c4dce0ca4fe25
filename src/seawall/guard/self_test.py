# SPDX-License-Identifier: Apache-2.0
"""Can it kill?  Proved, not believed: a child of the aide dies in a cgroup of its own.

By then the child is another user's, as workloads are.  Where it could not become that, the words
say that nothing was proved but of root's processes; cgroup.kill does not ask whose they are, but a
SIGTERM before it does.
Through the very same ``Executor``, whose scope is wider by exactly that cgroup.  Its folders are
made before "ready" and used again in every round: below our own cgroup, where a process may be
as long as no controller is handed down (admin-guide/cgroup-v2.rst, no internal processes), which
nobody does there.  On v1 the freezer gets the same path, so that the whole road is gone.
"""

import errno
import os
from typing import Any, Final, Protocol

from seawall.actions import cgroup_files
from seawall.actions.executor import Executor
from seawall.actions.observer import Observer
from seawall.actions.orders import Mounts, Order, Target
from seawall.actions.work import refusal
from seawall.guard import own_capabilities, pid_namespace

NAME: Final = "seawall-self-test"
UNIT: Final = "seawall-guard.service"
"""Where the unit is; on v1 the freezer gets a folder of that name for the test alone."""
_DEPTH_MOST: Final = 12
_FILE_ONLY: Final = (
    ", by cgroup.kill only: without CAP_KILL nobody of another user gets SIGTERM first"
)
CHILD_SECONDS: Final = 5.0
"""So long the aide has to bring a child; one that is there and said nothing is killed then."""
POLL_SECONDS: Final = 0.02
POLL_SHARE: Final = 0.1
"""Of what it has waited already.  The loop runs at SCHED_FIFO: on a machine that is too slow to
bring a child at once, looks at a fixed pace take the processor from who brings it.
"""


class Sender(Protocol):
    """The aide, as far as it is needed here."""

    def send(self, request: dict[str, Any], /) -> bool:
        """Hand it over without waiting; False when it does not take it."""

    def take(self, kind: str, /) -> dict[str, Any] | None:
        """The answer to a request of that kind, if there is one."""


class SelfTest:
    """``prepare`` once, then ``begin`` and ``poll`` from the loop, ``close`` at the end."""

    __slots__ = (
        "_aide", "_began", "_entries", "_file_only", "_folder", "_hands", "_is_new",
        "_lacks_cap_kill", "_made", "_mounts", "_name", "_order", "_own", "_said", "is_proved",
        "kill_seconds", "proved_at", "root_only", "why_not",
    )  # fmt: skip

    def __init__(
        self, hands: Executor | Observer, aide: Sender | None, mounts: Mounts, own_cgroup: str,
        name: str = NAME,
    ) -> None:  # fmt: skip
        """``own_cgroup``: in the tree that counts memory.  ``name``: of the test's cgroup; two
        guards may be in one cgroup.
        """
        self._name = name
        self._hands = hands
        self._aide = aide
        self._mounts = mounts
        self._own = own_cgroup.rstrip("/")
        self._made: list[str] = []
        self._entries: list[str] = []
        self._folder = -1
        self._order: Order | None = None
        self._began: float | None = None
        self._is_new = False
        self._said: dict[str, Any] | None = None
        """By the child, or by the aide in its place."""
        self.is_proved: bool | None = None
        """None: not tried yet."""
        self.proved_at = 0.0
        self.kill_seconds = 0.0
        """Of the last one that was proved: until the child was gone."""
        self.why_not = ""
        self.root_only = ""
        """Why nothing was proved of other users' processes; empty: it was."""
        self._file_only = False
        """It can kill them, and signal none."""
        self._lacks_cap_kill: bool | None = None

    def prepare(self) -> str:
        """Make the test cgroup; why it cannot be made, or empty: then the next test tries again."""
        if self._order:
            return ""
        if self._lacks_cap_kill is None:  # once, for a guard that is ready opens nothing needlessly
            self._lacks_cap_kill = own_capabilities.lacks(own_capabilities.KILL)
        why = ""
        for above in dict.fromkeys((self._own, self._own.rpartition("/")[0])):
            why = self._make(f"{above}/{self._name}")
            if not why:
                return ""
        self.why_not = f"no test cgroup could be made: {why}"
        self.is_proved = False
        return self.why_not

    def begin(self, now: float) -> None:
        """Ask the aide for a child; nothing while one is awaited.  ``now``: monotonic."""
        if self._began is not None:
            return
        if self._is_swept():
            self.close()
        if why := self.prepare():
            self._end(why)
            self._is_new = True
            return
        self._began = now
        request: dict[str, Any] = {"do": "self_test_child", "cgroup_procs": self._entries}
        self._listen()  # to a test that was put off
        self._said = None
        if self._aide is None or not self._aide.send(request):
            self._end("the aide takes no request for a child")
            self._is_new = True

    def put_off(self) -> None:
        """No test now: the child ends by itself, and what was proved before stays."""
        self._began = None

    @property
    def is_waiting(self) -> bool:
        """A child is on its way: ``poll`` soon."""
        return self._began is not None

    def pause_seconds(self, now: float) -> float:
        """Until the next ``poll``, while it is waiting; 20 ms where the child comes at once."""
        waited = 0.0 if self._began is None else now - self._began
        return max(POLL_SECONDS, POLL_SHARE * waited)

    def poll(self, now: float) -> str | None:
        """Kill the child once it is there; a sentence when a test is over, else None."""
        if self._is_new:  # it was over before it began
            self._is_new = False
            return self.words(now)
        if self._order is None or self._began is None:
            return None
        try:
            there = cgroup_files.read(self._folder, "cgroup.procs")
        except OSError as refused:
            self._end(f"its child cannot be seen: {refusal(refused)}")
            return self.words(now)
        self._listen()
        is_late = now - self._began > CHILD_SECONDS
        if there:
            if self._said is None and not is_late:
                return None
            self._kill(self._order, now)
        else:
            problem = str((self._said or {}).get("problem") or "")
            if not problem and not is_late:
                return None
            self._end(problem or f"no child came from the aide within {CHILD_SECONDS:.0f} s")
        return self.words(now)

    def _kill(self, order: Order, now: float) -> None:
        outcome = self._hands.perform(order)
        if outcome.is_observed:
            self._end("not tried: observed only")
        elif outcome.is_done and outcome.processes and not outcome.left:
            if pid_namespace.is_own() and not self._has_kill_file:  # its child is of our own
                self._end(pid_namespace.CANNOT_KILL)
                return
            self.is_proved, self.why_not, self._began = True, "", None
            self.proved_at, self.kill_seconds = now, outcome.seconds
            self.root_only = self._why_root_only()
            self._file_only = bool(self._lacks_cap_kill) and self._has_kill_file
        else:
            self._end(outcome.problem or "the child outlived it")

    @property
    def _has_kill_file(self) -> bool:
        """By which everybody in a cgroup dies, whosoever it is and wherever it is seen."""
        return self._mounts.version == 2 and os.access("cgroup.kill", os.F_OK, dir_fd=self._folder)

    def _why_root_only(self) -> str:
        if self._has_kill_file:
            return ""
        still_root = (self._said or {}).get("still_root")
        if still_root is None:
            return "its child did not say whose it is"
        return f"its child could not become another user's: {still_root}" if still_root else ""

    def words(self, now: float) -> str:
        """For the status: ``can kill: proved 12 s ago in 4 ms``, or why not."""
        if self.is_proved:
            ago, took = now - self.proved_at, self.kill_seconds * 1000
            words = f"can kill: proved {ago:.0f} s ago in {took:.0f} ms"
            if self.root_only:
                words += f", of root's own processes only: {self.root_only}"
            return words + (_FILE_ONLY if self._file_only else "")
        if self.is_proved is None:
            return "can kill: not proved yet"
        return f"CANNOT KILL: {self.why_not}"

    def close(self) -> None:
        """Remove what ``prepare`` made; a folder with somebody in it stays."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
        self._order = None
        self._began = None
        self._remove()

    def _is_swept(self) -> bool:
        """Somebody has removed it: it is empty most of the time."""
        if self._order is None:
            return False
        try:
            inodes = [os.stat(os.path.dirname(entry)).st_ino for entry in self._entries]
        except OSError:
            return True
        return inodes[-1] != self._order.target.inode

    def _listen(self) -> None:
        answer = self._aide.take("self_test_child") if self._aide else None
        self._said = answer or self._said

    def _end(self, why: str) -> None:
        self.is_proved, self.why_not, self._began = False, why, None

    def _make(self, path: str) -> str:
        trees = [self._mounts.memory]
        if self._mounts.version == 1 and self._mounts.freezer:
            trees.insert(0, self._mounts.freezer)  # memory last: who is there is everywhere
        try:
            for tree in trees:
                self._make_folders(tree, path)
            self._folder = os.open(
                f"{trees[-1]}{path}", os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            if self._mounts.version == 2:
                _check_type(self._folder)
        except OSError as problem:
            self.close()
            return f"{trees[-1]}{path}: {os.strerror(problem.errno or 0)}"
        self._entries = [f"{tree}{path}/cgroup.procs" for tree in trees]
        target = Target(path, os.fstat(self._folder).st_ino, "self-test")
        self._order = Order("self-test", "kill", target, "self_test")
        self._hands.allow(path)
        return ""

    def _make_folders(self, tree: str, path: str) -> None:
        """It and, in the freezer, what it hangs on there."""
        at = tree
        for name in path.strip("/").split("/"):
            at = f"{at}/{name}"
            try:
                os.mkdir(at, 0o755)
            except FileExistsError:
                if name not in (self._name, UNIT):  # what an earlier guard left is ours to remove
                    continue
            self._made.append(at)

    def _remove(self) -> None:
        for folder in reversed(self._made):
            try:
                os.rmdir(folder)
            except OSError:
                continue
        self._made.clear()


def remove_leftovers(mounts: Mounts) -> list[str]:
    """Test cgroups of guards that were killed, in each tree.  Those of a guard that lives stay:
    it is in the cgroup above, where memory is counted.
    """
    removed = []
    for tree in dict.fromkeys(tree for tree in (mounts.memory, mounts.freezer) if tree):
        for folder, names, _ in os.walk(tree):
            if folder.count("/") - tree.count("/") >= _DEPTH_MOST:
                names.clear()
            found = [f"{folder}/{name}" for name in names if name.startswith(NAME)]
            if not found or _is_lived_in(f"{mounts.memory}{folder[len(tree) :]}"):
                continue
            if folder == f"{tree}/{UNIT}":
                found.append(folder)
            removed += [path for path in found if _is_removed(path)]
    return removed


def _is_lived_in(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.procs", "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _check_type(folder: int) -> None:
    """OSError where a process cannot be: below a threaded cgroup."""
    if (cgroup_files.read(folder, "cgroup.type") or "domain") != "domain":
        raise OSError(errno.EOPNOTSUPP, "")
