"""A node with two pods, a unit and plain cgroups, for tests of who holds what."""

from collections.abc import Sequence

from seawall.accounts import workloads
from seawall.accounts.claim import SourceClaims
from seawall.accounts.claim_sources import packet_ring_claims
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.container_files import ContainerFile, ContainerFiles
from seawall.readings.kernel import Kernel
from seawall.readings.packet_rings import (
    Inhabitants,
    PacketRings,
    PacketSocket,
    Ring,
    SocketHolder,
)
from seawall.readings.vmallocinfo import Vmallocinfo

HOST, SPACE_A, SPACE_B = 100, 200, 300
UID_A, UID_B = (f"5ea0a11d-000{n}-4000-8000-000000000000" for n in (1, 2))
POD_A, POD_B = f"/kubepods/burstable/pod{UID_A}", f"/kubepods/pod{UID_B}"
APP_A, SIDE_A, PAUSE_A = (f"{POD_A}/{character * 64}" for character in "abc")
APP_B = f"{POD_B}/{'d' * 64}"
UNIT, PLAIN = "/system.slice/ssh.service", "/batch"
NAMES = {UID_A: ("shop", "web"), UID_B: ("shop", "db")}
POD_CAPABILITIES = 0xA80425FB  # what containers get: NET_RAW, and no SYS_ADMIN
NO_NET_RAW = POD_CAPABILITIES & ~(1 << 13)
ALL_CAPABILITIES = (1 << 41) - 1
NO_VMALLOC = Unread("/proc/vmallocinfo", "refused")
MIB = 1 << 20
KERNEL = Kernel(
    release="6.1.0", boot_id="b", node_name="n", machine="x86_64", page_size=4096,
    page_size_source="probe", clock_ticks=100, cpus_online=2, cpus_possible=2,
    uptime_seconds=1.0, taken_at_unix_seconds=1.0, monotonic_seconds=1.0, reader_uid=0,
    reader_capabilities=(),
)  # fmt: skip


def cgroups() -> Cgroups:
    paths = ["/"]
    for leaf in (APP_A, SIDE_A, PAUSE_A, APP_B, UNIT, PLAIN, f"{APP_A}/nested"):
        parts = leaf.strip("/").split("/")
        paths += ["/" + "/".join(parts[: n + 1]) for n in range(len(parts))]
    layout = CgroupLayout(v1={}, v2="/sys/fs/cgroup", v2_controllers=("memory",))
    unique = tuple(sorted(set(paths), key=lambda path: (path.count("/"), path)))
    return Cgroups(layout, unique, "/sys/fs/cgroup", {}, ())


def known() -> Workloads:
    pause = ContainerFile(container_id="c" * 64, is_sandbox=True)
    files = ContainerFiles(by_id={pause.container_id: pause}, pods=NAMES, unread=())
    return workloads.account(cgroups(), files)


def lines(path: str) -> tuple[str, ...]:
    return ("1:name=systemd:/", f"0::{path}")


def holder(
    pid: int, path: str, space: int | None = HOST, bounding: int = ALL_CAPABILITIES
) -> SocketHolder:
    return SocketHolder(pid, 1, "x", space, bounding, lines(path))


def in_pod_a(pid: int, path: str = APP_A) -> SocketHolder:
    return holder(pid, path, SPACE_A, POD_CAPABILITIES)


def in_pod_b(pid: int) -> SocketHolder:
    return holder(pid, APP_B, SPACE_B, POD_CAPABILITIES)


def ring(inode: int, space: int, *pids: int, mib: int = 64) -> PacketSocket:
    return PacketSocket(inode, space, 0, Ring(MIB, mib), None, pids)


def lives(
    space: int, *paths: str, is_whole: bool = True, bounding: tuple[int, ...] = ()
) -> dict[int, Inhabitants]:
    return {space: Inhabitants(is_whole, tuple(map(lines, paths)), bounding)}


def rings(
    sockets: Sequence[PacketSocket], holders: Sequence[SocketHolder] = (), **changes: object
) -> PacketRings:
    told: dict[str, object] = {
        "host_namespace": HOST, "why_not": "", "is_looked": True, "holders_left_out": 0,
        "namespaces": 3, "namespaces_left_out": 0, "processes_left_out": 0, "others": 0,
        "others_bytes": 0, "inhabitants": lives(SPACE_A, PAUSE_A, APP_A),
    }  # fmt: skip
    told.update(changes)
    return PacketRings(
        sockets=tuple(sockets),
        holders={one.pid: one for one in holders},
        **told,  # type: ignore[arg-type]
    )


def found(told: PacketRings, vmallocinfo: Vmallocinfo | Unread = NO_VMALLOC) -> SourceClaims:
    return packet_ring_claims.claims(KERNEL, told, known(), cgroups(), vmallocinfo)
