"""Which trees there are, from mountinfo alone."""

import pytest

from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Mounts
from seawall.problems import UsageProblem

ROOT = "27 1 254:0 / / rw shared:1 - ext4 /dev/vda rw"
V1 = """22 27 0:21 / /proc rw,relatime - proc proc rw
31 27 0:28 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct
35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:11 - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime shared:12 - cgroup cgroup rw,freezer
"""
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"


def test_v1() -> None:
    assert find_mounts(V1 + ROOT) == Mounts(
        "/sys/fs/cgroup/memory", 1, "/sys/fs/cgroup/freezer", None
    )


def test_hybrid() -> None:
    assert find_mounts(V1 + UNIFIED) == Mounts(
        "/sys/fs/cgroup/memory", 1, "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"
    )


def test_v2() -> None:
    assert find_mounts(f"{V2}{ROOT}\n") == Mounts("/sys/fs/cgroup", 2, None, "/sys/fs/cgroup")


def test_controllers_of_one_tree() -> None:
    text = "35 31 0:31 / /cg/all rw - cgroup cgroup rw,memory,freezer,name=x\n"
    assert find_mounts(text) == Mounts("/cg/all", 1, "/cg/all", None)


def test_a_name_with_memory_in_it_counts_none() -> None:
    with pytest.raises(UsageProblem, match="no cgroup tree that counts memory"):
        find_mounts("35 31 0:31 / /cg/x rw - cgroup cgroup rw,name=memory\n")


def test_octal_escapes_are_bytes_of_the_name() -> None:
    text = r"30 24 0:26 / /a\040b\134c\303\244 rw - cgroup2 cgroup2 rw" + "\n"
    assert find_mounts(text).memory == "/a b\\cä"
    text = r"30 24 0:26 / /a\377b rw - cgroup2 cgroup2 rw" + "\n"
    assert find_mounts(text).memory == "/a\udcffb"


def test_what_lies_under_a_later_mount_is_not_there() -> None:
    """v1's memory below a tmpfs over which v2 was mounted."""
    over = "50 27 0:40 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert find_mounts(V1 + over) == Mounts("/sys/fs/cgroup", 2, None, "/sys/fs/cgroup")


def test_a_root_that_stands_behind_its_children_hides_nothing() -> None:
    """After pivot_root the kernel lists / behind what is mounted on it."""
    assert find_mounts(f"{V1}{ROOT}\n").version == 1


def test_a_container_sees_its_own_part_and_the_host() -> None:
    """Without a cgroup namespace its own tree shows a part; the host's is mounted beside it."""
    own = "60 59 0:26 /kubepods/pod1/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
    host = "70 59 0:26 / /host/sys/fs/cgroup rw - cgroup2 cgroup rw\n"
    assert find_mounts(own + host).memory == "/host/sys/fs/cgroup"
    with pytest.raises(UsageProblem, match="mount the host's"):
        find_mounts(own)


def test_in_a_cgroup_namespace_the_host_is_above() -> None:
    own = "60 59 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
    host = "70 59 0:26 /../../.. /host/cgroup rw - cgroup2 cgroup rw\n"
    assert find_mounts(own + host).memory == "/host/cgroup"


@pytest.mark.parametrize("text", ["", "\n", "x - cgroup2", "a b c d e f - cgroup2 x rw", "- - -"])
def test_what_is_no_mountinfo_has_no_trees(text: str) -> None:
    with pytest.raises(UsageProblem):
        find_mounts(text)
