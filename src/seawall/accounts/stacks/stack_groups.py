# SPDX-License-Identifier: Apache-2.0
"""What a task is doing, told from its kernel stack: pure, by the table of ``stack_table``.

The innermost function that means something decides: a page fault that had to free memory is in
reclaim, not in a page fault.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from seawall.accounts.stacks import function_table
from seawall.accounts.stacks.stack_kinds import Kind
from seawall.readings.task_stacks import Stack, StackFrame, StackTask

_SYSTEM_CALL: Final = re.compile(r"(?:__(?:x64|arm64|ia32|se|do)_)?(?:sys|SyS)_")
_CGROUP_RECLAIM: Final = ("try_to_free_mem_cgroup_pages", "mem_cgroup_reclaim")
_CGROUP_OOM: Final = "mem_cgroup_out_of_memory"


class StackPlace(NamedTuple):
    """Where a task is; ``name`` is the driver, filesystem, lock or function, where it is told."""

    kind: Kind
    name: str | None = None
    """The driver, filesystem, lock or function, where one is told."""


class _Words:
    """Labels by the names of functions, whole ones and beginnings."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._whole: dict[str, str] = {}
        self._beginnings: dict[int, dict[str, str]] = {}
        for label, words in labels.items():
            for word in words.split():
                if word.endswith("*"):
                    self._beginnings.setdefault(len(word) - 1, {}).setdefault(word[:-1], label)
                else:
                    self._whole.setdefault(word, label)
        self._lengths = sorted(self._beginnings, reverse=True)

    def label(self, name: str) -> str | None:
        """The label of the whole name, else of its longest beginning."""
        found = self._whole.get(name)
        if found is not None:
            return found
        for length in self._lengths:
            found = self._beginnings[length].get(name[:length])
            if found is not None:
                return found
        return None


_NEUTRAL: Final = _Words({"neutral": function_table.NEUTRAL})
_STRONG: Final = _Words(function_table.STRONG)  # type: ignore[arg-type]  # a Kind is a str
_WEAK: Final = _Words(function_table.WEAK)  # type: ignore[arg-type]
_USER_RETURN: Final = _Words({"user": function_table.USER_RETURN})
_VFORK: Final = _Words({"vfork": function_table.VFORK})
_LOCK_WAITS: Final = _Words({"lock": function_table.LOCK_WAITS})
_LOCKS: Final = _Words(function_table.LOCKS)
_REMOTE: Final = _Words(function_table.REMOTE)
_JOURNALS: Final = _Words(function_table.JOURNALS)
_DRIVERS: Final = _Words(function_table.DRIVERS)
_MODULES: Final = _Words(function_table.MODULES)  # type: ignore[arg-type]
_REMOTE_MODULES: Final = _Words(function_table.REMOTE_MODULES)
_FREEZABLE: Final = _Words({"freezable": function_table.FREEZABLE})
_RECLAIM_ASKED: Final = _Words({"asked": function_table.RECLAIM_ASKED})
_MMAP_HOLDERS: Final = _Words({"holder": function_table.MMAP_HOLDERS})


@cache
def base_name(function: str) -> str:
    """Without what compilers and system call wrappers add: ``sys_mmap`` of ``__x64_sys_mmap``."""
    name = function.partition(".")[0]
    prefix = _SYSTEM_CALL.match(name)
    return "sys_" + name[prefix.end() :] if prefix else name


def place_of(stack: Stack, *, is_blocked: bool) -> StackPlace:
    """Where the task with this stack is; ``is_blocked``: it is in state D."""
    at = 0
    while at < len(stack) and _NEUTRAL.label(base_name(stack[at].function)):
        at += 1
    rest = stack[at:]
    if not rest:
        return StackPlace("unknown" if is_blocked else "other", None)
    first = base_name(rest[0].function)
    if not is_blocked and _USER_RETURN.label(first):
        return StackPlace("on_cpu_user")
    waited = _lock_of(rest, is_blocked=is_blocked)
    if waited is not None:
        return waited
    if is_blocked and _VFORK.label(first):
        return StackPlace("vfork")
    weak: StackPlace | None = None
    for frame in rest:
        found = _strong(frame)
        if found is not None:
            return _refined(found, rest)
        weak = weak or _weak(frame)
    if weak is None or (is_blocked and weak.kind == "woken"):
        is_frozen = is_blocked and _FREEZABLE.label(first) is not None
        return StackPlace("frozen") if is_frozen else StackPlace("other", first)
    return weak


def _lock_of(stack: Stack, *, is_blocked: bool) -> StackPlace | None:
    """The lock that is waited for: by the functions of locks themselves, or by who asked."""
    at = 0
    while at < len(stack) and (
        _LOCK_WAITS.label(name := base_name(stack[at].function)) or (at and _NEUTRAL.label(name))
    ):
        at += 1
    if at < len(stack) and (at or is_blocked):
        asker = stack[at]
        lock = None if asker.module else _LOCKS.label(base_name(asker.function))
        if lock is not None:
            return StackPlace("lock", lock)
        if at:
            return StackPlace("lock", f"taken by {asker.text}")
    return StackPlace("lock") if at else None


def _strong(frame: StackFrame) -> StackPlace | None:
    name = base_name(frame.function)
    if _NEUTRAL.label(name):
        return None
    driver = driver_of(frame)
    if driver is not None:
        return StackPlace("driver", driver)  # a module's names are its own affair
    label = _remote(frame)
    if label is not None:
        return StackPlace("remote_filesystem", label)
    label = _JOURNALS.label(name)
    if label is not None:
        return StackPlace("journal", label)
    label = _STRONG.label(name)
    return None if label is None else StackPlace(label)  # type: ignore[arg-type]  # a kind


def _remote(frame: StackFrame) -> str | None:
    """The file system that is served from elsewhere whose function it is."""
    if frame.module in (None, "sunrpc"):  # NFS servers use sunrpc too, other functions of it
        return _REMOTE.label(base_name(frame.function))
    return _REMOTE_MODULES.label(frame.module or "")


def _weak(frame: StackFrame) -> StackPlace | None:
    label = _WEAK.label(base_name(frame.function)) or _MODULES.label(frame.module or "")
    return None if label is None else StackPlace(label)  # type: ignore[arg-type]  # a kind


def driver_of(frame: StackFrame) -> str | None:
    """The driver whose function it is; None for filesystems, disks, networks and the kernel."""
    if frame.module is None:
        return _DRIVERS.label(frame.function)
    if _MODULES.label(frame.module) or _REMOTE_MODULES.label(frame.module):
        return None
    return frame.module


def drivers_of(stack: Stack) -> list[str]:
    """The drivers on the stack, those that serve others left out where another is there."""
    found = list(dict.fromkeys(filter(None, map(driver_of, stack))))
    return [name for name in found if name not in function_table.DRIVER_LAYERS] or found


def _refined(place: StackPlace, stack: Stack) -> StackPlace:
    """By what is further out: on whose behalf it happens."""
    names = [base_name(frame.function) for frame in stack]
    if place.kind == "oom" and _CGROUP_OOM in names:
        return StackPlace("cgroup_oom")
    if place.kind == "writeback" and any(_STRONG.label(name) == "reclaim" for name in names):
        place = StackPlace("reclaim")  # cgroup v1 waits there for its dirty pages
    if place.kind == "reclaim":
        return _reclaim(names)
    if place.kind in ("writeback", "file_read"):
        remote = next(filter(None, map(_remote, stack)), None)
        return place if remote is None else StackPlace("remote_filesystem", remote)
    if place.kind == "driver" and place.name in function_table.DRIVER_LAYERS:
        return StackPlace("driver", drivers_of(stack)[0])
    return place


def _reclaim(names: list[str]) -> StackPlace:
    """Reclaim by what made it necessary: somebody asked, a limit, or the node."""
    if any(map(_RECLAIM_ASKED.label, names)):
        return StackPlace("reclaim_asked")
    is_cgroup = any(name.startswith(_CGROUP_RECLAIM) for name in names)
    return StackPlace("reclaim_cgroup" if is_cgroup else "reclaim")


def holds_mmap_lock(stack: Iterable[StackFrame]) -> bool:
    """Whether a task with this stack has its address space locked, for reading or writing."""
    return any(_MMAP_HOLDERS.label(base_name(frame.function)) for frame in stack)


def place_of_task(task: StackTask, before: StackTask | None) -> StackPlace:
    """The same for a thread; ``before`` is it at an earlier moment, for what it used since."""
    is_blocked = task.state == "D"
    if task.stack:
        return place_of(task.stack, is_blocked=is_blocked)
    if is_blocked and (task.stack is None or task.wchan):
        wchan = (StackFrame(task.wchan, None),) if task.wchan else ()
        return place_of(wchan, is_blocked=True)
    if is_blocked:
        return StackPlace("on_cpu_kernel")  # about to wait: nobody else has an empty stack
    if task.is_kernel_thread:
        # Nobody else may call itself so: the flag is the kernel's.
        for begin, kind in (("kswapd", "reclaim"), ("kcompactd", "compaction")):
            if task.comm.startswith(begin):
                return StackPlace(kind)  # type: ignore[arg-type]  # one of the two
        return StackPlace("on_cpu_kernel")
    return StackPlace(_mode(task, before))


def _mode(task: StackTask, before: StackTask | None) -> Kind:
    """User mode or kernel, by the ticks that were counted since."""
    if before is None:
        return "on_cpu"
    user, system = task.utime_ticks - before.utime_ticks, task.stime_ticks - before.stime_ticks
    if user <= 0 and system <= 0:
        return "on_cpu"
    return "on_cpu_user" if user > system else "on_cpu_kernel"
