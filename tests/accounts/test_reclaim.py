"""Signs of a reclaim storm, one at a time, and who faults most."""

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.reclaim import (
    ReclaimSign,
    node_is_short,
    reads_code_back,
    signs,
    top_faulters,
)
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.diskstats import Disk, Diskstats
from seawall.readings.pressure import HostPressure, Pressure, Stall
from seawall.readings.process import Process, Processes
from seawall.readings.vmstat import Vmstat

NONE = Unread("/proc/none", "absent")


def vmstat(**gains: int) -> TopicWindow[Vmstat]:
    return TopicWindow(
        Vmstat(dict.fromkeys(gains, 1000)), Vmstat({k: 1000 + v for k, v in gains.items()}), 2.0
    )


def named(found: tuple[ReclaimSign, ...], words: str) -> ReclaimSign:
    return next(sign for sign in found if words in sign.name)


def disk(name: str, reads: int, writes: int, busy: float) -> Disk:
    return Disk(
        name=name, reads_completed=reads, read_bytes=0, reading_seconds=0, writes_completed=writes,
        written_bytes=0, writing_seconds=0, in_flight=0, busy_seconds=busy, weighted_seconds=0,
    )  # fmt: skip


def pressure(seconds: float) -> HostPressure:
    stall = Pressure(Stall(0, 0, 0, seconds), Stall(0, 0, 0, 0))
    return HostPressure(cpu=stall, io=stall, memory=stall)


def process(pid: int, faults: int, start: int = 1) -> Process:
    return Process(
        pid=pid, comm=f"p{pid}", state="S", ppid=1, flags=0, minflt=0, majflt=faults,
        utime_ticks=0, stime_ticks=0, num_threads=1, starttime_ticks=start, vsize_bytes=0,
        rss_pages=0,
    )  # fmt: skip


def test_refaults_of_files_and_memory_add_up() -> None:
    sign = named(
        signs(vmstat(workingset_refault_file=150, workingset_refault_anon=50), NONE, NONE),
        "read back",
    )
    assert sign.value == 100.0
    assert sign.agrees


def test_major_faults_just_short() -> None:
    assert not named(signs(vmstat(pgmajfault=59), NONE, NONE), "major").agrees
    assert named(signs(vmstat(pgmajfault=60), NONE, NONE), "major").agrees


def test_kswapd_that_frees_what_it_looks_at_is_no_sign() -> None:
    streaming = vmstat(pgscan_kswapd=100_000, pgsteal_kswapd=97_000)
    futile = vmstat(pgscan_kswapd=100_000, pgsteal_kswapd=20_000)
    idle = vmstat(pgscan_kswapd=100, pgsteal_kswapd=0)
    assert not named(signs(streaming, NONE, NONE), "kswapd").agrees
    assert named(signs(futile, NONE, NONE), "kswapd").agrees
    assert not named(signs(idle, NONE, NONE), "kswapd").agrees
    assert signs(vmstat(pgscan_kswapd=0, pgsteal_kswapd=0), NONE, NONE) == ()


def test_a_disk_busy_with_writes_is_no_sign() -> None:
    earlier = Diskstats((disk("vda", 0, 0, 1.0), disk("vdb", 0, 0, 1.0)))
    writing = Diskstats((disk("vda", 10, 900, 3.0), disk("vdb", 5, 0, 1.2)))
    reading = Diskstats((disk("vda", 900, 10, 3.0), disk("vdb", 5, 0, 1.2)))
    quiet = signs(vmstat(pgmajfault=0), NONE, TopicWindow(earlier, writing, 2.0))
    busy = signs(vmstat(pgmajfault=0), NONE, TopicWindow(earlier, reading, 2.0))
    assert not named(quiet, "disk vdb").agrees
    assert named(busy, "disk vda").agrees
    assert named(busy, "disk vda").value == 1.0


def test_a_disk_that_came_or_was_reset_is_left_out() -> None:
    earlier = Diskstats((disk("vda", 500, 0, 9.0),))
    later = Diskstats((disk("vda", 600, 0, 1.0), disk("vdc", 900, 0, 50.0)))
    assert not [
        s for s in signs(vmstat(x=0), NONE, TopicWindow(earlier, later, 2.0)) if "disk" in s.name
    ]


def test_pressure_is_the_share_of_the_window() -> None:
    found = signs(vmstat(x=0), TopicWindow(pressure(10.0), pressure(10.5), 2.0), NONE)
    assert named(found, "waited").value == 0.25
    assert named(found, "waited").agrees
    assert signs(vmstat(x=0), TopicWindow(pressure(10.0), pressure(9.0), 2.0), NONE) == ()


def test_top_faulters_know_a_reused_pid() -> None:
    earlier = Processes({1: process(1, 100), 2: process(2, 900), 3: process(3, 50)}, ())
    later = Processes(
        {1: process(1, 130), 2: process(2, 40, 77), 3: process(3, 50), 4: process(4, 7, 9)}, ()
    )
    found = top_faulters(TopicWindow(earlier, later, 2.0), 10)
    assert [(p.pid, faults) for p, faults in found] == [(2, 40), (1, 30), (4, 7)]
    assert top_faulters(TopicWindow(earlier, later, 2.0), 1)[0][0].pid == 2


def test_one_that_was_merely_not_read_at_first_is_left_out() -> None:
    earlier = Processes({1: process(1, 100, start=50)}, ())
    later = Processes({1: process(1, 101, start=50), 2: process(2, 9000, start=50)}, ())
    assert [p.pid for p, _ in top_faulters(TopicWindow(earlier, later, 2.0), 10)] == [1]


def test_a_fault_counter_that_fell_is_unknown() -> None:
    earlier, later = Processes({1: process(1, 100)}, ()), Processes({1: process(1, 10)}, ())
    assert top_faulters(TopicWindow(earlier, later, 2.0), 10) == []


def headroom(share: float, *, below_low: bool = False, below_min: bool = False) -> Headroom:
    zones = ("node 0 Normal",)
    return Headroom(
        total_bytes=1000, available_bytes=int(1000 * share), available_source="",
        unwritten_bytes=0, free_bytes=0, swap_free_bytes=0, watermark_min_bytes=None,
        watermark_low_bytes=None, zones_below_low=zones if below_low else (),
        zones_below_min=zones if below_min else (), zones_source="",
    )  # fmt: skip


def short(window: TopicWindow[Vmstat] | Unread, room: Headroom) -> bool:
    return node_is_short(window, room, 0.10, 1.0)


def test_stalls_count_only_where_little_is_left() -> None:
    stalls = vmstat(allocstall_normal=20)
    assert short(stalls, headroom(0.2))
    assert not short(stalls, headroom(0.8)), "streaming reads stall now and then"
    assert short(stalls, headroom(0.8, below_min=True)), "one NUMA node may be short alone"
    assert not short(vmstat(allocstall_normal=1), headroom(0.2))


def test_kswapd_awake_or_a_low_zone_counts_where_very_little_is_left() -> None:
    kswapd = vmstat(pgscan_kswapd=1000)
    assert short(kswapd, headroom(0.08))
    assert not short(kswapd, headroom(0.12))
    assert short(NONE, headroom(0.08, below_low=True))
    assert not short(NONE, headroom(0.08))


def test_what_a_container_does_at_its_limit_is_not_the_nodes() -> None:
    inside = vmstat(pgmajfault=9000, pgscan_direct=300_000, workingset_refault_file=200_000)
    assert reads_code_back(inside)
    assert not short(inside, headroom(0.08))
    assert not reads_code_back(NONE)
