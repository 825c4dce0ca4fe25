"""Whether devices may be used, asked of a real kernel: allowed, denied, missing, misleading."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from errno import EINVAL, ELOOP, ENOENT, ENXIO, EPERM
from pathlib import Path
from typing import Any

import pytest
from tests.containers import node
from tests.containers.node import make_bundle, new_id, oci_config, remove_cgroups
from tests.host.as_nobody import as_nobody
from tests.host.own_dev import no_fuse, with_own_dev, with_silent_dev

from seawall.host.device_access.device_cgroup import Hierarchy, JoinError, device_hierarchy, join
from seawall.host.device_access.process_handle import ProcessHandle
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.task_stacks import ppid_and_mark

V1 = Path("/sys/fs/cgroup/devices")
MAJOR = 240  # "local or experimental use": no driver has it here
NAMES = {"/dev/gpu0": (MAJOR, 0), "/dev/gpu1": (MAJOR, 1), "/dev/old": (MAJOR + 1, 0),
         "/dev/ro": (MAJOR, 2), "/dev/closed": (MAJOR, 3),
         "/dev/capability": (MAJOR, 4)}  # fmt: skip
RULES = [(MAJOR, 0, "rw"), (MAJOR, 2, "r"), (MAJOR, 3, "rw"), (MAJOR, 4, "r")]
MODES = {"/dev/closed": 0, "/dev/capability": 0o444}


def asked(targets: list[list[object]], *, opens: bool = False) -> Any:
    host = LiveHost()
    try:
        question = json.dumps({"targets": targets, "opens": opens})
        answer = host.ask("device_access", question)
    finally:
        host.close()
    assert not isinstance(answer, Unread), answer
    return answer["targets"]  # type: ignore[call-overload,index]


def tried(pid: int, *paths: str, opens: bool = False) -> dict[str, list[Any]]:
    (told,) = asked([[pid, ProcessHandle(pid).start_ticks(), list(paths)]], opens=opens).values()
    assert told["problem"] is None
    return {one[0]: one[1:] for one in told["tried"]}


# --- as anybody, of oneself: the cgroup is one's own already ---------------------------------


def test_own_devices_as_anybody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, target in (
        ("loop", "loop"), ("gone", "/nowhere"), ("magic", f"/proc/{os.getpid()}/fd/0"),
        ("null", "/dev/null"),
    ):  # fmt: skip
        (tmp_path / name).symlink_to(target)
    at = str(tmp_path)
    names = (f"{at}/{name}" for name in ("pipe", "loop", "gone", "magic", "null"))
    found = tried(
        os.getpid(), "/dev/null", "/dev/\udcff\n", "relative", "/x\0y", *names, opens=True
    )
    null = [0, "c", 1, 3, 0o666, 0]
    assert found == {
        "/dev/null": null,
        "/dev/\udcff\n": [ENOENT, None, None, None, None, None],
        "relative": [EINVAL, None, None, None, None, None],
        "/x\0y": [EINVAL, None, None, None, None, None],
        f"{at}/pipe": [0, "other", None, None, 0o600, None],
        f"{at}/loop": [ELOOP, "other", None, None, None, None],
        f"{at}/gone": [ENOENT, "other", None, None, None, None],
        f"{at}/magic": [ELOOP, "other", None, None, None, None],
        f"{at}/null": null,
    }


def test_another_process_of_that_number_is_not_asked() -> None:
    ticks = ProcessHandle(os.getpid()).start_ticks()
    ended = subprocess.Popen(["true"])
    ended.wait()
    found = asked([[os.getpid(), ticks + 1, ["/dev/null"]], [ended.pid, 5, ["/dev/null"]]])
    for told in found.values():
        assert told["problem"][0] == "vanished"
        assert told["tried"] == []


def test_a_long_question_arrives_whole() -> None:
    """Longer than a path may be, and than a pipe."""
    paths = [f"/dev/{number:01000}" for number in range(200)]
    found = tried(os.getpid(), *paths)
    assert list(found) == paths
    host = LiveHost()
    answer = host.ask("device_access", " " * (2 << 20))
    host.close()
    assert isinstance(answer, Unread)
    assert answer.why == "failed"


# --- where device cgroups are ----------------------------------------------------------------

HYBRID = (
    b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    b"40 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
    b"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    b"36 31 0:33 /part /part rw - cgroup cgroup rw,devices\n"
    b"37 31 0:33 / /sys/fs/cgroup/dev\\040ices rw shared:7 - cgroup cgroup rw,devices\n"
)
CGROUPS = b"5:cpu,devices:/kubepods/x:y\n4:memory:/m\n0::/system.slice\n"


def test_version_1_decides_where_both_are_mounted() -> None:
    found = device_hierarchy(HYBRID)
    assert found == Hierarchy(1, "/sys/fs/cgroup/dev ices", "/")
    assert found.path_in(CGROUPS) == "/kubepods/x:y"
    assert found.folder_of("/kubepods/x:y") == "/sys/fs/cgroup/dev ices/kubepods/x:y"
    unified = device_hierarchy(HYBRID.replace(b"devices", b"freezer"))
    assert unified == Hierarchy(2, "/sys/fs/cgroup/unified", "/")
    assert unified.path_in(CGROUPS) == "/system.slice"
    assert device_hierarchy(b"garbage\n- -\n") is None


def test_a_cgroup_out_of_sight_is_refused() -> None:
    part = Hierarchy(1, "/part", "/part")
    assert part.folder_of("/part/a") == "/part/a"
    assert part.folder_of("/part") == "/part"
    for path in ("/partial", "/", "/part/../x"):
        with pytest.raises(JoinError, match="outside the cgroup namespace"):
            part.folder_of(path)
    with pytest.raises(JoinError, match="no device cgroup"):
        part.path_in(b"0::/\n")


# --- real containers -------------------------------------------------------------------------


def missing() -> str | None:
    if os.geteuid():
        return "containers need root: sudo make test-system"
    if shutil.which("runc") is None:
        return "runc is missing: apt-get install runc"
    return None if V1.is_dir() else "no device cgroup of version 1 here"


def own_forks() -> set[str]:
    """Living processes that were forked from this one: a fork's stack begins where ours does."""
    own = ppid_and_mark(os.getpid())[1]
    return {
        name for name in os.listdir("/proc") if name.isdecimal()
        and ppid_and_mark(int(name))[1] == own
    }  # fmt: skip


def config_of(cgroup: str) -> dict[str, Any]:
    config = oci_config(cgroup, 64 << 20)
    config["process"]["args"] = ["/bin/busybox", "sleep", "1000"]
    config["linux"]["devices"] = [
        {"path": path, "type": "c", "major": major, "minor": minor,
         "fileMode": MODES.get(path, 0o666), "uid": 0, "gid": 0}
        for path, (major, minor) in NAMES.items()
    ]  # fmt: skip
    config["linux"]["resources"]["devices"] = [{"allow": False, "access": "rwm"}] + [
        {"allow": True, "type": "c", "major": major, "minor": minor, "access": access}
        for major, minor, access in RULES
    ]
    return config


@contextlib.contextmanager
def runc_container(folder: Path) -> Iterator[tuple[int, str]]:
    """(pid, cgroup) of a container with its devices and its rules."""
    key = new_id()
    cgroup = f"/seawall-access-{os.getpid()}/{key}"
    root = ["runc", "--root", str(folder / "runc")]
    bundle = make_bundle(folder / "bundle", config_of(cgroup))
    try:
        log = folder / "said"  # the container keeps it, so it must not be a pipe
        with log.open("wb") as said:
            ran = subprocess.run(
                [*root, "run", "-d", "-b", str(bundle), key],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False,
            )  # fmt: skip
        assert ran.returncode == 0, log.read_text()
        state = subprocess.run([*root, "state", key], capture_output=True, check=True).stdout
        yield json.loads(state)["pid"], cgroup
    finally:
        subprocess.run([*root, "delete", "-f", key], capture_output=True, check=False)
        remove_cgroups(cgroup)


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    if why := node.missing("runc"):
        pytest.skip(why)
    with runc_container(tmp_path_factory.mktemp("access")) as made:
        yield made


@pytest.mark.system
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
class TestContainers:
    def test_each_refusal_has_its_own_errno(self, container: tuple[int, str]) -> None:
        found = tried(container[0], *NAMES, "/dev/null", "/dev/nvidia-uvm")
        assert found == {
            "/dev/gpu0": [0, "c", MAJOR, 0, 0o666, None],
            "/dev/gpu1": [EPERM, "c", MAJOR, 1, 0o666, None],
            "/dev/old": [EPERM, "c", MAJOR + 1, 0, 0o666, None],
            "/dev/ro": [EPERM, "c", MAJOR, 2, 0o666, None],
            # As root EACCES is never seen: whoever asks tells it from the mode.
            "/dev/closed": [0, "c", MAJOR, 3, 0, None],
            # Nobody may write it, so it is asked for reading alone, as its library opens it.
            "/dev/capability": [0, "c", MAJOR, 4, 0o444, None],
            "/dev/null": [0, "c", 1, 3, 0o666, None],
            "/dev/nvidia-uvm": [ENOENT, None, None, None, None, None],
        }

    def test_open_asks_the_driver_that_is_not_there(self, container: tuple[int, str]) -> None:
        found = tried(container[0], "/dev/gpu0", "/dev/gpu1", "/dev/null", opens=True)
        assert [one[0] for one in found.values()] == [0, EPERM, 0]
        assert [one[-1] for one in found.values()] == [ENXIO, EPERM, 0]

    def test_a_rule_that_changes_is_seen_at_once(self, container: tuple[int, str]) -> None:
        pid, cgroup = container
        assert tried(pid, "/dev/gpu1")["/dev/gpu1"][0] == EPERM
        folder = Path(f"{V1}{cgroup}")
        (folder / "devices.allow").write_text(f"c {MAJOR}:1 rw")
        assert tried(pid, "/dev/gpu1")["/dev/gpu1"][0] == 0
        (folder / "devices.deny").write_text(f"c {MAJOR}:1 rw")
        assert tried(pid, "/dev/gpu1")["/dev/gpu1"][0] == EPERM

    def test_what_a_container_plants_leads_nowhere(self, container: tuple[int, str]) -> None:
        pid, _ = container
        dev = f"/proc/{pid}/root/dev"
        os.mkfifo(f"{dev}/pipe", 0o600)
        links = {
            "host": "/dev/loop0", "up": "../../../../../dev/loop0", "ring": "ring",
            "root": "/proc/1/root/dev/null", "good": "/dev/gpu0", "own": "/proc/self/fd/0",
        }  # fmt: skip
        for name, target in links.items():
            os.symlink(target, f"{dev}/{name}")
        names = [f"/dev/{name}" for name in ("pipe", *links)]
        found = tried(pid, *names, "/dev/../dev/gpu0", opens=True)
        assert found.pop("/dev/pipe") == [0, "other", None, None, 0o600, None]
        good = [0, "c", MAJOR, 0, 0o666, ENXIO]
        assert found.pop("/dev/good") == found.pop("/dev/../dev/gpu0") == good
        assert {name: row[1:] for name, row in found.items()} == {
            f"/dev/{name}": ["other", None, None, None, None]
            for name in ("host", "up", "ring", "root", "own")
        }
        codes = {name: row[0] for name, row in found.items()}
        assert codes["/dev/host"] == codes["/dev/up"] == ENOENT
        assert codes["/dev/ring"] == codes["/dev/root"] == ELOOP

    def test_nobody_stays_and_nothing_changes(self, container: tuple[int, str]) -> None:
        pid, cgroup = container

        def state() -> tuple[str, ...]:
            own = [Path(f"/proc/{pid}/{name}").read_text() for name in ("mountinfo", "cgroup")]
            procs = [Path(f"{V1}{cgroup}/{name}").read_text() for name in ("tasks", "devices.list")]
            links = [os.readlink(f"/proc/{pid}/{name}") for name in ("root", "ns/mnt", "ns/pid")]
            return (*own, *procs, *links, " ".join(sorted(os.listdir(f"/proc/{pid}/root/dev"))))

        before = state()
        assert before[2].split() == [str(pid)]
        forks = own_forks()
        tried(pid, *NAMES, opens=True)
        assert state() == before
        until = time.monotonic() + 5
        while own_forks() - forks:
            assert time.monotonic() < until, "a worker stayed"
            time.sleep(0.01)

    def test_a_frozen_container_answers_too(self, container: tuple[int, str]) -> None:
        """Version 1 freezes by another hierarchy than that of devices."""
        pid, cgroup = container
        frozen = Path(f"/sys/fs/cgroup/freezer{cgroup}/freezer.state")
        if not frozen.exists():
            pytest.skip("no freezer of version 1: mount -t cgroup -o freezer freezer /mnt")
        frozen.write_text("FROZEN")
        try:
            assert tried(pid, "/dev/gpu0")["/dev/gpu0"][0] == 0
        finally:
            frozen.write_text("THAWED")


@pytest.mark.system
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_silent_file_server_costs_only_itself() -> None:
    """The /dev of one is a real FUSE that never answers."""
    if why := no_fuse():
        pytest.skip(why)
    forks = own_forks()
    with with_silent_dev() as silent, with_own_dev("mknod /dev/gpu0 c 240 0") as other:
        began = time.monotonic()
        pids = (silent, other)
        targets = [[pid, ProcessHandle(pid).start_ticks(), ["/dev/gpu0"]] for pid in pids]
        found = asked([list[object](one) for one in targets])
        assert time.monotonic() - began < 1.5
    assert found[str(silent)]["problem"][0] == "no_answer"
    assert found[str(other)]["tried"] == [["/dev/gpu0", 0, "c", MAJOR, 0, 0o644, None]]
    until = time.monotonic() + 5
    while own_forks() - forks:
        assert time.monotonic() < until, "a worker stayed"
        time.sleep(0.01)


@pytest.mark.system
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_one_hundred_targets_with_eight_devices_each() -> None:
    """Each in a cgroup of its own, in which one of the devices is denied."""
    home = V1 / f"seawall-hundred-{os.getpid()}"
    home.mkdir()
    sleepers = []
    try:
        for number in range(100):
            sleepers.append(subprocess.Popen(["sleep", "100"]))
            folder = home / str(number)
            folder.mkdir()
            (folder / "devices.deny").write_text("c 1:5 rwm")
            (folder / "tasks").write_text(str(sleepers[-1].pid))
        names = ("null", "zero", "full", "random", "urandom", "tty", "gone", "ptmx")
        paths: list[object] = [f"/dev/{name}" for name in names]
        targets: list[list[object]] = [
            [one.pid, ProcessHandle(one.pid).start_ticks(), paths] for one in sleepers
        ]
        began = time.monotonic()
        found = asked(targets)
        assert time.monotonic() - began < 1.2
        for told in found.values():
            assert [one[1] for one in told["tried"]] == [0, EPERM, 0, 0, 0, 0, ENOENT, 0]
        for number, one in enumerate(sleepers):
            assert (home / str(number) / "tasks").read_text().split() == [str(one.pid)]
    finally:
        for one in sleepers:
            one.kill()
            one.wait()
        remove_cgroups(*(f"/{home.name}/{number}" for number in range(100)))
    assert not home.exists()


@pytest.mark.system
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_without_the_right_to_join_it_says_so() -> None:
    """An ordinary user, and a process that is in another cgroup than he."""
    home = V1 / f"seawall-other-{os.getpid()}"
    home.mkdir()
    sleeper = subprocess.Popen(["sleep", "100"])
    try:
        (home / "tasks").write_text(str(sleeper.pid))
        with open("/proc/self/mountinfo", "rb") as file:
            hierarchy = device_hierarchy(file.read())
        assert hierarchy
        cgroups = Path(f"/proc/{sleeper.pid}/cgroup").read_bytes()
        told = as_nobody(lambda: str(join(hierarchy, cgroups)))  # type: ignore[func-returns-value]
    finally:
        sleeper.kill()
        sleeper.wait()
        remove_cgroups(f"/{home.name}")
    assert told == "JoinError: its cgroup may not be joined: needs root"
