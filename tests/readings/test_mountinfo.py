"""mountinfo: escapes, optional fields, whose view is taken."""

import os

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import mountinfo

OPTIONAL = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,acl\n"


def test_all_words_of_a_line() -> None:
    (mount,) = mountinfo.parse(OPTIONAL).mounts
    assert (mount.mount_id, mount.parent_id, mount.device) == (36, 35, "98:0")
    assert (mount.root, mount.mount_point) == ("/mnt1", "/mnt2")
    assert mount.options == ("rw", "noatime")
    assert (mount.fs_type, mount.source) == ("ext3", "/dev/root")
    assert mount.super_options == ("rw", "acl")


def test_escapes_are_undone_and_hostile_bytes_survive() -> None:
    line = rb"1 0 0:1 / /a\040b\134c\012d\777 rw - tmpfs  rw" + b"\n2 0 0:1 / /\xff rw - x y -\n"
    first, second = mountinfo.parse(line).mounts
    assert first.mount_point == "/a b\\c\nd\\777"
    assert first.source == "", "an empty source leaves two spaces"
    assert os.fsencode(second.mount_point) == b"/\xff"
    assert second.super_options == (), "the sieve's dash is no option"


@pytest.mark.parametrize(
    "line", [b"x", b"1 2 0:1 / / rw shared:1", b"1 2 0:1 / - tmpfs t rw", b"a 2 0:1 / / rw - t s o"]
)
def test_a_line_that_is_no_mount_is_named(line: bytes) -> None:
    with pytest.raises(ParseProblem) as problem:
        mountinfo.parse(OPTIONAL + line + b"\n")
    assert problem.value.line == 2


def test_the_view_of_pid_1_comes_before_ones_own() -> None:
    both = b"=== /proc/1/mountinfo\n1 0 0:1 / /one rw - t s -\n"
    own = b"=== /proc/self/mountinfo\n1 0 0:1 / /self rw - t s -\n"
    for text, expected in (
        (both + own, "/one"),
        (own, "/self"),
        (own + b"=== /proc/1/mountinfo !refused\n", "/self"),
    ):
        found = mountinfo.read(parse_case(text).rounds[0])
        assert isinstance(found, mountinfo.Mountinfo)
        assert found.mounts[0].mount_point == expected


def test_without_any_the_first_refusal_is_told() -> None:
    found = mountinfo.read(parse_case(b"=== /proc/1/mountinfo !refused\n").rounds[0])
    assert isinstance(found, Unread)
    assert (found.path, found.why) == ("/proc/1/mountinfo", "refused")


def test_this_machine_has_its_own_proc_in_it() -> None:
    with this_machine() as host:
        found = mountinfo.read(host)
    assert isinstance(found, mountinfo.Mountinfo)
    (proc,) = {m.fs_type for m in found.mounts if m.mount_point == "/proc"}
    assert proc == "proc"
    status = os.stat("/")
    roots = [m.device for m in found.mounts if m.mount_point == "/"]
    if not roots:
        pytest.skip("in a chroot: nothing is mounted at its /")
    assert roots[-1] == f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
