"""Metrics in Prometheus' text format, and who else guards this machine."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.guard.telling import HOSTILE, MIB, groups, node, verdict
from tests.guard.test_tell_teller import Heard

from seawall.guard.settings import Settings
from seawall.guard.tell.decision_tally import HOWS, DecisionTally
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.rivals import eviction_of, find
from seawall.guard.tell.teller import Teller
from seawall.guard.tell.textfile import METRICS, label, render, write
from seawall.guard.verdict import NOT_OPTED_IN, POLICY_IS_REPORT, TRIGGERS, Verdict

VALUES: dict[str, Any] = {
    "mode": "enforce", "can_kill": True, "config_taken": False, "headroom_bytes": 4096 * MIB,
    "residual_bytes": None,
    "residual_grown_bytes": 0,
    "decisions": [["node_short", "acted", 2], ["over_limit", 'a"\\\n', 1]],
    "kills": 2, "predicted_bytes": 5, "returned_bytes": 4, "reaction_seconds": 0.004,
    "last_tick_seconds": "0.003", "watcher_up": False, "own_major_faults": 0,
    "resident_bytes": 13 * MIB, "unix_seconds": 1_795_295_047.5,
    "workloads": [["shop/cart/worker", 600 * MIB], ['evil"} 1\n# TYPE x\\', 5 * MIB]],
}  # fmt: skip


def samples(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")


def test_values_stand_under_their_names() -> None:
    found = samples(render(VALUES))
    assert found['seawall_guard_mode{mode="enforce"}'] == "1"
    assert found['seawall_guard_mode{mode="observe"}'] == "0"
    assert found["seawall_guard_can_kill"] == "1"
    assert found["seawall_guard_config_taken"] == "0"
    assert found["seawall_guard_watcher_up"] == "0"
    assert found["seawall_guard_headroom_bytes"] == "4294967296"
    assert found["seawall_guard_last_tick_seconds"] == "0.003"
    assert found["seawall_guard_written_timestamp_seconds"] == "1795295047.5"
    key = 'seawall_guard_decisions_total{trigger="node_short",outcome="acted"}'
    assert found[key] == "2"
    assert "seawall_guard_residual_bytes" not in found  # not known is not zero


def test_labels_are_escaped_as_the_format_wants() -> None:
    assert label('a"\\\n\udcff') == 'a\\"\\\\\\n\\udcff'
    assert r'outcome="a\"\\\n"} 1' in render(VALUES)


def test_every_family_is_announced_once_before_its_samples() -> None:
    lines = render(VALUES).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert lines[number - 1].startswith(f"# HELP {name} ")
            assert lines[number + 1].startswith(name)
            assert (kind == "counter") == name.endswith("_total")
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) == len(METRICS) + 3 - 1


def test_workloads_have_a_series_each_whatever_they_are_called() -> None:
    found = samples(render(VALUES))
    name = "seawall_workload_uncounted_bytes"
    assert found[f'{name}{{workload="shop/cart/worker"}}'] == str(600 * MIB)
    assert found[f'{name}{{workload="evil\\"}} 1\\n# TYPE x\\\\"}}'] == str(5 * MIB)
    # Of two cgroups with one name: a series that stands twice spoils the whole scrape.
    twice = render({**VALUES, "workloads": [["a/b/c", 7], ["a/b/c", 5], ["a/b/d", 1]]})
    assert [line for line in twice.splitlines() if line.startswith(name)] == [
        f'{name}{{workload="a/b/c"}} 12', f'{name}{{workload="a/b/d"}} 1',
    ]  # fmt: skip
    assert name not in render({**VALUES, "workloads": []})


def test_the_guard_names_the_ten_that_hold_most(tmp_path: Path) -> None:
    aide, settings = Heard(), Settings(textfile="/x/seawall.prom")
    teller = Teller(settings, Paths(folder=str(tmp_path)), "5eed", aide)  # type: ignore[arg-type]
    teller.open()
    many = groups(30)
    many["/kubepods/w29"].name = HOSTILE
    teller.status(node(), many, "peace", {})
    (request,) = aide.asked("textfile")
    rows = request["values"]["workloads"]
    assert [count for _, count in rows] == [n * MIB for n in range(29, 19, -1)]
    assert all(name.isascii() and name.isprintable() for name, _ in rows)
    pairs = {(trigger, how): n for trigger, how, n in request["values"]["decisions"]}
    assert pairs == {(t, how): 0 for t in TRIGGERS for how in HOWS}, "from the first scrape on"
    teller.close()


def test_memory_that_could_not_be_read_is_no_zero(tmp_path: Path) -> None:
    aide, settings = Heard(), Settings(textfile="/x/seawall.prom")
    teller = Teller(settings, Paths(folder=str(tmp_path)), "5eed", aide)  # type: ignore[arg-type]
    teller.open()
    teller.status(node(total_bytes=0, headroom_bytes=0), groups(), "blind", {})
    (request,) = aide.asked("textfile")
    found = samples(render(request["values"]))
    assert not any("headroom" in name or "residual_grown" in name for name in found)
    assert "not known: the node's memory could not be read" in (tmp_path / "status").read_text()
    teller.close()


@pytest.mark.parametrize(
    ("refused", "how"),
    [(POLICY_IS_REPORT, "reported"), (NOT_OPTED_IN, "reported"), ("", "reported"),
     (f"{POLICY_IS_REPORT}, and protected: CNI", "reported"), ("protected: CNI", "refused")],
)  # fmt: skip
def test_a_report_is_no_refusal_and_steps_are_no_decisions(refused: str, how: str) -> None:
    tally = DecisionTally()
    report = Verdict("5eed0000-0001", 1.0, "over_limit", True, 5, 0.0, (), (), refused, "over")
    assert tally.verdict(report, "enforce") == how
    assert {pair: n for pair, n in tally.decisions.items() if n} == {("over_limit", how): 1}
    for _ in ("freeze", "kill"):
        acts = verdict()._replace(decision="5eed0000-0002")
        assert tally.verdict(acts, "enforce") == "acted"
    assert tally.decisions["node_short", "acted"] == 1
    assert tally.counts()["decisions"] == 2


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), "x", [], None])
def test_what_is_no_number_is_left_out(odd: Any) -> None:
    assert "headroom_bytes" not in render({**VALUES, "headroom_bytes": odd})


@pytest.mark.system
def test_promtool_takes_it() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install --no-install-recommends prometheus")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=render(VALUES), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "seawall.prom"
    path.write_text("old")
    with path.open() as held:
        assert write({"path": str(path), "values": VALUES}) == {"problem": ""}
        assert held.read() == "old"
    assert path.read_text() == render(VALUES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["seawall.prom"]


def test_what_a_killed_one_left_does_not_pile_up(tmp_path: Path) -> None:
    """And what another guard writes there now, and what is somebody's, stays."""
    path = tmp_path / "seawall.prom"
    dead = [tmp_path / f"seawall.prom.{pid}.part" for pid in (7, 4_000_000, os.getpid())]
    other = [tmp_path / name for name in ("seawall.prom.1", "seawall.prom.x.part", "a.prom.7.part")]
    for file in (*dead, *other):
        file.write_text("half")
        os.utime(file, (1, 1))
    living = tmp_path / "seawall.prom.8.part"
    living.write_text("half")
    link, folder = tmp_path / "seawall.prom.9.part", tmp_path / "seawall.prom.10.part"
    link.symlink_to(other[0])
    folder.mkdir()
    os.utime(link, (1, 1), follow_symlinks=False)
    os.utime(folder, (1, 1))
    assert write({"path": str(path), "values": VALUES}) == {"problem": ""}
    assert set(tmp_path.iterdir()) == {path, living, link, folder, *other}
    assert [file.read_text() for file in other] == ["half"] * 3


def test_a_writer_that_is_killed_leaves_what_the_next_ones_remove(tmp_path: Path) -> None:
    path = tmp_path / "seawall.prom"
    for _ in range(2):
        pid = os.fork()
        if not pid:
            os.rename = lambda *_: os._exit(9)  # type: ignore[assignment]
            write({"path": str(path), "values": VALUES})
            os._exit(0)
        os.waitpid(pid, 0)
    left = list(tmp_path.iterdir())
    assert len(left) == 2
    for file in left:
        os.utime(file, (time.time() - 61, time.time() - 61))
    assert write({"path": str(path), "values": VALUES}) == {"problem": ""}
    assert os.listdir(tmp_path) == ["seawall.prom"]


@pytest.mark.system
def test_a_folder_that_came_after_the_start_is_written_to(tmp_path: Path) -> None:
    """As the unit has it: all that was not there is read-only in its own view, and stays so."""
    if os.geteuid():
        pytest.skip("needs root: it makes a mount namespace")
    late, host = tmp_path / "late", f"/proc/{os.getpid()}/root"
    late.mkdir()
    script = (
        f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path} && "
        f"exec {sys.executable} -c 'from seawall.guard.tell.textfile import write;"
        f'asked = {{"path": "{late}/seawall.prom", "values": {{"mode": "observe"}}}};'
        f'print(write(asked, ("",)), write(asked, ("", "{host}")))\''
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    told = f"{{'problem': '{late}/seawall.prom: Read-only file system'}} {{'problem': ''}}\n"
    assert done.stdout == told, done.stderr
    assert 'mode="observe"} 1' in (late / "seawall.prom").read_text()
    assert os.listdir(late) == ["seawall.prom"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    problem = write({"path": f"{tmp_path}/none/x.prom", "values": VALUES})["problem"]
    assert problem == f"{tmp_path}/none/x.prom: No such file or directory"


# --- rivals ---


def process(
    proc: Path, pid: int, comm: str, *, pids: str = "{pid}", cgroup: str = "/system.slice/x",
    state: str = "S", cmdline: Sequence[str] = (), uids: Sequence[int] = (0, 0, 0, 0),
) -> None:  # fmt: skip
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    words = pids.format(pid=pid)
    owner = "\t".join(map(str, uids))
    (folder / "status").write_text(
        f"Name:\tx\nUid:\t{owner}\nNStgid:\t{words}\nNSpid:\t{words}\nNSsid:\t1\n"
    )
    (folder / "comm").write_bytes(os.fsencode(comm + "\n"))
    (folder / "stat").write_bytes(os.fsencode(f"{pid} ({comm}) {state} 1 1"))
    (folder / "cgroup").write_text(f"12:memory:{cgroup}\n0::{cgroup}\n")
    (folder / "cmdline").write_text("\0".join(cmdline))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 1, "systemd", cgroup="/init.scope")
    return tmp_path


SCOPE = ("/kubepods.slice",)


def test_guards_that_live_are_named(proc: Path) -> None:
    process(proc, 700, "earlyoom")
    process(proc, 99, "systemd-oomd")
    process(proc, 100, "bash")
    process(proc, 101, "oomd", state="Z")
    assert find(str(proc), SCOPE) == [
        "systemd-oomd (pid 99) kills on its own", "earlyoom (pid 700) kills on its own",
    ]  # fmt: skip


def test_a_container_that_calls_itself_so_is_not_believed(proc: Path) -> None:
    process(proc, 700, "earlyoom", pids="{pid}\t7", cgroup="/kubepods.slice/x")
    process(proc, 701, "nohang", cgroup="/kubepods.slice/host-pids")
    process(proc, 702, "kubelet", cgroup="/kubepods.slice/host-pids")
    assert find(str(proc), SCOPE) == ["nohang (pid 701, in a container) kills on its own"]


def test_a_scope_of_all_makes_nobody_a_container(proc: Path) -> None:
    process(proc, 701, "nohang")
    assert find(str(proc), ("/",)) == ["nohang (pid 701) kills on its own"]


YAML = """apiVersion: kubelet.config.k8s.io/v1beta1
evictionSoft:
  memory.available: "9Gi"
evictionHard:
  imagefs.available: 15%
  memory.available: "500Mi"
evictionMinimumReclaim:
  memory.available: "1Gi"
"""
JSON = '{"evictionSoft": {"memory.available": "9Gi"}, "evictionHard": {"memory.available":"5%"}}'


@pytest.mark.parametrize(
    ("arguments", "config", "below"),
    [
        (["kubelet"], "", "100Mi"),
        (["kubelet"], YAML, "500Mi"),
        (["kubelet"], JSON, "5%"),
        (["kubelet"], "evictionHard:\n  nodefs.available: 5%\nx:\n  memory.available: 1Gi\n", ""),
        (["kubelet", "--eviction-hard=nodefs.available<5%,memory.available<1Gi"], YAML, "1Gi"),
        (["kubelet", "--eviction-hard", "memory.available < 300Mi"], YAML, "300Mi"),
        (["kubelet", "--eviction-hard=nodefs.available<5%"], YAML, ""),
        (["kubelet", "--eviction-hard"], "", ""),
    ],
)
def test_the_kubelets_threshold(arguments: list[str], config: str, below: str) -> None:
    assert eviction_of(arguments, config) == below


def test_the_kubelets_file_is_read_where_it_says(proc: Path) -> None:
    process(proc, 800, "kubelet", cmdline=("kubelet", "--config=/etc/kubelet.yaml", "--v=2"))
    process(proc, 801, "k3s-server")
    (proc / "800/root/etc").mkdir(parents=True)
    (proc / "800/root/etc/kubelet.yaml").write_text(YAML)
    assert find(str(proc), SCOPE) == [
        "kubelet (pid 800) evicts below memory.available 500Mi",
        "k3s-server (pid 801) has a kubelet in it, whose eviction threshold is not to be seen",
    ]


SESSION = "/user.slice/user-1000.slice/session-3.scope"
SETUID = (1000, 0, 0, 0)


@pytest.mark.parametrize(
    ("uids", "cgroup"),
    [((1000,) * 4, SESSION), ((1000,) * 4, "/system.slice/cron.service"), ((0,) * 4, SESSION),
     (SETUID, "/system.slice/cron.service")],
)  # fmt: skip
def test_nothing_is_opened_that_a_user_names(
    proc: Path, monkeypatch: pytest.MonkeyPatch, uids: Sequence[int], cgroup: str
) -> None:
    cmdline = ("kubelet", "--config=/etc/kubelet.yaml")
    process(proc, 800, "kubelet", cmdline=cmdline, uids=uids, cgroup=cgroup)
    (proc / "800/root/etc").mkdir(parents=True)
    (proc / "800/root/etc/kubelet.yaml").write_text(YAML)
    opened = opens(monkeypatch)
    assert find(str(proc), SCOPE) == []
    assert not [path for path, _ in opened if "/root" in path or path.endswith("cmdline")]


def test_guards_are_no_sessions_but_roots(proc: Path) -> None:
    process(proc, 99, "systemd-oomd", uids=(995,) * 4, cgroup="/system.slice/systemd-oomd.service")
    process(proc, 100, "earlyoom", uids=(1000,) * 4, cgroup=SESSION)
    process(proc, 101, "nohang", cgroup=SESSION)
    assert find(str(proc), SCOPE) == [
        "systemd-oomd (pid 99) kills on its own", "nohang (pid 101) kills on its own",
    ]  # fmt: skip


UNSEEN = ["kubelet (pid 800) has an eviction threshold that is not to be seen"]


@pytest.mark.parametrize("kind", ["device", "pipe", "link", "folder", "empty", "huge", "none"])
def test_only_a_regular_file_is_opened(
    proc: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Opening a watchdog starts it."""
    process(proc, 800, "kubelet", cmdline=("kubelet", "--config", "/dev/watchdog"))
    path = proc / "800/root/dev/watchdog"
    path.parent.mkdir(parents=True)
    if kind == "device":
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("needs CAP_MKNOD: run as root")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        (proc / "x.yaml").write_text(YAML)
        path.symlink_to(proc / "x.yaml")
    elif kind == "folder":
        path.mkdir()
    elif kind != "none":
        path.write_text("" if kind == "empty" else YAML + "#" * (256 << 10))
    opened = opens(monkeypatch)
    assert find(str(proc), SCOPE) == UNSEEN
    (flags,) = [flags for name, flags in opened if name.endswith("watchdog")]
    assert flags & os.O_PATH
    assert flags & os.O_NOFOLLOW
    assert not [name for name, _ in opened if name.startswith("/proc/self/fd/")]


def test_a_flag_needs_no_file(proc: Path) -> None:
    cmdline = ("kubelet", "--config=/none", "--eviction-hard=memory.available<1Gi")
    process(proc, 800, "kubelet", cmdline=cmdline)
    assert find(str(proc), SCOPE) == ["kubelet (pid 800) evicts below memory.available 1Gi"]


def opens(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is opened from now on, and how."""
    opened: list[tuple[str, int]] = []
    real = os.open

    def noted(path: str, flags: int, **more: Any) -> int:
        opened.append((str(path), flags))
        return real(path, flags, **more)

    monkeypatch.setattr(os, "open", noted)
    return opened


def test_a_crowd_is_bounded_and_hostile_names_are_nobody(proc: Path) -> None:
    for pid in range(1000, 1020):
        process(proc, pid, "earlyoom")
    process(proc, 2000, "x\n\x1b) Z")
    assert len(find(str(proc), SCOPE)) == 8
    assert not re.search(r"[^ -~]", "".join(find(str(proc), SCOPE)))


def test_one_that_lives_here_is_named_whoever_asks(tmp_path: Path) -> None:
    """Also for root without CAP_SYS_PTRACE, who may not follow links in /proc."""
    if os.geteuid() and "/user.slice/" in Path("/proc/self/cgroup").read_text():
        pytest.skip("a guard in a user's session kills for that user only: run as root")
    program = tmp_path / "earlyoom"
    shutil.copy("/bin/sleep", program)
    child = subprocess.Popen([program, "30"])
    try:
        until = time.monotonic() + 5
        while not (found := find("/proc", ())) and time.monotonic() < until:
            time.sleep(0.01)
        assert f"earlyoom (pid {child.pid}) kills on its own" in found
    finally:
        child.kill()
        child.wait()


def test_this_very_machine_is_looked_at_within_a_moment() -> None:
    assert isinstance(find("/proc", ("/",)), list)
    assert HOSTILE not in find("/proc", (HOSTILE,))
