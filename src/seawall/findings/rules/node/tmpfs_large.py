# SPDX-License-Identifier: Apache-2.0
"""Much memory is in tmpfs and shared memory.

Shmem is files in tmpfs (emptyDir with medium Memory, /dev/shm, /run), System V and shared
anonymous memory.  It is counted as cache and cannot be dropped; without swap it stays until
the file is removed or its last user ends.  Often that is wanted: this is news, not blame.
"""

from collections.abc import Iterator

from seawall.accounts.node_memory.headroom import Headroom
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.mountinfo import Mountinfo
from seawall.words import percent, size

_SMALL = ("/sys/", "/run/lock", "/run/credentials/")


@rule(
    id="SW117",
    title="tmpfs and shared memory are large",
    severity="warning",
    thresholds={
        "large_fraction": "share of MemTotal; a database's shared buffers are 25 %, proposal",
        "low_fraction": "share of memory left below which this is a warning; proposal",
    },
    confirm=("grep Shmem: /proc/meminfo", "df -t tmpfs --output=used,size,target", "ipcs -m"),
    remedy=(
        "look for files nobody needs: df -t tmpfs, then du -x in the largest; remove those",
        "give emptyDir volumes with medium Memory a sizeLimit",
    ),
    provide="/proc/meminfo",
)
def judge(
    meminfo: Meminfo, headroom: Headroom, mounts: Mountinfo | Unread, memcgs: Memcgs | Unread, *,
    large_fraction: float = 0.25, low_fraction: float = 0.05,
) -> Finding:  # fmt: skip
    shmem = meminfo.shmem
    if shmem is None:
        return blind("the kernel prints no Shmem", Unread(PATH, "absent", "Shmem"))
    evidence = [Evidence("Shmem", shmem, "bytes", f"{PATH} Shmem")]
    if shmem < large_fraction * meminfo.mem_total:
        return quiet(f"{size(shmem)} is tmpfs and shared memory", evidence)
    evidence.extend(_groups(memcgs))
    evidence.extend(_mounts(mounts))
    short = headroom.fraction < low_fraction
    return fires(
        "warning" if short else "info",
        f"{size(shmem)} ({percent(shmem / meminfo.mem_total)} of memory) is tmpfs and shared"
        " memory, shown as cache and not droppable",
        evidence,
        outlook="It stays until files are removed or their users end."
        if meminfo.swap_total
        else "Without swap it stays until files are removed or their users end.",
    )


def _groups(memcgs: Memcgs | Unread) -> Iterator[Evidence]:
    """The three cgroups that are charged with most of it, innermost ones only."""
    if isinstance(memcgs, Unread):
        return
    groups = [memcg for memcg in memcgs.by_path.values() if memcg.shmem and memcg.path != "/"]
    leaves = [
        one for one in groups
        if not any(other.path.startswith(one.path + "/") for other in groups)
    ]  # fmt: skip
    for memcg in sorted(leaves, key=lambda group: -(group.shmem or 0))[:3]:
        source = f"{memcgs.mount_point.rstrip('/')}{memcg.path}/memory.stat"
        yield Evidence(f"charged to {memcg.path}", memcg.shmem, "bytes", source)


def _mounts(mounts: Mountinfo | Unread) -> Iterator[Evidence]:
    if isinstance(mounts, Unread):
        return
    points = [mount.mount_point for mount in mounts.mounts if mount.fs_type == "tmpfs"]
    points = [point for point in dict.fromkeys(points) if not point.startswith(_SMALL)]
    for point in points[:6]:
        yield Evidence("tmpfs is mounted at", point, "text", "/proc/1/mountinfo")
