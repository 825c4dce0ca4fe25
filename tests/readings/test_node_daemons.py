"""The few daemons of a node, and the count of cgroups in /proc/cgroups."""

import os
from pathlib import Path

import pytest
from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.problems import ParseProblem
from seawall.readings import node_daemons, proc_cgroups

STAT = "{pid} ({comm}) {state} 1 {pid} {pid} 0 -1 {flags} 0 0 0 0 1 1 0 0 20 0 1 0 {start} 0 9 0"


def stat(pid: int, comm: str, state: str = "S", start: int = 100, flags: int = 0) -> str:
    line = STAT.format(pid=pid, comm=comm, state=state, start=start, flags=flags)
    return f"=== /proc/{pid}/stat\n{line}\n"


def read(*sections: str) -> node_daemons.NodeDaemons:
    found = node_daemons.read(parse_case("".join(sections).encode()).rounds[0])
    assert isinstance(found, node_daemons.NodeDaemons)
    return found


def test_known_ones_are_found_with_their_score() -> None:
    found = read(
        stat(1, "systemd"),
        stat(70, "kubelet"),
        "=== /proc/70/oom_score_adj\n-999\n",
        stat(80, "systemd-journal"),
        stat(90, "nohang"),
        stat(91, "kubelet-helper"),
    )
    assert found.has_init
    assert [(d.pid, d.comm) for d in found.needed] == [(70, "kubelet"), (80, "systemd-journal")]
    assert found.needed[0].oom_score_adj == -999
    missing = found.needed[1].oom_score_adj
    assert isinstance(missing, Unread)
    assert missing.path == "/proc/80/oom_score_adj"
    assert [d.comm for d in found.guards] == ["nohang"]


def test_the_eldest_of_one_name_stands_for_all() -> None:
    found = read(stat(1, "systemd"), stat(50, "sshd", start=900), stat(60, "sshd", start=30))
    assert [d.pid for d in found.needed] == [60]


@pytest.mark.parametrize("hidden", [stat(70, "kubelet", "Z"), stat(70, "sshd", flags=0x00200000)])
def test_the_dead_and_the_kernel_do_not_count(hidden: str) -> None:
    found = read(stat(2, "x"), hidden)
    assert not found.needed
    assert not found.has_init


def test_live() -> None:
    found = node_daemons.read(LiveHost("/"))
    assert isinstance(found, node_daemons.NodeDaemons)
    for daemon in (*found.needed, *found.guards):
        assert Path(f"/proc/{daemon.pid}/comm").read_text().strip() == daemon.comm


def test_cgroups_are_counted_with_those_that_linger() -> None:
    found = proc_cgroups.read(LiveHost("/"))
    if isinstance(found, Unread):
        pytest.skip(f"{found.path}: {found.why}; a kernel without CONFIG_CGROUPS or v1 names")
    folder = "/sys/fs/cgroup/memory"
    if os.path.isfile(f"{folder}/memory.usage_in_bytes"):
        visible = sum(1 for _ in os.walk(folder))
        assert found.counts["memory"] >= visible


def test_a_row_without_a_number_is_malformed() -> None:
    with pytest.raises(ParseProblem) as caught:
        proc_cgroups.parse(b"#subsys_name hierarchy num_cgroups enabled\nmemory 9 many 1\n")
    assert caught.value.line == 2
