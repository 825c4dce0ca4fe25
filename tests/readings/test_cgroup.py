"""Where cgroup trees are mounted, the walk over them, and who is in which cgroup."""

import os
from collections.abc import Iterator, Mapping, Sequence

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings import cgroup, cgroup_tree
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.reading import read_as

V1_MOUNTS = b"""\
30 23 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
32 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
33 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
35 30 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids,release_agent=/x
"""
V2_MOUNTS = b"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
V1_FOLDERS = (
    b"=== /sys/fs/cgroup/cpu,cpuacct/tasks\n=== /sys/fs/cgroup/systemd/tasks\n"
    b"=== /sys/fs/cgroup/unified/cgroup.procs\n"
)
V2_CASE = (
    b"=== /proc/1/mountinfo\n" + V2_MOUNTS + b"=== /sys/fs/cgroup/cgroup.controllers\n"
    b"cpuset cpu io memory pids\n=== /sys/fs/cgroup/cgroup.procs\n1\n2\n"
    b"=== /sys/fs/cgroup/system.slice/cgroup.procs\n"
    b"=== /sys/fs/cgroup/system.slice/ssh.service/cgroup.procs\n700\n0\n701\n"
    b"=== /sys/fs/cgroup/kubepods.slice/cgroup.procs !refused\n"
    b"=== /sys/fs/cgroup/init.scope/cgroup.procs\n9x\n"
)


def host_of(text: bytes) -> Host:
    return parse_case(text).rounds[0]


def layout_of(mounts: bytes, more: bytes = b"") -> CgroupLayout:
    found = cgroup.read_layout(host_of(b"=== /proc/1/mountinfo\n" + mounts + more))
    assert isinstance(found, CgroupLayout)
    return found


# --- layout ----------------------------------------------------------------------------


def test_hybrid_layout_counts_memory_in_v1() -> None:
    layout = layout_of(V1_MOUNTS)
    assert layout.v1 == {
        "name=systemd": "/sys/fs/cgroup/systemd",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct",
        "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
        "memory": "/sys/fs/cgroup/memory",
        "pids": "/sys/fs/cgroup/pids",
    }
    assert (layout.v2, layout.v2_controllers) == ("/sys/fs/cgroup/unified", ())
    assert (layout.memory_version, layout.memory_tree) == (1, "/sys/fs/cgroup/memory")
    assert layout.roots == {}
    assert layout.controller("pids") == (1, "/sys/fs/cgroup/pids")
    assert layout.controller("io") is None


def test_v2_layout() -> None:
    layout = layout_of(V2_MOUNTS, b"=== /sys/fs/cgroup/cgroup.controllers\ncpu memory pids\n")
    assert (layout.memory_version, layout.memory_tree) == (2, "/sys/fs/cgroup")
    assert layout.controller("pids") == (2, "/sys/fs/cgroup")


def test_v2_without_the_memory_controller_counts_none() -> None:
    layout = layout_of(V2_MOUNTS, b"=== /sys/fs/cgroup/cgroup.controllers\nhugetlb\n")
    assert (layout.memory_version, layout.memory_tree) == (None, "/sys/fs/cgroup")


def test_name_systemd_is_walked_when_nothing_else_is_there() -> None:
    layout = layout_of(b"1 0 0:1 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n")
    assert (layout.memory_version, layout.memory_tree) == (None, "/cg/systemd")


def test_whole_tree_is_preferred_to_a_part_of_it() -> None:
    part = b"29 23 0:29 /docker/c1 /srv/memory rw - cgroup cgroup rw,memory\n"
    assert layout_of(part + V1_MOUNTS).v1["memory"] == "/sys/fs/cgroup/memory"
    alone = layout_of(part)
    assert alone.v1 == {"memory": "/srv/memory"}
    assert alone.roots == {"/srv/memory": "/docker/c1"}


def test_a_mount_that_a_later_one_hides_is_not_seen() -> None:
    layout = layout_of(V2_MOUNTS + b"40 30 0:9 / /sys/fs/cgroup rw - cgroup c rw,memory\n")
    assert (layout.v1, layout.v2) == ({"memory": "/sys/fs/cgroup"}, None)


def test_no_cgroups_at_all_is_absent_not_empty() -> None:
    found = cgroup.read_layout(host_of(b"=== /proc/1/mountinfo\n1 0 0:1 / / rw - ext4 a -\n"))
    assert isinstance(found, Unread)
    assert found.why == "absent"


@pytest.mark.parametrize(
    ("files", "v1", "v2"),
    [
        (b"=== /sys/fs/cgroup/cgroup.controllers\nmemory\n", {}, "/sys/fs/cgroup"),
        (
            V1_FOLDERS,
            {
                "cpu": "/sys/fs/cgroup/cpu,cpuacct",
                "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
                "name=systemd": "/sys/fs/cgroup/systemd",
            },
            "/sys/fs/cgroup/unified",
        ),
    ],
)
def test_tree_of_copied_files(files: bytes, v1: Mapping[str, str], v2: str) -> None:
    """A report that kept /sys/fs/cgroup and no mountinfo."""
    layout = cgroup.read_layout(host_of(files))
    assert isinstance(layout, CgroupLayout)
    assert (layout.v1, layout.v2) == (v1, v2)


# --- the tree --------------------------------------------------------------------------


def test_paths_pids_and_refusals() -> None:
    tree = cgroup.read(host_of(V2_CASE))
    assert isinstance(tree, Cgroups)
    assert tree.paths == (
        "/",
        "/init.scope",
        "/kubepods.slice",
        "/system.slice",
        "/system.slice/ssh.service",
    )
    assert tree.pids == {"/": (1, 2), "/system.slice/ssh.service": (700, 701)}
    assert {(unread.path, unread.why) for unread in tree.unread} == {
        ("/sys/fs/cgroup/init.scope/cgroup.procs", "malformed"),
        ("/sys/fs/cgroup/kubepods.slice/cgroup.procs", "refused"),
    }


def test_a_folder_that_may_not_be_listed_is_there_and_told() -> None:
    tree = cgroup.read(host_of(V2_CASE + b"=== /sys/fs/cgroup/system.slice !refused\n"))
    assert isinstance(tree, Cgroups)
    assert "/system.slice" in tree.paths
    assert "/system.slice/ssh.service" not in tree.paths
    assert ("/sys/fs/cgroup/system.slice", "refused") in {(u.path, u.why) for u in tree.unread}


class Vanishing:
    """A host on which one folder goes away once it has been listed so many times."""

    def __init__(self, host: Host, folder: str, lists: int) -> None:
        self._host, self._folder, self._lists = host, folder, lists
        self.read, self.link, self.ask = host.read, host.link, host.ask

    def names(self, path: str) -> tuple[str, ...] | Unread:
        if path == self._folder:
            self._lists -= 1
            if self._lists < 0:
                return Unread(path, "absent", "removed")
        return self._host.names(path)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        for path in paths:
            gone = path.startswith(self._folder + "/")
            yield Unread(path, "absent", "removed") if gone else self._host.read(path)


@pytest.mark.parametrize("lists", [0, 1])
def test_a_cgroup_that_disappears_is_simply_not_there(lists: int) -> None:
    folder = "/sys/fs/cgroup/system.slice/ssh.service"
    tree = cgroup.read(Vanishing(host_of(V2_CASE), folder, lists))
    assert isinstance(tree, Cgroups)
    assert "/system.slice/ssh.service" not in tree.paths
    assert "/system.slice" in tree.paths
    assert not [unread for unread in tree.unread if "ssh" in unread.path]


def test_a_threaded_cgroup_stays() -> None:
    """Its cgroup.procs answers EOPNOTSUPP, which is absent, while its folder is there."""
    folder = "/sys/fs/cgroup/system.slice/ssh.service"
    tree = cgroup.read(Vanishing(host_of(V2_CASE), folder, 9))
    assert isinstance(tree, Cgroups)
    assert "/system.slice/ssh.service" in tree.paths


class Endless:
    """Every folder has two more in it, for ever."""

    def names(self, path: str) -> tuple[str, ...]:
        return ("/", "a/", "b/", "cgroup.procs")


def test_the_walk_is_bounded_in_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "CGROUPS_MOST", 500)
    walk = cgroup_tree.CgroupWalk(Endless(), "/cg")  # type: ignore[arg-type]
    paths = [found.path for found in walk.results()]
    assert len(paths) == len(set(paths)) == 500
    assert max(path.count("/") for path in paths) == cgroup_tree.DEPTH_MOST
    assert {unread.why for unread in walk.unread} == {"too_big"}


def test_names_of_cgroups_are_hostile() -> None:
    tree = cgroup.read(host_of(V2_CASE + b"=== /sys/fs/cgroup/a\\x1b[2J\\xff/cgroup.procs\n44\n"))
    assert isinstance(tree, Cgroups)
    assert tree.pids["/a\x1b[2J\udcff"] == (44,)


# --- /proc/PID/cgroup ------------------------------------------------------------------


def test_proc_cgroup() -> None:
    data = (
        b"12:cpu,cpuacct:/kubepods/pod1\n3:memory:/a:b/c\n1:name=systemd:/user.slice\n"
        b"0::/../other (deleted)\n"
    )
    assert cgroup.parse_proc_cgroup(data) == {
        "cpu": "/kubepods/pod1",
        "cpuacct": "/kubepods/pod1",
        "memory": "/a:b/c",
        "name=systemd": "/user.slice",
        "": "/../other (deleted)",
    }


@pytest.mark.parametrize("line", [b"x", b"1:memory", b"a:memory:/", b"1:memory:relative"])
def test_proc_cgroup_names_the_malformed_line(line: bytes) -> None:
    with pytest.raises(ParseProblem) as problem:
        cgroup.parse_proc_cgroup(b"0::/\n" + line)
    assert problem.value.line == 2


# --- this machine ----------------------------------------------------------------------


def test_this_process_is_where_the_kernel_says() -> None:
    with this_machine() as host:
        tree = cgroup.read(host)
        if isinstance(tree, Unread):
            pytest.skip(
                f"no cgroup tree here ({tree.detail}): mount -t cgroup2 none /sys/fs/cgroup"
            )
        own = read_as(host, f"/proc/{os.getpid()}/cgroup", cgroup.parse_proc_cgroup)
    assert not isinstance(own, Unread)
    version = tree.layout.memory_version
    key = {1: "memory", 2: ""}.get(version or 0, "" if tree.layout.v2 else "name=systemd")
    (mine,) = [path for path, pids in tree.pids.items() if os.getpid() in pids]
    root = tree.layout.roots.get(tree.mount_point, "")
    assert own[key].endswith(mine) or root, "below the part that is mounted here"
    assert tree.paths[0] == "/"
    parents = {path.rpartition("/")[0] or "/" for path in tree.paths}
    assert parents <= set(tree.paths)
