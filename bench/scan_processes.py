"""Scan 5,000 processes for state, memory and cgroup; the peer, psutil, for state and memory.

Both in the same run, alternately, the best of ROUNDS each.  Both are asked as a program asks
that has just been started: psutil keeps a cache of processes between two scans, which a verb
of seconds never profits from; the time with that cache is given too.
The processes are subshells that wait on a pipe (about 0.1 MB each); as root they are spread
over 250 cgroups of their own.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings import cgroup, memcg, process

PROCESSES = 5_000
CGROUPS = 250
ROUNDS = 8
MARK = 4.0  # times faster than psutil

# Each subshell waits until the other end of the pipe is closed, whoever closes it.
_FORK = """
exec 3<&0
make() { n=$1; while [ "$n" -gt 0 ]; do read -r _ <&3 & n=$((n - 1)); done; }
share=$1; shift
for folder; do
    if [ "$folder" != - ]; then echo $$ > "$folder/cgroup.procs" || exit 1; fi
    make "$share"
done
echo ready
wait
"""


def measure() -> dict[str, float]:
    """Seconds of each scan at its best, and how many times faster ours is."""
    host = LiveHost()
    with processes_in_cgroups() as cgroups:
        scans: dict[str, Callable[[], int]] = {
            "seawall": lambda: scan_seawall(host),
            "psutil": scan_psutil,
            "psutil_cached": scan_psutil_again,
            "seawall_stat_only": lambda: scan_stat(host),
            "seawall_memcgs": lambda: scan_memcgs(host),
            "bare_loop": scan_bare,
        }
        best = dict.fromkeys(scans, float("inf"))
        found = {}
        for _ in range(ROUNDS):
            for name, scan in scans.items():
                seconds, found[name] = _timed(scan)
                best[name] = min(best[name], seconds)
    return {
        "processes": found["seawall"],
        "processes_psutil": found["psutil"],
        "cgroups": cgroups,
        "memcgs": found["seawall_memcgs"],
        **{f"{name}_seconds": seconds for name, seconds in best.items()},
        "times_faster": best["psutil"] / best["seawall"],
        "times_faster_than_cached": best["psutil_cached"] / best["seawall"],
        "mark": MARK,
    }


def scan_seawall(host: LiveHost) -> int:
    """State and memory of every process, and the cgroup that it is in."""
    tree = cgroup.read(host)
    members = {} if isinstance(tree, Unread) else tree.pids
    cgroup_of = {pid: path for path, pids in members.items() for pid in pids}
    count = scan_stat(host)
    if members and len(cgroup_of) < count * 0.9:
        raise RuntimeError(f"the cgroups of only {len(cgroup_of)} of {count} were found")
    return count


def scan_stat(host: LiveHost) -> int:
    """State and memory alone."""
    found = process.read(host)
    return 0 if isinstance(found, Unread) else len(found.by_pid)


def scan_memcgs(host: LiveHost) -> int:
    """Every file of the memory controller of every cgroup."""
    found = memcg.read(host)
    return 0 if isinstance(found, Unread) else len(found.by_path)


def scan_bare() -> int:
    """The floor: list /proc, then open, read and close each stat, and do nothing with it."""
    flags = os.O_RDONLY | os.O_CLOEXEC
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError):
                fd = os.open(f"/proc/{name}/stat", flags)
                os.read(fd, 4096)
                os.close(fd)
                count += 1
    return count


def scan_psutil() -> int:
    """State and memory by psutil, for the first time."""
    psutil.process_iter.cache_clear()
    return scan_psutil_again()


def scan_psutil_again() -> int:
    """The same with the processes of the scan before still known."""
    return sum(1 for _ in psutil.process_iter(["status", "memory_info"]))


def _timed(scan: Callable[[], int]) -> tuple[float, int]:
    # What a person waits for: ours reads with a second process, where there is a CPU for it.
    start = time.perf_counter()
    count = scan()
    return time.perf_counter() - start, count


@contextmanager
def processes_in_cgroups(processes: int = PROCESSES, cgroups: int = CGROUPS) -> Iterator[int]:
    """Start the processes; yields in how many cgroups they are, 0 where none can be made."""
    with _cgroups(cgroups) as folders:
        share = processes // (len(folders) or 1)
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _FORK, "sh", str(share), *(folders or ["-"])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert shell.stdout
            if shell.stdout.readline() != b"ready\n":
                raise RuntimeError("the processes could not be started")
            yield len(folders)
        finally:
            shell.communicate(timeout=60)  # closes their pipe


@contextmanager
def _cgroups(count: int) -> Iterator[list[str]]:
    """That many empty cgroups in a cgroup of our own, removed afterwards."""
    layout = cgroup.read_layout(LiveHost())
    tree = None if isinstance(layout, Unread) else layout.memory_tree
    top = f"{tree}/seawall-bench-{os.getpid()}"
    made: list[str] = []
    try:
        if tree:
            with suppress(OSError):  # no root, or a read-only tree: measured without
                for folder in (top, *(f"{top}/{number:03}" for number in range(count))):
                    os.mkdir(folder)
                    made.append(folder)
        yield made[1:]
    finally:
        _remove(made[::-1])


def _remove(folders: list[str]) -> None:
    for folder in folders:
        for _ in range(100):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                break
            except OSError:  # EBUSY while the last member exits
                time.sleep(0.02)
            else:
                break


def main() -> None:
    """Print what was measured."""
    result = measure()
    rows = (
        ("seawall: state, memory, cgroup", "seawall_seconds"),
        ("seawall: state, memory", "seawall_stat_only_seconds"),
        ("bare:    open, read, close each stat", "bare_loop_seconds"),
        ("psutil:  state, memory", "psutil_seconds"),
        ("psutil:  state, memory, a second time", "psutil_cached_seconds"),
        ("seawall: all memory files of all cgroups", "seawall_memcgs_seconds"),
    )
    print(
        f"{result['processes']:.0f} processes, {result['cgroups']:.0f} extra cgroups, "
        f"best of {ROUNDS}, {os.uname().release}"
    )
    for title, key in rows:
        print(f"  {title:42} {result[key] * 1000:8.1f} ms")
    print(
        f"  psutil takes {result['times_faster']:.1f} times as long (mark: {MARK:g}), "
        f"{result['times_faster_than_cached']:.1f} times a second time"
    )


if __name__ == "__main__":
    main()
