# SPDX-License-Identifier: Apache-2.0
"""The facts of this machine that ``guard explain`` puts words to.  Reads only."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.actions.identity import cgroups_of
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts
from seawall.cgroup_paths import place_of, user_of
from seawall.guard import own_capabilities
from seawall.guard.explain import ExplainedWorkload, ThisMachine
from seawall.guard.lock_file import holder
from seawall.guard.own_place import cgroup_in_text, own_cgroup
from seawall.guard.settings import Settings
from seawall.guard.tell import rivals
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.page_trace.tracefs import attach
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.problems import UsageProblem
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.pressure import HostPressure
from seawall.readings.snapshot import Snapshot
from seawall.role_claims import NOT_NAMED
from seawall.watcher.workload_inventory import WorkloadInventory

_NEEDED: Final = {
    "CAP_KILL": (own_capabilities.KILL, "signal what is not its own"),
    "CAP_DAC_OVERRIDE": (1, "write cgroups of other users"),
    "CAP_IPC_LOCK": (14, "lock its memory"),
    "CAP_SYS_NICE": (23, "run before those that it kills"),
    "CAP_SYS_RESOURCE": (24, "lower its own oom_score_adj"),
}
_LOOKS_SECONDS: Final = 1.0
"""All looks for names together, and no more than the first where that alone takes longer."""
_BETWEEN_SECONDS: Final = 0.15
_UNNAMED: Final = "until it is named, some seconds after its start"
_UNNAMED_TO_USERS: Final = "not known: its name and its role need root"
_TRACEFS: Final = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")


def here(settings: Settings, snapshot: Snapshot, host: LiveHost) -> ThisMachine:
    """What of this machine matters to the guard, read once: memory, mounts, rights, groups."""
    mounts = _mounts()
    meminfo, kernel = snapshot.get(Meminfo), snapshot.get(Kernel)
    total = None if isinstance(meminfo, Unread) else _total(meminfo)
    inventory = WorkloadInventory(host)
    _look(inventory)
    return ThisMachine(
        total_bytes=total,
        mounts=mounts,
        has_cgroup_kill=None if mounts is None else _has_cgroup_kill(mounts),
        has_pressure=not isinstance(snapshot.get(HostPressure), Unread),
        has_tracefs=_has_tracefs(host),
        kernel=None if isinstance(kernel, Unread) else _version(kernel.release or ""),
        lacks=tuple(_lacks()) if not os.geteuid() else (),
        is_root=not os.geteuid(),
        seen=tuple(as_judged(_seen(inventory, mounts), user_slices=settings.user_slices)),
        others=tuple(rivals.find("/proc", settings.scope)),
        unseen=tuple(_unseen(inventory.problem, meminfo)),
    )


def _look(inventory: WorkloadInventory) -> None:
    """Until it is settled who has a name: it may come after the cgroup, so the watcher gives up
    only after some looks, which a guard that runs has had.
    """
    until = time.monotonic() + _LOOKS_SECONDS
    began = time.monotonic()
    inventory.refresh()
    while _is_open(inventory) and not os.geteuid():
        took = time.monotonic() - began
        if began + 2 * took + _BETWEEN_SECONDS > until:
            return
        time.sleep(_BETWEEN_SECONDS)
        began = time.monotonic()
        inventory.refresh()


def _is_open(inventory: WorkloadInventory) -> bool:
    """Somebody has no name and may get one; of who has one nothing is asked again."""
    rows, _ = inventory.row_updates()
    return inventory.is_to_be_named and any(row["role"] == NOT_NAMED for row in rows)


def _unseen(problem: str, meminfo: Meminfo | Unread) -> Iterator[tuple[str, str, str]]:
    if problem:
        yield "workloads", problem, ""
    if isinstance(meminfo, Unread):
        yield meminfo.path, meminfo.detail or meminfo.why, ""
    if os.geteuid():
        yield "names and roles of containers", "they stand in folders of root's", "root"


def _mounts() -> Mounts | None:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return find_mounts(file.read())
    except (OSError, UsageProblem):
        return None


def _total(meminfo: Meminfo) -> int:
    """As the guard counts: what the hugetlb pool holds is nobody's to give back."""
    return meminfo.mem_total - (meminfo.hugetlb or 0)


def _has_cgroup_kill(mounts: Mounts) -> bool | None:
    """The root has none: looked for in any cgroup below it; None: there is no other."""
    if mounts.unified is None:
        return False
    try:
        with os.scandir(mounts.unified) as found:
            below = next((item.path for item in found if item.is_dir()), None)
    except OSError:
        return None
    return None if below is None else os.path.exists(f"{below}/cgroup.kill")


def _version(release: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,4})\.(\d{1,4})", release)
    return None if match is None else (int(match[1]), int(match[2]))


def _lacks() -> Iterator[str]:
    """Of root only: what a unit or a container takes away."""
    for name, (bit, what) in _NEEDED.items():
        if own_capabilities.lacks(bit):
            yield f"{name}, to {what}: this shell lacks it, the unit has it"


def _seen(inventory: WorkloadInventory, mounts: Mounts | None) -> Iterator[ExplainedWorkload]:
    """The watcher's own rows: what it would tell the guard, by name."""
    own, words = _own(mounts)
    rows, _ = inventory.row_updates()
    for row in sorted(rows, key=lambda row: (row["name"], row["cgroup"])):
        path = row["cgroup"]
        why = words if own == path or own.startswith(path + "/") else ""
        role = _unnamed_words(inventory) if row["role"] == NOT_NAMED else row["role"]
        yield ExplainedWorkload(path, row["name"], role, why, row["class_rank"], row["adj"])


def as_judged(
    seen: Iterable[ExplainedWorkload], *, user_slices: bool
) -> Iterator[ExplainedWorkload]:
    """Each user in place of the sessions and units below; or these, and no user."""
    for one in seen:
        place = place_of(one.path)
        is_user = user_of(one.path) is not None
        is_own = place.kind == "container" or place.job is not None
        is_part = not is_own and user_of("/".join(one.path.split("/")[:3])) is not None
        if (is_user or not is_part) if user_slices else not is_user:
            yield one


def _unnamed_words(inventory: WorkloadInventory) -> str:
    """Why a container without a name is left alone, and for how long."""
    if os.geteuid():
        return _UNNAMED_TO_USERS
    return _UNNAMED if inventory.is_to_be_named else NOT_NAMED


def _own(mounts: Mounts | None) -> tuple[str, str]:
    """The cgroup of the guard that runs, else of this shell, and words for it."""
    if mounts is None:
        return "/", ""
    pid = holder()
    try:
        if pid is not None and pid > 0:
            return cgroup_in_text(cgroups_of(pid), mounts), "the guard is in it"
        return own_cgroup(mounts), "this shell is in it, and no guard runs"
    except (OSError, UsageProblem):
        return "/", ""


def _has_tracefs(host: LiveHost) -> bool:
    """As root, whether it can be had, mounted or not, lockdown or not; else whether it is there."""
    if os.geteuid():
        return any(not isinstance(host.names(path), Unread) for path in _TRACEFS)
    try:
        os.close(attach())
    except (TracingProblem, OSError):
        return False
    return True
