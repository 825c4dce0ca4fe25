"""The memory controller, both versions: meaning of fields, absence, refusal, real cgroups."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
from tests.case_host import parse_case
from tests.end_to_end import cgroups
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.readings import cgroup, memcg
from seawall.readings.cgroup import Cgroups
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.reading import UNLIMITED

V1 = b"=== /proc/1/mountinfo\n34 30 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n"
V2 = (
    b"=== /proc/1/mountinfo\n30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n"
    b"=== /cg/cgroup.controllers\nmemory\n"
)
V1_STAT = (
    b"cache 1\nrss 2\nshmem 3\nhierarchical_memory_limit 9223372036854771712\n"
    b"total_cache 8192\ntotal_rss 4096\ntotal_shmem 512\ntotal_mapped_file 11\ntotal_dirty 12\n"
    b"total_writeback 13\ntotal_inactive_file 14\ntotal_swapcached 15\n"
)
V2_STAT = (
    b"anon 4096\nfile 8192\nkernel 2048\nkernel_stack 16\npagetables 17\npercpu 18\nsock 19\n"
    b"vmalloc 20\nshmem 21\nfile_mapped 22\nfile_dirty 23\nfile_writeback 24\nswapcached 25\n"
    b"inactive_file 26\nslab_reclaimable 27\nslab_unreclaimable 28\nof_a_later_kernel 29\n"
)


def section(folder: str, files: Mapping[str, bytes | str]) -> bytes:
    """Files of one cgroup."""
    text = b""
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        text += f"=== {folder}/{name}\n".encode() + data + b"\n" * (data[-1:] != b"\n")
    return text


def memcgs_of(text: bytes) -> Memcgs:
    found = memcg.read(parse_case(text).rounds[0])
    assert isinstance(found, Memcgs), found
    return found


def v1_pod(changed: Mapping[str, bytes | str] | None = None) -> Memcg:
    files = {
        "memory.usage_in_bytes": "12288",
        "memory.limit_in_bytes": "1048576",
        "memory.stat": V1_STAT,
        **(changed or {}),
    }
    return memcgs_of(V1 + section("/cg/memory/pod", files)).by_path["/pod"]


# --- version 1 -------------------------------------------------------------------------


def test_v1_values_are_those_of_the_subtree() -> None:
    pod = v1_pod()
    assert (pod.version, pod.usage, pod.limit) == (1, 12288, 1048576)
    assert (pod.anon, pod.file, pod.shmem) == (4096, 8192, 512)
    assert (pod.mapped_file, pod.dirty, pod.writeback) == (11, 12, 13)
    assert (pod.inactive_file, pod.swap_cached) == (14, 15)
    assert pod.stat["cache"] == 1, "the kernel's own keys are all there"
    assert pod.active_anon is None, "not printed is not zero"
    assert pod.swap_usage is None, "no memsw files: swap accounting is off"
    assert pod.kernel is None
    assert (pod.failcnt, pod.under_oom, pod.oom_kill) == (None, None, None)
    assert pod.unread == ()


@pytest.mark.parametrize(
    ("raw", "limit"),
    [
        ("9223372036854771712", UNLIMITED),  # 4 KiB pages
        ("9223372036854710272", UNLIMITED),  # 64 KiB pages
        ("9223372036854775807", UNLIMITED),  # before 3.19
        ("9223372036854000000", 9223372036854000000),
        ("0", 0),
    ],
)
def test_v1_limit(raw: str, limit: object) -> None:
    assert v1_pod({"memory.limit_in_bytes": raw}).limit == limit


def test_v1_swap_oom_and_kernel_memory() -> None:
    pod = v1_pod(
        {
            "memory.memsw.usage_in_bytes": "20480",
            "memory.memsw.limit_in_bytes": "3145728",
            "memory.kmem.usage_in_bytes": "4096",
            "memory.max_usage_in_bytes": "16384",
            "memory.oom_control": "oom_kill_disable 1\nunder_oom 1\noom_kill 3\n",
            "memory.failcnt": "7",
            "memory.soft_limit_in_bytes": "9223372036854771712",
        }
    )
    assert (pod.swap_usage, pod.swap_limit) == (8192, 2097152)
    assert (pod.kernel, pod.peak, pod.failcnt) == (4096, 16384, 7)
    assert (pod.oom_kill_disable, pod.under_oom, pod.oom_kill) == (True, True, 3)
    assert pod.soft_limit is UNLIMITED


def test_v1_unlimited_swap() -> None:
    pod = v1_pod({"memory.memsw.limit_in_bytes": "9223372036854771712"})
    assert pod.swap_limit is UNLIMITED
    assert pod.limit == 1048576


def test_v1_without_hierarchy_says_so() -> None:
    child = section("/cg/memory/pod/child", {"memory.usage_in_bytes": "1"})
    for flag, hierarchical in (("0", False), ("1", True)):
        files = {"memory.usage_in_bytes": "5", "memory.use_hierarchy": flag}
        pod = section("/cg/memory/pod", files)
        found = memcgs_of(V1 + pod + child)
        assert found.by_path["/pod"].hierarchical is hierarchical
        assert found.by_path["/pod/child"].hierarchical, "nothing is below it"
        assert len(found.unread) == (not hierarchical)
        if not hierarchical:
            assert found.unread[0].path == "/cg/memory/pod/memory.use_hierarchy"


# --- version 2 -------------------------------------------------------------------------


def test_v2_in_full() -> None:
    text = V2 + section("/cg", {"memory.stat": V2_STAT, "cgroup.stat": "nr_dying_descendants 5"})
    text += section(
        "/cg/pod",
        {
            "memory.current": "65536",
            "memory.max": "1048576",
            "memory.high": "max",
            "memory.low": "0",
            "memory.min": "max",
            "memory.peak": "70000",
            "memory.swap.current": "10",
            "memory.swap.max": "max",
            "memory.oom.group": "1",
            "memory.stat": V2_STAT,
            "memory.events": "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5",
            "memory.events.local": "oom_kill 1",
            "memory.pressure": "some avg10=50.00 avg60=1.00 avg300=0.00 total=1000000",
            "io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0",
            "cgroup.stat": "nr_descendants 1\nnr_dying_descendants 2",
            "cgroup.events": "populated 1\nfrozen 0",
        },
    )
    found = memcgs_of(text)
    assert (found.version, found.mount_point, found.unread) == (2, "/cg", ())
    root, pod = found.by_path["/"], found.by_path["/pod"]
    assert (root.usage, root.limit, root.dying_descendants) == (None, None, 5)
    assert root.anon == 4096
    assert (pod.usage, pod.limit, pod.high, pod.low) == (65536, 1048576, UNLIMITED, 0)
    assert (pod.min, pod.peak) == (UNLIMITED, 70000)
    assert (pod.swap_usage, pod.swap_limit) == (10, UNLIMITED)
    assert (pod.anon, pod.file, pod.kernel, pod.shmem) == (4096, 8192, 2048, 21)
    assert (pod.kernel_stack, pod.page_tables, pod.percpu) == (16, 17, 18)
    assert (pod.sock, pod.vmalloc, pod.mapped_file, pod.dirty) == (19, 20, 22, 23)
    assert (pod.writeback, pod.swap_cached, pod.inactive_file) == (24, 25, 26)
    assert (pod.slab_reclaimable, pod.slab_unreclaimable) == (27, 28)
    assert pod.stat["of_a_later_kernel"] == 29
    assert (pod.events["oom"], pod.oom_kill, pod.events_local) == (3, 4, {"oom_kill": 1})
    assert (pod.oom_group, pod.dying_descendants, pod.populated) == (True, 2, True)
    assert pod.memory_pressure is not None
    assert pod.memory_pressure.some.avg10 == 0.5
    assert pod.io_pressure is not None
    assert pod.unread == ()


def test_v2_cgroup_without_the_controller_has_no_memcg() -> None:
    text = V2 + section("/cg/quiet", {"cgroup.events": "populated 1\n"})
    text += section("/cg/pod", {"memory.current": "1"})
    assert set(memcgs_of(text).by_path) == {"/pod"}


# --- what could not be read ------------------------------------------------------------


def test_refused_and_malformed_are_told_and_others_stay() -> None:
    text = V2 + section(
        "/cg/pod", {"memory.current": "4096", "memory.max": "lots", "memory.peak": "5x"}
    )
    text += b"=== /cg/pod/memory.stat !refused\n"
    pod = memcgs_of(text).by_path["/pod"]
    assert (pod.usage, pod.limit, pod.peak, pod.anon) == (4096, None, None, None)
    assert {(unread.path, unread.why) for unread in pod.unread} == {
        ("/cg/pod/memory.max", "malformed"),
        ("/cg/pod/memory.peak", "malformed"),
        ("/cg/pod/memory.stat", "refused"),
    }


def test_a_cgroup_that_goes_away_meanwhile_is_not_half_there() -> None:
    text = (
        V2 + section("/cg/pod", {"memory.max": "5"}) + section("/cg/other", {"memory.current": "7"})
    )
    text += b"=== /cg/pod/memory.current !vanished\n"
    assert set(memcgs_of(text).by_path) == {"/other"}


def test_pressure_that_is_switched_off_is_none() -> None:
    """psi=0: the file is listed and answers EOPNOTSUPP, which is absent."""

    class Off:
        def __init__(self) -> None:
            self._host = parse_case(
                V2 + section("/cg/pod", {"memory.pressure": "x", "memory.current": "7"})
            ).rounds[0]
            self.read, self.names = self._host.read, self._host.names

        def read_each(self, paths: Sequence[str]) -> list[bytes | Unread]:
            off = Unread("", "absent")
            return [off if path.endswith("pressure") else self.read(path) for path in paths]

    found = memcg.read(Off())  # type: ignore[arg-type]
    assert isinstance(found, Memcgs)
    assert found.by_path["/pod"].usage == 7
    assert found.by_path["/pod"].memory_pressure is None
    assert found.by_path["/pod"].unread == ()


def test_no_tree_counts_memory() -> None:
    text = b"=== /proc/1/mountinfo\n30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n"
    found = memcg.read(parse_case(text).rounds[0])
    assert isinstance(found, Unread)
    assert found.why == "absent"


def test_only_files_that_are_there_are_asked_for() -> None:
    asked: list[str] = []
    text = V2 + b"".join(section(f"/cg/p{i}", {"memory.current": "7"}) for i in range(9))
    host = parse_case(text).rounds[0]

    class Asked:
        read, names = host.read, host.names

        def read_each(self, paths: Sequence[str]) -> list[bytes | Unread]:
            asked.extend(paths)
            return [host.read(path) for path in paths]

    memcg.read(Asked())  # type: ignore[arg-type]
    assert asked == [f"/cg/p{i}/memory.current" for i in range(9)]


# --- this machine ----------------------------------------------------------------------


def test_every_memcg_of_this_machine() -> None:
    with this_machine() as host:
        found = memcg.read(host)
    if isinstance(found, Unread):
        pytest.skip(f"no memory controller here ({found.detail}): boot with cgroup_enable=memory")
    for path, one in found.by_path.items():
        assert one.unread == (), path
        assert one.stat or path == "/"
        if path != "/":
            assert one.usage is not None
            assert one.limit is not None
        assert (
            one.anon is None or one.anon == one.stat["total_rss" if found.version == 1 else "anon"]
        )


@pytest.mark.system
def test_a_real_cgroup_with_a_limit() -> None:
    if reason := cgroups.missing():
        pytest.skip(reason)
    path = f"/seawall-memcg-{os.getpid()}"
    with (
        cgroups.cgroup(path[1:], 64 << 20) as made,
        this_machine() as host,
        holding(16 << 20, made),
    ):
        found = memcg.read(host)
        tree = cgroup.read(host)
    assert isinstance(found, Memcgs)
    assert isinstance(tree, Cgroups)
    one = found.by_path[path]
    assert one.limit == 64 << 20
    assert one.anon is not None
    assert 16 << 20 <= one.anon <= 20 << 20
    assert one.usage is not None
    assert one.anon <= one.usage <= 64 << 20
    assert one.oom_kill == 0
    assert len(tree.pids[path]) == 1
    with this_machine() as host:
        after = memcg.read(host)
    assert isinstance(after, Memcgs)
    assert path not in after.by_path


@contextmanager
def holding(size_bytes: int, where: cgroups.Cgroup) -> Iterator[None]:
    """A process in the cgroup that holds that much anonymous memory."""
    program = (
        "import sys; open(sys.argv[1], 'w').write('0'); x = b'x' * int(sys.argv[2]);"
        "print('ready', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, where.entry, str(size_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout
    assert child.stdout.readline() == b"ready\n"
    yield
    child.communicate(timeout=20)
