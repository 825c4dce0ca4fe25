"""Nodes below /dev: the host's, those of other mount namespaces, hostile ones and hung ones."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.host.own_dev import no_fuse, with_own_dev, with_silent_dev

from seawall.host.bundle import open_bundle
from seawall.host.bundle_writer import write_bundle
from seawall.host.device_access import apart, nodes
from seawall.host.device_access.apart import ask_apart
from seawall.host.host import JSON, Unread
from seawall.host.live import LiveHost
from seawall.host.recording import Recording

needs_root = [
    pytest.mark.system,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="mknod and mount namespaces need root: sudo make test-system"
    ),
]


def asked(*pids: int) -> Any:
    host = LiveHost()
    try:
        answer = host.ask("device_nodes", json.dumps({"pids": list(pids)}))
    finally:
        host.close()
    assert not isinstance(answer, Unread), answer
    return answer


def row(path: str) -> list[object]:
    status = os.lstat(path)
    return [
        path, "c" if stat.S_ISCHR(status.st_mode) else "b", os.major(status.st_rdev),
        os.minor(status.st_rdev), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid,
    ]  # fmt: skip


def test_the_hosts_nodes_are_those_that_find_tells() -> None:
    prune = "( -path /dev/pts -o -path /dev/shm -o -path /dev/mqueue -o -path /dev/hugepages )"
    found = subprocess.run(
        ["find", "/dev", "-maxdepth", "3", *prune.split(), "-prune", "-o",
         "(", "-type", "c", "-o", "-type", "b", ")", "-print"],
        capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    host = asked()["host"]
    assert [one[0] for one in host["nodes"]] == sorted(found)
    assert row("/dev/null") in host["nodes"]


def test_own_process_sees_what_the_host_sees() -> None:
    answer = asked(os.getpid())
    assert answer["pids"][str(os.getpid())]["nodes"] == answer["host"]["nodes"]


def test_a_process_that_is_gone_says_so() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert asked(ended.pid)["pids"][str(ended.pid)]["problem"][0] == "vanished"
    zombie = subprocess.Popen(["true"])
    time.sleep(0.2)
    assert asked(zombie.pid)["pids"][str(zombie.pid)]["problem"][0] == "vanished"
    zombie.wait()


def of_tree(root: Path) -> Any:
    host = LiveHost(str(root))
    try:
        return host.ask("device_nodes", json.dumps({"pids": [1]}))
    finally:
        host.close()


def test_a_tree_without_device_nodes_tells_nothing(tmp_path: Path) -> None:
    told = of_tree(tmp_path)
    assert isinstance(told, Unread)
    assert told.why == "absent", "no /dev at all"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia-uvm").write_text("a copy that was made by nobody in particular")
    assert isinstance(of_tree(tmp_path), Unread)


class TestTrees:
    pytestmark = needs_root

    def test_its_own_nodes_and_links_and_never_the_machines(self, tmp_path: Path) -> None:
        (tmp_path / "dev/char").mkdir(parents=True)
        os.mknod(tmp_path / "dev/nvidia-uvm", 0o660 | stat.S_IFCHR, os.makedev(510, 0))
        os.symlink("../nvidia-uvm", tmp_path / "dev/char/510:0")
        os.symlink("/dev", tmp_path / "dev/out")
        told = of_tree(tmp_path)
        assert [one[:4] for one in told["host"]["nodes"]] == [["/dev/nvidia-uvm", "c", 510, 0]]
        assert told["host"]["links"] == [["510:0", "../nvidia-uvm"]]
        assert told["pids"]["1"]["problem"][0] == "absent", "its pids are not this machine's"


class TestOtherNamespaces:
    pytestmark = needs_root

    def test_nodes_are_told_by_number_and_links_are_not_followed(self) -> None:
        script = (
            "mknod -m 640 /dev/gpu0 c 240 7; mkdir /dev/dri; mknod /dev/dri/card0 b 240 1;"
            "mkdir -p /dev/a/b/c; mknod /dev/a/b/in c 1 3; mknod /dev/a/b/c/deep c 1 3;"
            "ln -s / /dev/out; ln -s gpu0 /dev/link; mkfifo /dev/pipe; mkdir /dev/shm;"
            "mknod /dev/shm/x c 1 3; mknod '/dev/a\x1b[31m\nb' c 1 5"
        )
        with with_own_dev(script) as pid:
            told = asked(pid)["pids"][str(pid)]
        assert [one[:5] for one in told["nodes"]] == [
            ["/dev/a\x1b[31m\nb", "c", 1, 5, 0o644],
            ["/dev/a/b/in", "c", 1, 3, 0o644],
            ["/dev/dri/card0", "b", 240, 1, 0o644],
            ["/dev/gpu0", "c", 240, 7, 0o640],
        ]
        assert told["left_out"] == 0

    def test_hostile_names_stand_in_a_bundle(self, tmp_path: Path) -> None:
        with with_own_dev("true") as pid:
            name = b"/proc/%d/root/dev/\xff\n\x1b]0;x\x07\xe2\x80\xae" % pid
            os.mknod(name, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            live = LiveHost()
            recording = Recording(live)
            question = json.dumps({"pids": [pid]})
            answer: Any = recording.ask("device_nodes", question)
            live.close()
        ((path, *_),) = answer["pids"][str(pid)]["nodes"]
        assert os.fsencode(path)[5:] == name.rpartition(b"/dev/")[2]
        with (tmp_path / "x.tar.gz").open("wb") as out:
            write_bundle(recording.rounds, {}, out)
        (host,) = open_bundle(str(tmp_path / "x.tar.gz")).rounds
        assert host.ask("device_nodes", question) == answer

    def test_char_links_are_told_as_text(self, tmp_path: Path) -> None:
        (tmp_path / "195:255").symlink_to("../nvidiactl")
        (tmp_path / "other").write_text("")
        assert nodes._char_links(str(tmp_path)) == [["195:255", "../nvidiactl"]]
        assert nodes._char_links(str(tmp_path / "gone")) == []

    def test_too_many_are_cut_and_counted(self) -> None:
        with with_own_dev("true") as pid:
            for number in range(4200):
                os.mknod(f"/proc/{pid}/root/dev/n{number}", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            told = asked(pid)["pids"][str(pid)]
        assert len(told["nodes"]) == nodes.NODES_MOST
        assert told["left_out"] == 4200 - nodes.NODES_MOST

    def test_a_dev_that_is_a_link_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "dev").symlink_to("/proc/1/root/dev")
        (tmp_path / "bin").mkdir()
        busybox = Path("/bin/busybox")
        if not busybox.exists():
            pytest.skip("apt-get install busybox-static")
        (tmp_path / "bin/busybox").write_bytes(busybox.read_bytes())
        (tmp_path / "bin/busybox").chmod(0o755)
        inside = subprocess.Popen(["chroot", str(tmp_path), "/bin/busybox", "sleep", "100"])
        try:
            until = time.monotonic() + 10
            while os.readlink(f"/proc/{inside.pid}/root") != str(tmp_path):
                assert time.monotonic() < until
                time.sleep(0.01)
            told = asked(inside.pid)["pids"][str(inside.pid)]
        finally:
            inside.kill()
            inside.wait()
        assert told == {"problem": ["malformed", "its /dev is a link"]}

    def test_a_silent_file_server_costs_only_itself(self) -> None:
        """A real FUSE over /dev whose server never answers."""
        if why := no_fuse():
            pytest.skip(why)
        with with_silent_dev() as silent, with_own_dev("mknod /dev/gpu0 c 240 0") as other:
            began = time.monotonic()
            answer = asked(silent, other)
            assert time.monotonic() - began < 1.5
        assert answer["pids"][str(silent)]["problem"][0] == "no_answer"
        assert [one[0] for one in answer["pids"][str(other)]["nodes"]] == ["/dev/gpu0"]
        assert answer["host"]["nodes"]


# --- the workers --------------------------------------------------------------------------


def children() -> set[str]:
    own = os.getpid()
    return set(Path(f"/proc/{own}/task/{own}/children").read_text().split())


def answers_to(
    count: int, answer: Callable[[int], JSON], each: float = 10, all_of_them: float = 60
) -> list[JSON]:
    before = children()
    told = ask_apart(list(range(count)), answer, each_seconds=each, all_seconds=all_of_them)
    until = time.monotonic() + 10
    while children() - before:  # those that were slow to die
        assert time.monotonic() < until, "a worker stayed"
        apart._bury()
    return told


def test_hung_ones_cost_only_themselves() -> None:
    def answer(number: int) -> JSON:
        if number % 10 == 3:
            time.sleep(1000)
        return number * 2

    began = time.monotonic()
    told = answers_to(50, answer, each=2)
    assert time.monotonic() - began < 5 * 2, "one waited for another"
    for number, one in enumerate(told):
        if number % 10 == 3:
            assert isinstance(one, dict)
            assert one["problem"] == ["no_answer", "it held up whoever asked for more than 2 s"]
        else:
            assert one == number * 2


def test_a_late_answer_counts() -> None:
    def answer(number: int) -> JSON:
        time.sleep(0.7 if number == 0 else 0)
        return number

    assert answers_to(3, answer, each=2) == [0, 1, 2]


def test_all_end_with_the_time_for_all() -> None:
    began = time.monotonic()
    told = answers_to(100, lambda _: time.sleep(1000), each=0.3, all_of_them=0.4)
    assert time.monotonic() - began < 2
    whys = [one["problem"][0] for one in told if isinstance(one, dict)]  # type: ignore[index]
    assert len(whys) == 100
    assert whys[-1] == "not_reached"


def test_killed_workers_refusals_and_large_answers() -> None:
    def answer(number: int) -> JSON:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2:
            raise PermissionError(13, "no")
        return "x" * (apart._ANSWER_MOST + 1 if number == 3 else 200_000)

    first, killed, refused, large, last = answers_to(5, answer)
    assert first == last == "x" * 200_000
    assert killed == {"problem": ["no_answer", "whoever asked it was killed there"]}
    assert refused == {"problem": ["refused", "Permission denied"]}
    assert large == {"problem": ["too_big", "the answer is over a MiB"]}


def test_workers_hold_nothing_of_ours_and_die_with_their_parent(tmp_path: Path) -> None:
    note = tmp_path / "worker"
    program = f"""
import contextlib, os, time
from seawall.host.device_access.apart import ask_apart
def answer(_):
    held = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing
            held.append(os.readlink("/proc/self/fd/" + number))
    with open({str(note)!r}, "w") as file:
        print(os.getpid(), [one for one in held if one != "/dev/null"], file=file)
    time.sleep(1000)
ask_apart([1], answer, each_seconds=500, all_seconds=500)
"""
    paths = os.pathsep.join(filter(None, sys.path))
    parent = subprocess.Popen([sys.executable, "-c", program], env={"PYTHONPATH": paths})
    try:
        until = time.monotonic() + 20
        while not note.exists() or not note.read_text().endswith("\n"):
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        parent.kill()
        parent.wait()
    pid, held = note.read_text().split(None, 1)
    assert held.count("pipe:") == 1
    assert held.count(",") == 0
    until = time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}") and "Z" not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < until, "the worker outlived its parent"
        time.sleep(0.01)
