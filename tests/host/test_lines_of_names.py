"""Text of the kernel's that holds names from containers is cut where the kernel ended a line."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seawall.accounts.tracing.task_workloads import memory_path
from seawall.actions.identity import cgroups_of
from seawall.actions.orders import Mounts
from seawall.cli import oom_live
from seawall.guard.own_place import cgroup_in_text
from seawall.guard.tell.rivals import is_of_host, is_roots, is_within
from seawall.host import kernel_messages
from seawall.host.packet_rings.processes import lines_of
from seawall.host.page_trace import proc_tasks
from seawall.pinner import program_choice
from seawall.pinner.mappings import own_identity, parse
from seawall.resident_files import executed

VICTIM = "/kubepods.slice/kubepods-podv.slice/cri-containerd-" + "b" * 64 + ".scope"
OWN = "/kubepods.slice/kubepods-podm.slice/cri-containerd-" + "c" * 64 + ".scope"
CUTS = list("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
"""What splitlines() takes for an end of line, and the kernel does not."""
each_cut = pytest.mark.parametrize("cut", CUTS, ids=ascii)


def line(cut: str, head: str = "0::") -> str:
    """Of a process in a cgroup that a container made below its own."""
    return f"{head}{OWN}/x{cut}{head}{VICTIM}"


@each_cut
def test_pages_and_rings_stay_with_who_took_them(monkeypatch: pytest.MonkeyPatch, cut: str) -> None:
    text = f"4:cpu:/\n{line(cut)}\n".encode()
    monkeypatch.setattr(proc_tasks, "_read", lambda _path: text)
    lines = proc_tasks.cgroup_lines(1)
    assert lines == ("4:cpu:/", line(cut))
    assert lines_of(text) == list(lines)
    assert memory_path(lines, 2) == line(cut)[3:]


def test_no_text_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc_tasks, "_read", lambda _path: b"")
    assert proc_tasks.cgroup_lines(1) == ()
    assert lines_of(b"") == []
    assert program_choice.memory_path_of("") == ""


@each_cut
def test_a_cgroup_is_pinned_and_spared_by_its_own_path(tmp_path: Path, cut: str) -> None:
    v1 = line(cut, "4:memory:")
    assert program_choice.memory_path_of(line(cut) + "\n") == line(cut)[3:]
    assert program_choice.memory_path_of(v1 + "\n0::/\n") == v1[9:]
    (tmp_path / "cgroup").write_bytes(f"{v1}\n{line(cut)}\n".encode())
    text = cgroups_of(f"..{tmp_path}")
    assert cgroup_in_text(text, Mounts("/u", 2, None, "/u")) == line(cut)[3:]
    assert cgroup_in_text(text, Mounts("/m", 1)) == v1[9:]


@each_cut
def test_who_is_in_a_container_is_in_no_session_by_a_name(cut: str) -> None:
    assert not is_within(f"0::/system.slice/x{cut}0::/user.slice/y\n", ("/user.slice",))
    assert not is_of_host(f"Name:\tx{cut}NSpid:\t1\nNSpid:\t1\t2\n")
    assert not is_roots(f"Name:\tx{cut}Uid:\t0\t0\t0\t0\nUid:\t7\t7\t7\t7\n")


def test_a_name_with_colons_leaves_no_scope() -> None:
    assert is_within("0::/kubepods.slice/a:b/c:d\n", ("/kubepods.slice",))


def test_a_process_is_not_another_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc_tasks, "_read", lambda _path: b"Name:\tx\rTgid:\t1\nTgid:\t42\n")
    assert proc_tasks._tgid(42) == 42


def test_a_mapping_is_not_another_by_its_name() -> None:
    forged = b"00002000-00003000 r-xp 00000000 08:01 9 /usr/bin/victim"
    maps = b"00001000-00002000 r-xp 00000000 08:01 7 /x\r" + forged + b"\n"
    assert [segment.inode for segment in parse(maps)] == [7]
    assert own_identity(maps, 0x2000) is None
    assert list(executed(maps)) == [os.fsdecode(b"/x\r" + forged)]


def test_a_line_of_the_log_ends_where_the_log_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = b"6,1,2,-;Killed process 7 (a\rb), x\n KEY=v\n"
    path = tmp_path / "kmsg"
    path.write_bytes(record)
    whole = iter([record, None])
    monkeypatch.setattr(kernel_messages, "next_record", lambda _fd: next(whole))
    lines = [b"6,1,2,-;Killed process 7 (a\rb), x\n", b" KEY=v\n"]
    assert list(kernel_messages.kmsg_lines(str(path))) == lines

    class Recorded:
        def read(self, _path: str, _most: int) -> bytes:
            return record

    source: Any = SimpleNamespace(first=SimpleNamespace(host=Recorded()))
    _, told = next(oom_live._files(source, ["/var/log/kern.log"]))
    assert list(told) == lines
