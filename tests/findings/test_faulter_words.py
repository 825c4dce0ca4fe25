from tests.case_host import parse_case

from seawall.accounts.scene import TopicWindow
from seawall.findings.rules.node.reclaim_storm import faulters
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.process import Processes
from seawall.readings.process_reads import ProcessReads
from seawall.readings.snapshot import Snapshot

TAIL = "0 0 0 20 0 1 0 {start} 170000000 3000 0"


def stat(pid: int, majflt: int, start: int = 300) -> str:
    numbers = f"S 1 1 1 0 -1 4194304 900 0 {majflt} 0 50 " + TAIL.format(start=start)
    return f"=== /proc/{pid}/stat\n{pid} (p{pid}) {numbers}\n"


def io(pid: int, read_bytes: int) -> str:
    return (
        f"=== /proc/{pid}/io\nrchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\n"
        f"read_bytes: {read_bytes}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"
    )


def test_reads_stand_beside_faults_of_the_same_process() -> None:
    first = stat(1, 0) + stat(7, 100) + io(7, 0) + stat(8, 100) + stat(9, 5) + io(9, 10)
    later = stat(7, 500) + io(7, 40 << 20) + stat(8, 300) + stat(9, 50, start=999) + io(9, 20)
    hosts = parse_case((first + "=== round 2 +4.0\n" + later).encode()).rounds
    snapshots = [Snapshot(host) for host in hosts]
    processes = TopicWindow(*(s.get(Processes) for s in snapshots), 4.0)  # type: ignore[arg-type]
    reads = TopicWindow(*(s.get(ProcessReads) for s in snapshots), 4.0)  # type: ignore[arg-type]
    rows = list(faulters(processes, reads, Unread("w", "absent")))
    assert [row.name for row in rows] == [
        "major faults of p7 (pid 7), reads 10.0 MiB/s",
        "major faults of p8 (pid 8)",  # its io was not readable: no number, no zero
        "major faults of p9 (pid 9)",  # another process under the same pid
    ]
    assert [row.value for row in rows] == [100.0, 50.0, 12.5]
    assert rows[0].source == "/proc/7/stat + /proc/7/io"


def test_own_reads_are_readable_live() -> None:
    reads = Snapshot(LiveHost()).get(ProcessReads)
    assert isinstance(reads, ProcessReads)
    assert reads.by_identity or reads.unread
