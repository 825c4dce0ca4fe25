"""Shared memory that stays: which tmpfs of the host is asked, and which never is."""

import os
import time
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, table

from seawall.actions.orders import Mounts
from seawall.guard.sense import host_tmpfs
from seawall.guard.sense.details import Details
from seawall.guard.sense.host_tmpfs import HostTmpfs, devices_of, mounts_of, tmpfs_mounts
from seawall.guard.sense.member import Names

POD = b"/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/fast"
# As after an initramfs: the root comes after what was moved to it.
HOST = (
    b"22 28 0:20 / /proc rw - proc proc rw\n"
    b"26 28 0:22 / /run rw - tmpfs tmpfs rw\n"
    b"28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    b"40 28 0:31 / " + POD + b" rw - tmpfs tmpfs rw,size=1g\n"
)


def points(*more: bytes) -> dict[bytes, bytes]:
    return tmpfs_mounts([*HOST.splitlines(keepends=True), *(line + b"\n" for line in more)])


def test_tmpfs_that_the_host_has_too() -> None:
    lines = (
        b"36 35 0:31 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n",
        b"37 35 0:32 / /a\\040b rw master:1 - tmpfs shm rw,size=64k\n",
        b"38 35 8:1 / /data rw - ext4 /dev/sda1 rw\n", b"39 35 0:33 / /cut rw - tmp",
        b"40 35 0:34 / /cut rw - tmpfs tmpfs rw",
    )  # fmt: skip
    assert tmpfs_mounts(lines) == {b"0:31": b"/dev/shm", b"0:32": b"/a b"}
    assert tmpfs_mounts([b"\xff\n", b"- tmpfs\n", b"\n"]) == {}
    assert points() == {b"0:22": b"/run", b"0:31": POD}


@pytest.mark.parametrize(
    "over",
    [
        b"50 40 0:90 / " + POD + b" rw - fuse x rw",
        b"50 28 0:90 / /var/lib rw - fuse.s3fs x rw",
        b"50 28 0:90 / /var/lib rw - ext4 /dev/sdb1 rw",
        b"50 28 0:90 / / rw - overlay x rw",
    ],
)
def test_one_under_another_mount_is_not_asked(over: bytes) -> None:
    assert points(over)[b"0:31"] == b""
    # In whatever order they stand there.
    lines = [over + b"\n", *HOST.splitlines(keepends=True)]
    assert tmpfs_mounts(lines)[b"0:31"] == b""


def test_one_beside_or_on_the_other_mount_is_asked() -> None:
    found = points(
        b"50 28 0:90 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/fa rw - fuse x rw",
        b"51 40 0:91 / " + POD + b"/deeper rw - fuse x rw",
        b"52 28 8:2 / /data rw - xfs /dev/sdb1 rw",
        b"53 52 0:92 / /data/t rw - tmpfs tmpfs rw",
    )
    assert found == {b"0:22": b"/run", b"0:31": POD, b"0:92": b"/data/t"}


def test_one_that_is_reached_through_what_may_not_answer_is_not_asked() -> None:
    found = points(
        b"52 28 0:80 / /net rw - nfs4 server:/x rw", b"53 52 0:92 / /net/t rw - tmpfs tmpfs rw"
    )
    assert found[b"0:92"] == b""


def test_one_that_has_another_way_is_asked_there() -> None:
    again = b"60 28 0:31 / /mnt rw - tmpfs tmpfs rw"
    assert points(b"50 40 0:90 / " + POD + b" rw - fuse x rw", again)[b"0:31"] == b"/mnt"
    assert points(again, b"50 60 0:90 / /mnt rw - fuse x rw")[b"0:31"] == POD


def test_a_circle_ends() -> None:
    lines = (b"1 2 0:1 / /a rw - tmpfs x rw\n", b"2 1 0:2 / /a rw - tmpfs x rw\n")
    assert tmpfs_mounts(lines) == {b"0:1": b"", b"0:2": b""}
    lines = (b"1 2 0:1 / /a rw - tmpfs x rw\n", b"2 1 0:2 / /b rw - tmpfs x rw\n")
    assert tmpfs_mounts(lines) == {b"0:1": b"", b"0:2": b""}
    assert tmpfs_mounts([b"1 1 0:1 / / rw - tmpfs x rw\n"]) == {b"0:1": b"/"}


# --- as many and as deep as anybody likes ---------------------------------------------------


def deep(tmpfs: int, *, above: int = 60, parts: int = 2000) -> list[bytes]:
    """So many tmpfs at the end of a path, with other mounts ``above`` one another on it."""
    path = b"/a" * parts
    lines = [b"1 0 8:1 / / rw - ext4 d rw\n", b"2 1 0:50 / " + path + b" rw - ext4 d rw\n"]
    for own in range(3, above + 3):
        path += b"/b"
        lines.append(b"%d %d 0:51 / %s rw - ext4 d rw\n" % (own, own - 1, path))
    for n in range(tmpfs):
        words = 1000 + n, above + 2, 100 + n, path, n
        lines.append(b"%d %d 0:%d / %s/c%d rw - tmpfs t rw\n" % words)
    return lines


def test_a_containers_deep_mounts_cost_one_pass(tmp_path: Path) -> None:
    """Each of these had cost 60 ms of the guard's own time, in every tick."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/mountinfo").write_bytes(b"".join(deep(100)))
    began = time.process_time()
    found = devices_of(str(tmp_path), 7)
    assert time.process_time() - began < 0.5
    assert found == {b"0:%d" % (100 + n) for n in range(100)}


def test_the_hosts_deep_mounts_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    is_open = host_tmpfs._is_open

    def counted(own: bytes, *told: object) -> bool:
        seen.append(own)
        return is_open(own, *told)  # type: ignore[arg-type]

    monkeypatch.setattr(host_tmpfs, "_is_open", counted)
    lines = deep(50, above=60, parts=2)[:-1]
    assert all(tmpfs_mounts(lines).values()), "62 on one another, and all are reached"
    assert len(seen) == len(set(seen)) == len(lines)


def test_a_path_of_the_host_that_is_too_deep_is_not_followed() -> None:
    began = time.process_time()
    found = tmpfs_mounts(deep(100))
    assert time.process_time() - began < 0.5
    assert set(found.values()) == {b""}


# --- what a kill gives back -------------------------------------------------------------------


class Machine:
    """A proc with two processes, and what statvfs was asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = str(folder / "proc")
        self.asked: list[bytes] = []
        self.write(1, HOST)
        self.write(7, b"90 80 0:31 / /fast rw - tmpfs tmpfs rw\n")
        monkeypatch.setattr(host_tmpfs.os, "statvfs", self._statvfs)

    def write(self, pid: int, mountinfo: bytes) -> None:
        folder = Path(self.proc, str(pid))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mountinfo").write_bytes(mountinfo)

    def _statvfs(self, path: bytes) -> os.statvfs_result:
        self.asked.append(path)
        # block and fragment size, 10 blocks of which 7 are free
        return os.statvfs_result((4096, 4096, 10, 7, 7, 0, 0, 0, 0, 255))

    def stays(self, *pids: int) -> int:
        return HostTmpfs(self.proc).bytes_of(pids or (7,))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_is_in_it_stays(machine: Machine) -> None:
    assert machine.stays() == 3 * 4096
    assert machine.asked == [os.fsencode(f"{machine.proc}/1/root") + POD]


def given_back(machine: Machine, folder: Path, procs: str = "7\n") -> int | None:
    fake = FakeTree(folder / "tree", 2)
    fake.make(container(1), memory__stat="anon 1000\nshmem 50000\n", cgroup__procs=procs)
    groups = table(fake)
    details = Details(Names(Mounts(str(fake.mount), 2)), machine.proc)
    details.read(groups.members[container(1)], 1.0, has_swap=False)
    return groups.by_path[container(1)].gives_back_bytes


def test_of_one_that_is_not_asked_nothing_is_given_back(machine: Machine, tmp_path: Path) -> None:
    machine.write(1, HOST + b"50 40 0:90 / " + POD + b" rw - fuse x rw\n")
    assert given_back(machine, tmp_path) == 1000
    assert machine.asked == []


def test_the_oldest_process_tells_whose_mounts_they_are(machine: Machine, tmp_path: Path) -> None:
    """A later one may have a namespace of its own: a pod in a node in a container."""
    machine.write(9, b"80 80 8:1 / / rw - ext4 d rw\n")
    assert given_back(machine, tmp_path, "9\n7\n") == 1000 + 50000 - 3 * 4096


def test_the_last_of_very_many_mounts_is_read(machine: Machine) -> None:
    """A large node: more than a MiB before it."""
    layers = b"lowerdir=" + b"/var/lib/containerd/snapshots/1/fs:" * 40
    many = b"".join(
        b"%d 28 0:%d / /run/c/%d rw - overlay overlay %s\n" % (n, n, n, layers)
        for n in range(1000, 2000)
    )
    root, pod = HOST[: HOST.index(b"40 28")], HOST[HOST.index(b"40 28") :]
    assert len(many) > 1 << 20
    machine.write(1, root + many + pod)
    assert machine.stays() == 3 * 4096


@pytest.mark.parametrize(("bound", "most"), [("_MOST_BYTES", 200), ("_MOST_MOUNTS", 3)])
def test_where_the_hosts_mounts_were_cut_all_stays(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(host_tmpfs, bound, most)
    assert machine.stays() == 1 << 62
    assert machine.asked == []


def test_unread_mounts_are_not_none(machine: Machine) -> None:
    os.unlink(f"{machine.proc}/1/mountinfo")
    assert machine.stays() == 1 << 62


def test_of_a_process_that_went_another_one_tells(machine: Machine) -> None:
    machine.write(8, b"80 80 8:1 / / rw - ext4 d rw\n")
    assert machine.stays(99, 8, 7) == 0
    assert machine.stays(99, 7, 8) == 3 * 4096


def test_where_nobody_tells_all_that_is_in_the_hosts_stays(machine: Machine) -> None:
    """A name space that cannot be read may have any of them; what is in none of them it has not."""
    assert machine.stays(99) == 2 * 3 * 4096, "/run and the pod's"
    assert HostTmpfs(machine.proc).bytes_of(()) == 2 * 3 * 4096


def test_a_containers_mounts_that_were_cut_are_not_all(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = b"90 80 0:31 / /fast rw - tmpfs tmpfs rw\n"
    hidden = b"".join(b"%d 80 0:9 / /x%d rw - proc proc rw\n" % (n, n) for n in range(40_000))
    assert len(hidden) > host_tmpfs._TENANTS_BYTES
    machine.write(7, hidden + pod)
    machine.write(8, b"80 80 8:1 / / rw - ext4 d rw\n")
    assert machine.stays(7, 8) == 2 * 3 * 4096
    monkeypatch.setattr(host_tmpfs, "_TENANTS_BYTES", 2 * len(hidden))
    assert machine.stays(7, 8) == 3 * 4096


def test_the_hosts_are_asked_once_a_moment(machine: Machine) -> None:
    moment = HostTmpfs(machine.proc)
    assert moment.bytes_of(()) == moment.bytes_of((99,)) == 2 * 3 * 4096
    assert len(machine.asked) == 2
    machine.write(1, HOST[: HOST.index(b"40 28")])
    moment.forget()
    assert moment.bytes_of(()) == 3 * 4096


def test_this_machine() -> None:
    """Each tmpfs that is there, and what lies at its point is it."""
    found = mounts_of("/proc", os.getpid())
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    there = {line.split(b" ")[2] for line in lines if b" - tmpfs " in line}
    assert found.keys() == there, "as of a file that cannot be read it is not"
    for device, point in found.items():
        if point:
            number = os.stat(point).st_dev
            assert device == b"%d:%d" % (os.major(number), os.minor(number))
