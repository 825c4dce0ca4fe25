"""The pids controller of both versions, and against the kernel itself."""

import os
import subprocess

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.readings import pids
from seawall.readings.pids import PidsCgroup, PidsCgroups
from seawall.readings.reading import UNLIMITED

V1 = b"=== /proc/1/mountinfo\n1 0 0:1 / /cg/pids rw - cgroup cgroup rw,pids\n"
V2 = (
    b"=== /proc/1/mountinfo\n1 0 0:1 / /cg/pids rw - cgroup2 none rw\n"
    b"=== /cg/pids/cgroup.controllers\ncpu pids\n"
)
PODS = (
    b"=== /cg/pids/cgroup.procs\n"
    b"=== /cg/pids/a/pids.current\n12\n=== /cg/pids/a/pids.max\n100\n"
    b"=== /cg/pids/a/pids.events\nmax 3\n"
    b"=== /cg/pids/a/b/pids.current\n0\n=== /cg/pids/a/b/pids.max\nmax\n"
)


def read(text: bytes) -> PidsCgroups | Unread:
    return pids.read(parse_case(text).rounds[0])


@pytest.mark.parametrize("mounts", [V1, V2], ids=["v1", "v2"])
def test_both_versions(mounts: bytes) -> None:
    assert read(mounts + PODS) == PidsCgroups(
        {
            "/a": PidsCgroup(path="/a", current=12, limit=100, max_events=3),
            "/a/b": PidsCgroup(path="/a/b", current=0, limit=UNLIMITED, max_events=None),
        }
    )


def test_what_could_not_be_read_is_told_and_the_gone_are_not() -> None:
    more = (
        b"=== /cg/pids/bad/pids.current\nmany\n=== /cg/pids/bad/pids.max\n5\n"
        b"=== /cg/pids/no/pids.current\n1\n=== /cg/pids/no/pids.max !refused\n"
        b"=== /cg/pids/gone/pids.max\n1\n=== /cg/pids/gone/pids.current !vanished\n"
    )
    found = read(V1 + PODS + more)
    assert isinstance(found, PidsCgroups)
    assert set(found.by_path) == {"/a", "/a/b"}
    assert {(unread.path, unread.why) for unread in found.unread} == {
        ("/cg/pids/bad", "malformed"),
        ("/cg/pids/no/pids.max", "refused"),
    }


def test_without_the_controller() -> None:
    found = read(b"=== /proc/1/mountinfo\n1 0 0:1 / /cg rw - cgroup cgroup rw,memory\n")
    assert isinstance(found, Unread)
    assert found.why == "absent"


@pytest.mark.system
def test_a_fork_that_the_kernel_refuses_is_counted() -> None:
    home = "/sys/fs/cgroup/pids"
    if not os.path.isdir(home):
        pytest.skip("needs the pids controller of v1: boot with systemd.unified_cgroup_hierarchy=0")
    if os.geteuid():
        pytest.skip("making a cgroup needs root: sudo make test-system")
    path = f"/seawall-pids-{os.getpid()}"
    os.mkdir(home + path)
    try:
        with open(f"{home}{path}/pids.max", "w") as file:
            file.write("1")
        script = (
            f"echo $$ > {home}{path}/cgroup.procs; echo in; (:; :) 2>&1 | cat; echo done; read x"
        )
        shell = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert shell.stdout
            assert shell.stdout.readline() == b"in\n"
            shell.wait(timeout=20)  # dash ends itself when it cannot fork
            with this_machine() as host:
                found = pids.read(host)
        finally:
            shell.communicate(timeout=20)
    finally:
        os.rmdir(home + path)
    assert isinstance(found, PidsCgroups)
    assert found.by_path[path].limit == 1
    assert found.by_path[path].max_events
