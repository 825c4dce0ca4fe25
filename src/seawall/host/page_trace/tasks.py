# SPDX-License-Identifier: Apache-2.0
"""Who a thread was when it allocated, also when it has exited, forked or moved since.

A look at all processes at the start, then ``task_newtask`` (a child is where its parent is) and
``cgroup_attach_task`` (a process moves, and all its threads with it), in the order of time.  A
child cloned straight into another cgroup (CLONE_INTO_CGROUP, 5.7) is looked up in /proc.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from seawall.host.page_trace.memory_tree import MemoryTree
from seawall.host.page_trace.proc_tasks import ProcTask, all_pids, look_at, start_of, threads

KnownBy = Literal["proc", "fork", "attach"]
_CLONE_THREAD: Final = 0x00010000
_CLONE_INTO_CGROUP: Final = 0x200000000
_KTHREADD: Final = 2
_KNOWN_MOST: Final = 1 << 17
_ROWS_MOST: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class TracerTask:
    """One thread in the cgroups in which it allocated."""

    tid: int
    tgid: int
    comm: str
    is_kernel_thread: bool
    cgroups: tuple[str, ...]
    known_by: KnownBy | None
    start_ticks: int | None = None
    """Of its process; None when it was never seen in /proc."""
    cgroup_inode: int | None = None
    """Of its cgroup in the tree that counts memory, at that time: a path comes again."""


def _from_proc(tid: int, seen: ProcTask) -> TracerTask:
    return TracerTask(
        tid, seen.tgid, seen.comm, seen.is_kernel_thread, seen.cgroups, "proc", seen.start_ticks
    )


class Tasks:
    """Rows are never changed: what a thread allocates after a move is another row's."""

    def __init__(self, tree: MemoryTree, *, sees_all_cgroups: bool = True) -> None:
        self.rows: list[TracerTask] = []
        self.is_cut = False
        """More threads than are remembered."""
        self.doubted: set[int] = set()
        """Rows that may be somebody else's: begun while events about tasks were lost."""
        self._sure = 0
        """Rows before this one were begun before that."""
        self._tree = tree
        self._sees_all = sees_all_cgroups
        """False in a cgroup namespace: the kernel's paths are not those that we read."""
        self._known: dict[int, TracerTask] = {}
        self._known_most = _KNOWN_MOST
        self._row_of: dict[int, int] = {}
        self._nobody: int | None = None
        """The row of all for whom there was no room."""
        self._moved: dict[tuple[str, ...], tuple[str, ...]] = {}

    def look_at_all(self) -> None:
        """Before anything is traced, and again when events about tasks were lost."""
        for pid in all_pids():
            known = self._known.get(pid)
            seen = look_at(pid)
            if seen is None or (known and known.start_ticks == seen.start_ticks):
                continue
            self._put(pid, _from_proc(pid, seen))

    def trust(self) -> None:
        """No event about tasks was lost until now: the rows are whose they seem to be."""
        self._sure = len(self.rows)

    def mistrust(self) -> None:
        """Events about tasks were lost: whoever lives is looked at again, the dead are kept.

        A number may have been somebody else's by then.  Rows begun since are believed where the
        very thread still lives, and whoever is another now has taken no one knows how much of
        an older row.
        """
        begun = set(range(self._sure, len(self.rows)))
        for tid, known in list(self._known.items()):
            seen, row = look_at(tid), self._row_of.get(tid, -1)
            if seen is None:
                continue
            if (known.start_ticks, known.cgroups) == (seen.start_ticks, seen.cgroups):
                begun.discard(row)
                continue
            begun |= {row} if row >= 0 else set()
            self._put(tid, _from_proc(tid, seen))
        self.doubted |= begun
        self.trust()
        self.look_at_all()

    def forget(self) -> None:
        """Drop the rows, keep who is who."""
        self.rows = []
        self._row_of = {}
        self._nobody = None
        self.is_cut = False
        self.doubted = set()
        self._sure = 0

    def keep(self, rows: set[int]) -> dict[int, int]:
        """Drop all other rows; the new number of each that stays."""
        numbers = {old: new for new, old in enumerate(sorted(rows))}
        self._sure = sum(old < self._sure for old in numbers)
        self.doubted = {numbers[row] for row in self.doubted if row in numbers}
        self.rows = [self.rows[old] for old in sorted(rows)]
        self._row_of = {tid: numbers[row] for tid, row in self._row_of.items() if row in numbers}
        self._nobody = None if self._nobody is None else numbers.get(self._nobody)
        return numbers

    def row(self, tid: int) -> int:
        """The number of the row of a thread that is doing something now."""
        number = self._row_of.get(tid)
        if number is not None:
            return number
        if len(self.rows) >= _ROWS_MOST:
            return self._no_room()
        known = self._known.get(tid)
        if known is None or known.start_ticks is None:
            known = self._completed(tid, known)
        if known.cgroup_inode is None and known.cgroups:
            known = replace(known, cgroup_inode=self._tree.inode(known.cgroups))
        self._known[tid] = known
        number = self._row_of[tid] = len(self.rows)
        self.rows.append(known)
        return number

    def _no_room(self) -> int:
        """A row that is nobody's, so that no other is charged."""
        self.is_cut = True
        if self._nobody is None:
            self._nobody = len(self.rows)
            self.rows.append(
                TracerTask(0, 0, "", is_kernel_thread=False, cgroups=(), known_by=None)
            )
        return self._nobody

    def _completed(self, tid: int, known: TracerTask | None) -> TracerTask:
        """With what /proc tells; what the events told of cgroups stands, for it is older."""
        seen = look_at(tid) if tid else None
        if seen is None:
            return known or TracerTask(tid, tid, "", tid == 0, (), None)
        if known is None and seen.tgid != tid:
            # A thread from before: where its process was, which may have moved meanwhile.
            known = self._known.get(seen.tgid)
        if known is None or known.known_by is None:
            return _from_proc(tid, seen)
        return replace(
            known, tid=tid, tgid=seen.tgid, comm=seen.comm, start_ticks=seen.start_ticks,
            is_kernel_thread=seen.is_kernel_thread,
        )  # fmt: skip

    def forked(self, parent: int, child: int, comm: str, flags: int) -> None:
        """``parent`` made ``child``; clone(2)'s flags tell a thread, and another cgroup."""
        base = self._known.get(parent)
        if base is None:
            seen = look_at(parent) if parent else None
            if seen is not None:
                base = self._known[parent] = _from_proc(parent, seen)
        if base is None or flags & _CLONE_INTO_CGROUP:
            self._put(child, self._completed(child, None))
            return
        is_thread = bool(flags & _CLONE_THREAD)
        self._put(
            child,
            TracerTask(
                tid=child,
                tgid=base.tgid if is_thread else child,
                comm=comm or base.comm,
                is_kernel_thread=base.is_kernel_thread and base.tid == _KTHREADD,
                cgroups=base.cgroups,
                known_by="fork" if base.cgroups else None,
                start_ticks=base.start_ticks if is_thread else None,
                cgroup_inode=base.cgroup_inode,
            ),
        )

    def attached(self, pid: int, hierarchy: int, path: str, inode: int | None) -> None:
        """A process was moved, as a whole, to ``path`` of one hierarchy (0 is cgroup v2)."""
        known = self._known.get(pid)
        tids = {pid, *threads(pid)} if known is None or known.tgid == pid else {pid}
        tids |= {tid for tid in self._row_of if self.rows[self._row_of[tid]].tgid == pid}
        for tid in tids:
            known = self._known.get(tid) or self._completed(tid, None)
            if not self._sees_all:
                self._put(tid, self._completed(tid, None))
            elif known.cgroups:
                lines = self._with_path(known.cgroups, hierarchy, path)
                if self._tree.is_of_memory(lines, hierarchy):
                    known = replace(known, cgroup_inode=inode)
                self._put(tid, replace(known, cgroups=lines, known_by="attach"))

    def _with_path(self, lines: tuple[str, ...], hierarchy: int, path: str) -> tuple[str, ...]:
        """The lines with one path changed; the same object for the same lines."""
        head = f"{hierarchy}:"
        changed = tuple(
            ":".join([*line.split(":", 2)[:2], path]) if line.startswith(head) else line
            for line in lines
        )
        return self._moved.setdefault(changed, changed)

    def _put(self, tid: int, task: TracerTask) -> None:
        if len(self._known) >= self._known_most:
            self._drop_dead()
        self._known[tid] = task
        self._row_of.pop(tid, None)

    def _drop_dead(self) -> None:
        living = set(all_pids())
        self._known = {tid: task for tid, task in self._known.items() if task.tgid in living}
        self._row_of = {tid: row for tid, row in self._row_of.items() if tid in self._known}
        self._moved.clear()
        self._known_most = max(_KNOWN_MOST, 2 * len(self._known))  # a large node lives


def comm_of(task: TracerTask) -> str:
    """Its name now while it lives, for it may run another program; else the last that was seen."""
    seen = look_at(task.tid) if is_alive(task) else None
    return seen.comm if seen and seen.tgid == task.tgid else task.comm


def is_alive(task: TracerTask) -> bool:
    """Whether the process is still the one that it was; False when it was never seen alive."""
    return task.start_ticks is not None and start_of(task.tgid) == task.start_ticks
