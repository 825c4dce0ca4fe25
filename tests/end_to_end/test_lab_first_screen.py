"""The lab makes each incident for real below a pod's cgroup, and `why` says what it is on one
screen: the right rule, its severity, the lab's cgroup, first.  Nobody beside it is blamed: a
program that reads a file much larger than its own limit, and one that computes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import cgroups, innocents
from tests.end_to_end.first_screen import FirstScreen, first_screen
from tests.end_to_end.verbs import ENVIRONMENT, run, seawall
from tests.lab.running import cgroup_of, start, wait_for

pytestmark = pytest.mark.system
MIB = 1 << 20
POD = f"kubepods/burstable/pod{os.getpid():08x}-2222-4333-8444-555555555555"
READER = "kubepods/burstable/reader"
WORKER = "kubepods/burstable/worker"
COMPUTE = "x = 1\nwhile True: x = x * 48271 % 2147483647"
READ_AGAIN = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    while os.read(file, 1 << 16): pass
    os.lseek(file, 0, 0)
"""


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A pod's cgroup as the kubelet makes it, with both innocents at work beside it."""
    if why := cgroups.missing():
        pytest.skip(why)
    home = cgroups.memory_home()
    assert home
    big = tmp_path_factory.mktemp("reader") / "big"
    big.write_bytes(os.urandom(MIB) * 96)
    folders = [home / name for name in ("kubepods", "kubepods/burstable", POD)]
    if folders[0].exists():
        pytest.skip(f"{folders[0]} is there: this is a Kubernetes node")
    with contextlib.ExitStack() as stack:
        for folder in folders:
            folder.mkdir()
            stack.callback(cgroups.remove, folder)
            if (folder / "cgroup.subtree_control").exists():
                (folder / "cgroup.subtree_control").write_text("+memory")
        for name, words in ((READER, ["-c", READ_AGAIN, str(big)]), (WORKER, ["-c", COMPUTE])):
            group = stack.enter_context(cgroups.cgroup(name, 32 * MIB))
            process = subprocess.Popen(["nice", "-n", "19", sys.executable, *words])
            stack.callback(process.wait)
            stack.callback(process.kill)
            group.add(process.pid)
        yield f"/{POD}"
        seawall("lab", "clean")


def look(cgroup: str) -> FirstScreen:
    """Both forms of the answer, and what holds for each of them."""
    page = seawall("why", "--json").answered().document
    answer = run(["env", "COLUMNS=80", sys.executable, "-m", "seawall", "why", "--color", "never"])
    return first_screen(page, answer.answered().text, cgroup)


def look_at_kill(folder: Path) -> FirstScreen:
    """As ``look``; a look that fell between two kills, in either form, is taken again."""
    for _ in range(6):
        screen = look(folder.name)
        if "SW207" in screen.text and "SW207" in [row["id"] for row in screen.firing]:
            return screen
    pytest.fail(f"six looks fell between kills:\n{screen.text}")


@contextlib.contextmanager
def lab(*words: str) -> Iterator[Path]:
    """A run that goes on; its cgroup."""
    process = start(*words, "--for", "90")
    try:
        yield cgroup_of(process)
        assert process.poll() is None, "it ended before it was looked at"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_a_hog_that_comes_again_is_told_by_its_kills(pod: str) -> None:
    # Of 128 MiB it dies about once a second, far from the rate that is critical.
    words = ("hog", "--size", "256MiB", "--limit", "128MiB", "--respawn", "--parent", pod)
    with lab(*words) as folder:
        wait_for("the first kill", lambda: _kills(folder) > 0, 30)
        screen = look_at_kill(folder)
    severity = screen.of("SW207")["severity"]
    assert severity in ("critical", "warning"), "as often as the machine lets it die"
    screen.assert_stands_first("SW207", severity)
    assert "OOM-killed" in screen.first()
    assert "its limit of 128 MiB" in screen.first()


def test_a_swarm_is_told_by_its_kills(pod: str) -> None:
    words = ("swarm", "--processes", "300", "--each", "3MiB", "--respawn", "--parent", pod)
    with lab(*words) as folder:
        screen = look(folder.name)
    severity = screen.of("SW207")["severity"]
    assert severity in ("critical", "warning")
    screen.assert_stands_first("SW207", severity)
    assert "its limit of 64.0 MiB" in screen.first()


def test_a_thrash_is_told_and_never_called_harmless(pod: str, tmp_path: Path) -> None:
    words = ("--programs", "20", "--code", "6MiB", "--limit", "64MiB", "--folder", str(tmp_path))
    with lab("thrash", *words, "--parent", pod) as folder:
        stat = folder / "memory.stat"
        wait_for("the first turns", lambda: _major_faults(stat) > 3000, 30)
        screen = look(folder.name)
    screen.assert_stands_first("SW212", "critical")
    assert "of its time is lost" in screen.first()
    assert "not a leak" not in screen.text
    assert "nothing has to be done" not in screen.text
    assert not [r for r in screen.firing if r["id"] == "SW201" and folder.name in r["workload"]]


def test_a_fill_is_harmless_cache(pod: str, tmp_path: Path) -> None:
    words = ("--size", "256MiB", "--limit", "128MiB", "--folder", str(tmp_path))
    with lab("fill", *words, "--parent", pod) as folder:
        usage = cgroups.Cgroup(folder)
        wait_for("a full cgroup", lambda: usage.usage_bytes() > 120 * MIB)
        time.sleep(4)  # it has been written
        screen = look(folder.name)
    about = [row for row in screen.firing if folder.name in str(row["workload"])]
    assert [row["id"] for row in about] == ["SW201"]
    assert {row["severity"] for row in screen.firing} == {"info"}
    assert screen.first().startswith("INFO")
    assert "not a leak [SW201]" in screen.first()


def test_rings_in_a_network_of_their_own_are_over_the_limit(pod: str) -> None:
    if why := innocents.why_no_rings():
        pytest.skip(why)
    words = ("--size", "256MiB", "--limit", "128MiB", "--rate", "0")
    with lab("rings", *words, "--parent", pod) as folder:
        time.sleep(2)
        screen = look(folder.name)
    screen.assert_stands_first("SW211", "critical")
    assert "limit 128 MiB" in screen.first()
    assert "256 MiB is uncounted" in screen.first()


def test_rings_in_the_hosts_network_make_a_suspect_and_no_culprit(pod: str) -> None:
    """Others share that network, and a socket can be handed on: nothing proves whose they are."""
    if why := innocents.why_no_rings():
        pytest.skip(why)
    name = f"{POD}/host"
    with cgroups.cgroup(name, 128 * MIB) as group:
        program = Path(__file__).with_name("ring_holder.py")
        holder = subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=ENVIRONMENT, text=True,
        )  # fmt: skip
        assert holder.stdin
        assert holder.stdout
        group.add(holder.pid)
        holder.stdin.write(json.dumps(["ring", 0, [65536, 4096, 2048], None]) + "\n")
        holder.stdin.flush()
        assert int(holder.stdout.readline())
        screen = look("host")
        page = seawall("memory", "--json").answered().document
        holder.communicate()
    assert not [row for row in screen.firing if row["workload"] and "/host" in row["workload"]]
    assert f"/{name}" in {row["cgroup"] for row in page["suspects"]}
    assert f"/{name}" not in {claim["cgroup"] for claim in page["claims"]}


def _major_faults(stat: Path) -> int:
    rows = dict(line.split() for line in stat.read_text().splitlines())
    return int(rows.get("total_pgmajfault", rows["pgmajfault"]))


def _kills(folder: Path) -> int:
    """OOM kills that the cgroup counts: memory.oom_control of v1 (4.13), memory.events of v2."""
    events = folder / "memory.events"
    rows = events if events.exists() else folder / "memory.oom_control"
    return int(dict(line.split() for line in rows.read_text().splitlines())["oom_kill"])
