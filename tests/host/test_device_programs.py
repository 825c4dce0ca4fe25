"""Device programs that a real kernel took are read back through bpf(2)."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.host import device_program
from tests.host.as_nobody import as_nobody
from tests.host.device_program import ALLOW, DENY, attached, v2_cgroup

from seawall.host.device_access import bpf_programs
from seawall.host.device_access.apart import ask_apart
from seawall.host.device_access.bpf_programs import Bpf, device_programs
from seawall.host.device_access.device_cgroup import Hierarchy
from seawall.host.device_access.process_handle import ProcessHandle
from seawall.host.device_access.trying import _Target, _Trier
from seawall.host.host import JSON, Unread
from seawall.host.live import LiveHost

needs_bpf = [
    pytest.mark.system,
    pytest.mark.skipif(device_program.missing() is not None, reason=str(device_program.missing())),
]
V1 = Path("/sys/fs/cgroup/devices")


def asked(*folders: object) -> Any:
    host = LiveHost()
    try:
        answer = host.ask("device_programs", json.dumps({"folders": [str(f) for f in folders]}))
    finally:
        host.close()
    assert not isinstance(answer, Unread), answer
    return answer


def tried(pid: int) -> JSON:
    """As on a machine that has version 2 alone."""
    trier = _Trier(Hierarchy(2, str(device_program.v2_mount()), "/"), is_opening=False)
    target = _Target(pid, ProcessHandle(pid).start_ticks(), ["/dev/null"])
    (told,) = ask_apart([target], trier.answer, each_seconds=5, all_seconds=5)
    return told


class TestAttached:
    pytestmark = needs_bpf

    def test_programs_are_read_back_in_their_order_and_gone_again(self) -> None:
        with v2_cgroup("seawall-programs") as folder:
            nothing = {"folders": {str(folder): []}, "programs": {}, "loaded": {}}
            assert asked(folder) == nothing
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            with attached(folder, ALLOW, DENY):
                after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                answer = asked(folder)
                first, second = answer["folders"][str(folder)]
                told = answer["programs"]
                assert bytes.fromhex(told[str(first)]) == ALLOW
                assert bytes.fromhex(told[str(second)]) == DENY
                loaded = answer["loaded"]
                assert before <= loaded[str(first)] <= loaded[str(second)] <= after
            assert asked(folder)["folders"] == {str(folder): []}

    def test_only_the_cgroups_own_are_told(self) -> None:
        """Those above are asked about by themselves."""
        with v2_cgroup("seawall-above") as folder:
            below = folder / "below"
            below.mkdir()
            try:
                with attached(folder, ALLOW):
                    answer = asked(folder, below)["folders"]
                    assert (len(answer[str(folder)]), answer[str(below)]) == (1, [])
            finally:
                below.rmdir()

    @pytest.mark.parametrize(("program", "errno"), [(ALLOW, 0), (DENY, 1)])
    def test_who_joins_a_cgroup_of_version_2_meets_its_programs(
        self, program: bytes, errno: int
    ) -> None:
        with v2_cgroup("seawall-joined") as folder:
            sleeper = subprocess.Popen(["sleep", "60"])
            try:
                (folder / "cgroup.procs").write_text(str(sleeper.pid))
                with attached(folder, program):
                    told = tried(sleeper.pid)
                assert told == {"tried": [["/dev/null", errno, "c", 1, 3, 0o666, None]]}
                until = time.monotonic() + 5  # the child that asked was killed, and has yet to go
                while (folder / "cgroup.procs").read_text().split() != [str(sleeper.pid)]:
                    assert time.monotonic() < until
            finally:
                sleeper.kill()
                sleeper.wait()

    def test_a_paused_container_is_not_joined(self) -> None:
        """Whoever joined it would be frozen with it."""
        with v2_cgroup("seawall-paused") as folder:
            sleeper = subprocess.Popen(["sleep", "60"])
            try:
                (folder / "cgroup.procs").write_text(str(sleeper.pid))
                (folder / "cgroup.freeze").write_text("1")
                until = time.monotonic() + 10
                while "frozen 1" not in (folder / "cgroup.events").read_text():
                    assert time.monotonic() < until
                told = tried(sleeper.pid)
                assert isinstance(told, dict)
                assert "it is paused" in str(told["problem"])
            finally:
                (folder / "cgroup.freeze").write_text("0")
                sleeper.kill()
                sleeper.wait()


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="another user asks: sudo make test-system")
def test_a_refusal_names_the_capability() -> None:
    home = device_program.v2_mount()
    if home is None:
        pytest.skip("cgroup version 2 is not mounted: mount -t cgroup2 cgroup2 /mnt")
    question = json.dumps({"folders": [str(home)]})
    told = json.loads(as_nobody(lambda: json.dumps(device_programs(question))))
    why, words = told["folders"][str(home)]["problem"]
    assert why == "refused"
    assert "CAP_SYS_ADMIN" in words


def test_a_folder_that_is_no_cgroup_of_version_2_says_so(tmp_path: Path) -> None:
    """Or the kernel refuses to look, for an ordinary user."""
    gone = str(tmp_path / "gone")
    told = device_programs(json.dumps({"folders": [str(tmp_path), gone]}))
    assert isinstance(told, dict)
    folders = told["folders"]
    assert isinstance(folders, dict)
    assert folders[gone] == {"problem": ["absent", "No such file or directory"]}
    refusal = "bpf(2) refuses it: needs CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN"
    expected = ["refused", refusal] if os.geteuid() else ["absent", "not a cgroup of version 2"]
    assert folders[str(tmp_path)] == {"problem": expected}
    assert told["programs"] == {}


@pytest.mark.skipif(not V1.is_dir(), reason="no cgroup of version 1 here")
def test_version_1_has_no_programs() -> None:
    why = asked(V1)["folders"][str(V1)]["problem"][0]
    assert why == ("refused" if os.geteuid() else "absent")


def test_an_architecture_without_a_known_number_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("", "", "", "", "mips")))
    with pytest.raises(OSError, match="not implemented"):
        Bpf().program(1)


def test_what_is_not_known_of_a_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a 32-bit program below a 64-bit kernel: its numbers are others."""
    monkeypatch.setattr(bpf_programs, "_POINTER_BYTES", 4)
    told = device_programs(json.dumps({"folders": ["/sys/fs/cgroup"]}))
    assert isinstance(told, dict)
    words = "the number of bpf(2) is not known on this machine"
    assert told["programs"] == {}
    assert words in str(told["folders"])
