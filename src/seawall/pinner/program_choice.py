# SPDX-License-Identifier: Apache-2.0
"""Whose text is pinned: the words of ``pin`` against the processes that live now.

``node``: node_programs.py.  ``/usr/bin/app``: processes that run that file, and the file when
nobody runs it.  ``/system.slice``: a cgroup and what is below it.  ``x.service``: a unit.
``NAMESPACE/POD``: a pod, by the kubelet's folders.  Anything else: a program's name.  ``*`` is
allowed in all of them.  Reads what takes no other process's mmap_lock: stat, exe and cgroup.
"""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from seawall.cgroup_paths import CgroupPlace, place_of
from seawall.pinner import node_programs

POD_LOGS: Final = ("/var/log/pods", "/proc/1/root/var/log/pods")
PROCESSES_MOST: Final = 1000
_UNITS: Final = (".service", ".scope", ".slice", ".socket")
_DELETED: Final = " (deleted)"
_KERNEL_THREAD: Final = 0x200000
_AFTER_NODE: Final = len(node_programs.ROLES)


class ChosenProgram(NamedTuple):
    """One process of the set."""

    pid: int
    starttime: int
    exe: str
    """The program's file as it sees it."""
    program: str
    """As the table calls it."""
    rank: int
    """The lower, the sooner it gets of the budget."""
    word: str
    """Of ``pin``, that named it."""
    must_be_roots: bool
    """Its program's file has to be root's."""


class Unstarted(NamedTuple):
    """A program that nobody runs."""

    program: str
    rank: int
    word: str
    paths: Sequence[str]
    must_be_roots: bool


class PinnedTask(NamedTuple):
    """A process as it is looked at."""

    pid: int
    parent: int
    starttime: int
    comm: str
    exe: str
    cgroup: str

    @property
    def name(self) -> str:
        return self.exe.rpartition("/")[2] or self.comm


def chosen_programs(
    words: Sequence[str], guard_pid: int = 0
) -> tuple[list[ChosenProgram], list[Unstarted]]:
    """Those that the words name, most important first; ``guard_pid``: the guard's own."""
    pods = _pods(words)
    found = []
    named = set()
    for task in _tasks():
        if one := _choose(words, task, pods, guard_pid):
            found.append(one)
            named.add(one.exe)
    found.sort(key=lambda one: (one.rank, one.program, one.pid))
    return found[:PROCESSES_MOST], list(_unstarted(words, named))


def missing(words: Sequence[str], found: Sequence[ChosenProgram], files: set[str]) -> list[str]:
    """Words that name nobody now; ``files``: words whose file was found without a process."""
    hit = {one.word for one in found} | files
    return [word for word in words if word not in hit and word != "node"]


def _choose(
    words: Sequence[str], task: PinnedTask, pods: dict[str, str], guard_pid: int
) -> ChosenProgram | None:  # fmt: skip
    place = place_of(task.cgroup)
    for at, word in enumerate(words):
        rank, program, must = _AFTER_NODE + at, task.name, False
        if word == "node":
            role = _node_rank(task, place, guard_pid)
            if role is None:
                continue
            rank, must = role, role != 0
            program = "seawall" if role == 0 else program
        else:
            if not _is_named(word, task, place, pods):
                continue
            if place.kind in ("container", "pod") or place.is_delegated:
                program = f"{program} in {_pod_name(place, pods)}"
        return ChosenProgram(task.pid, task.starttime, task.exe, program, rank, word, must)
    return None


def _node_rank(task: PinnedTask, place: CgroupPlace, guard_pid: int) -> int | None:
    """Its place in ``ROLES``; None: it is not of the set."""
    if guard_pid and guard_pid in (task.pid, task.parent):
        return 0
    known = node_programs.BY_NAME.get(task.name)
    if known is None:
        return None
    rank, role = known
    if place.kind not in ("container", "pod") and not place.is_delegated:
        return rank
    if role == node_programs.NETWORK and _adj(task.pid) <= node_programs.CRITICAL_ADJ:
        return rank
    return None


def _is_named(word: str, task: PinnedTask, place: CgroupPlace, pods: dict[str, str]) -> bool:
    if word.startswith("/"):
        is_below = task.cgroup == word or task.cgroup.startswith(word.rstrip("/") + "/")
        return is_below or fnmatchcase(task.exe, word) or fnmatchcase(task.cgroup, word)
    if "/" in word:
        name = pods.get(place.pod_uid or "")
        return name is not None and fnmatchcase(name, word)
    if word.endswith(_UNITS):
        return any(fnmatchcase(part, word) for part in task.cgroup.split("/"))
    return fnmatchcase(task.name, word)


def _unstarted(words: Sequence[str], running: set[str]) -> Iterator[Unstarted]:
    for at, word in enumerate(words):
        if word == "node":
            for rank, name, paths in node_programs.unstarted():
                if not any(path in running for path in paths):
                    yield Unstarted(name, rank, word, paths, must_be_roots=True)
        elif word.startswith("/") and "*" not in word and word not in running:
            name = word.rpartition("/")[2]
            yield Unstarted(name, _AFTER_NODE + at, word, (word,), must_be_roots=False)


# --- what the machine tells ------------------------------------------------------------


def _tasks() -> Iterator[PinnedTask]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and (task := task_of(int(name))):
            yield task


def task_of(pid: int) -> PinnedTask | None:
    """None: it is gone, or a thread of the kernel's."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            head, _, tail = file.read().rpartition(b")")
        rest = tail.split()
        if int(rest[6]) & _KERNEL_THREAD or rest[0] in (b"Z", b"X"):
            return None
        exe = os.readlink(f"/proc/{pid}/exe").removesuffix(_DELETED)
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            cgroup = memory_path_of(file.read().decode("utf-8", "surrogateescape"))
    except (OSError, ValueError, IndexError):
        return None
    comm = head.partition(b"(")[2].decode("utf-8", "surrogateescape")
    return PinnedTask(pid, int(rest[1]), int(rest[19]), comm, exe, cgroup)


def memory_path_of(text: str) -> str:
    """Of the tree that counts memory, on v1, v2 and where both are."""
    found = ""
    for line in text.split("\n"):  # and nowhere else: containers name cgroups
        if not line:
            continue
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return path
        if not controllers or not found:
            found = path
    return found


def _adj(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/oom_score_adj", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _pods(words: Sequence[str]) -> dict[str, str]:
    """NAMESPACE/POD by uid, where a word asks for it: /var/log/pods/NAMESPACE_POD_UID."""
    if not any("/" in word and not word.startswith("/") for word in words):
        return {}
    found = {}
    for folder in POD_LOGS:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            parts = name.split("_")
            if len(parts) == 3:
                found[parts[2]] = f"{parts[0]}/{parts[1]}"
    return found


def _pod_name(place: CgroupPlace, pods: dict[str, str]) -> str:
    if place.pod_uid and place.pod_uid in pods:
        return pods[place.pod_uid]
    return (place.container_id or place.pod_uid or place.unit or "a container")[:12]
