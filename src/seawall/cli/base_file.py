# SPDX-License-Identifier: Apache-2.0
"""Learning what is normal: the only thing that a reading verb ever writes by itself.

The base of this boot goes to /run/seawall/base.json, on a tmpfs, when it is asked for, or when
root looks and nothing runs but the host's own services: then uncounted memory is the
host's own.  A user's session counts as a tenant too, that of who looks included.
"""

import os
from argparse import Namespace
from typing import Final, Literal

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings.base import PATH, Base, document_of
from seawall.readings.cgroup import Cgroups
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.replaced_file import replace_file
from seawall.sources.source import Source

NORMAL_MOST_FRACTION: Final = 0.01
"""Of MemTotal; more than this nobody takes for normal without being asked."""
_KTHREADD: Final = 2  # its pid, on every host


def learn_base(snapshot: Snapshot, how: Literal["asked", "no tenant"]) -> Base:
    """Write this moment's uncounted memory as the base of this boot; UsageProblem if impossible."""
    ledger, kernel = snapshot.get(Ledger), snapshot.get(Kernel)
    if isinstance(ledger, Unread):
        raise UsageProblem(f"no base without a ledger: {ledger.path}: {ledger.detail}")
    if isinstance(kernel, Unread) or not kernel.boot_id or kernel.taken_at_unix_seconds is None:
        raise UsageProblem("no base without the boot id: /proc/sys/kernel/random/boot_id")
    base = Base(
        boot_id=kernel.boot_id,
        residual_bytes=ledger.residual_bytes,
        residual_error_bytes=ledger.residual_error_bytes,
        learned_at_unix_seconds=kernel.taken_at_unix_seconds,
        how=how,
    )
    try:
        write_base(base)
    except OSError as error:
        raise UsageProblem(f"{PATH}: {error.strerror}; run as root on the host") from error
    return base


def learn_if_idle(source: Source, arguments: Namespace) -> Base | None:
    """The base, if it was learned just now.  Never fails the verb that calls it."""
    try:
        if not _may_learn(source, arguments) or not _is_idle(source.first):
            return None
        return learn_base(source.first, "no tenant")
    except UsageProblem:
        return None  # a full or read-only /run: the view says that there is no base


def _may_learn(source: Source, arguments: Namespace) -> bool:
    """On this very machine, as root, and only what is not known yet."""
    here = arguments.bundle is None and arguments.root in (None, "/") and source.live is not None
    return here and os.geteuid() == 0 and isinstance(source.first.get(Base), Unread)


def _is_idle(snapshot: Snapshot) -> bool:
    """Whether only the host's own services run, as far as everything could be seen."""
    cgroups, workloads, ledger = (
        snapshot.get(Cgroups), snapshot.get(Workloads), snapshot.get(Ledger),
    )  # fmt: skip
    if isinstance(cgroups, Unread) or isinstance(workloads, Unread) or isinstance(ledger, Unread):
        return False
    if cgroups.unread or not _is_whole(snapshot, cgroups):
        return False
    if any(workload.is_tenant for workload in workloads.by_cgroup.values()):
        return False
    if not all(_is_hosts_own(path) for path in cgroups.pids):
        return False
    normal = NORMAL_MOST_FRACTION * ledger.total_bytes
    return abs(ledger.residual_bytes) < normal and ledger.residual_error_bytes < normal


def _is_whole(snapshot: Snapshot, cgroups: Cgroups) -> bool:
    """Whether the root is the host's, where kthreadd is; a container's shows no neighbour."""
    kthreadd = snapshot.host.read(f"/proc/{_KTHREADD}/comm") == b"kthreadd\n"
    return kthreadd and _KTHREADD in cgroups.pids.get("/", ())


def _is_hosts_own(path: str) -> bool:
    """Root, init.scope, or a service below system.slice.  A scope there is somebody's: Docker
    and Slurm put their own into that slice.
    """
    parts = path.split("/")
    if path in ("/", "/init.scope"):
        return True
    return parts[1] == "system.slice" and not any(part.endswith(".scope") for part in parts)


def write_base(base: Base, path: str = PATH) -> None:
    """All or nothing: readers see the old file or the new one."""
    replace_file(path, document_of(base))
