"""Each reproducer for real, in a cgroup of its own on this very machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import cgroups
from tests.end_to_end.verbs import ENVIRONMENT, seawall
from tests.lab.running import cgroup_of, is_running, left, pids_in, start, wait_for

pytestmark = pytest.mark.system
MIB = 1 << 20
LIMIT = 64 * MIB
SCHEMA = json.loads((files("seawall.views.schemas") / "lab.json").read_text())


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """Nothing is left after a test, whatever it did."""
    if why := cgroups.missing():
        pytest.skip(why)
    yield
    seawall("lab", "clean")
    assert left() == []


@pytest.fixture
def canary() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a cgroup beside the lab's, which must live through all of it."""
    with cgroups.cgroup(f"seawall-canary-{os.getpid()}", LIMIT) as beside:
        code = "import time; held = bytearray(20 << 20); print('held', flush=True); time.sleep(900)"
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        beside.add(process.pid)
        yield process
        assert process.poll() is None, "the canary died"
        process.kill()
        process.communicate()


def lab(*words: str, expected: int = 0) -> dict[str, Any]:
    """The report of a run, which obeys the schema and left nothing."""
    ran = seawall("lab", *words, "--json")
    assert ran.status == expected, ran.err.decode()
    assert b"Traceback" not in ran.err
    page = ran.document
    jsonschema.validate(page, SCHEMA)
    if page["what"] == "run":
        assert page["removed"] is True
        assert page["left"] == []
        assert page["peak"]["bytes"] <= page["plan"]["limit_bytes"], "the limit did not hold"
        assert left() == []
    return page


# --- the four ----------------------------------------------------------------------------


def test_hog_is_killed_at_its_limit(canary: subprocess.Popen[bytes]) -> None:
    page = lab("hog", "--size", "128MiB", "--limit", "64MiB", "--for", "8")
    assert page["ended"] == "nobody_left"
    assert page["processes"] == {
        "started": 1, "killed": 1, "failed": 0, "replaced": 0, "survived": 0
    }  # fmt: skip
    assert page["last"]["oom_kills"] == 1
    assert page["limit_reached"]
    assert page["peak"]["bytes"] > LIMIT - MIB
    assert "seawall oom explain --live" in page["try"]


def test_hog_that_fits_lives() -> None:
    page = lab("hog", "--size", "40MiB", "--step", "16MiB", "--limit", "64MiB", "--for", "4")
    assert page["ended"] == "time"
    assert page["processes"]["survived"] == 1
    assert page["last"]["oom_kills"] == 0
    assert not page["limit_reached"]
    assert 40 * MIB <= page["peak"]["bytes"] < 46 * MIB
    first = next(m for m in page["moments"] if m["seconds"] > 0.3)
    # A step a second, and a look a second: the second one may be under way.
    assert first["done_bytes"] <= 32 * MIB, "the step was not waited for"


def test_hog_that_respawns_is_killed_again_and_again() -> None:
    page = lab("hog", "--size", "96MiB", "--limit", "64MiB", "--respawn", "--for", "3")
    fates = page["processes"]
    assert page["ended"] == "time"
    assert fates["killed"] >= 3
    assert fates["replaced"] >= fates["killed"] - 1
    assert abs(page["last"]["oom_kills"] - fates["killed"]) <= 1


def test_with_the_killer_off_it_hangs() -> None:
    if not cgroups.V1.joinpath("memory.oom_control").exists():
        pytest.skip("needs cgroup v1: boot with systemd.unified_cgroup_hierarchy=0")
    words = ("--size", "96MiB", "--limit", "64MiB", "--killer-off", "--for", "5")
    page = lab("hog", *words)
    assert page["hung_seconds"] >= 3
    assert page["processes"]["killed"] == 0
    assert page["processes"]["survived"] == 1
    assert page["last"]["waiting"] == 1


def test_swarm_is_killed_one_by_one(canary: subprocess.Popen[bytes]) -> None:
    words = ("--processes", "200", "--each", "4MiB", "--limit", "64MiB", "--uid", "65534")
    page = lab("swarm", *words, "--for", "4")
    fates = page["processes"]
    assert fates["started"] == 200
    assert fates["killed"] + fates["survived"] == 200
    # What is held at the end fits: the kernel killed until it did, or it hangs.
    assert fates["killed"] >= 10 or page["hung_seconds"]
    assert page["peak"]["bytes"] > LIMIT - 2 * MIB


def test_fill_is_cache_and_kills_nobody(tmp_path: Path) -> None:
    words = ("--size", "192MiB", "--limit", "64MiB", "--folder", str(tmp_path))
    page = lab("fill", *words, "--for", "4")
    last = page["last"]
    assert page["processes"]["survived"] == 1
    assert last["oom_kills"] == 0
    assert last["done_bytes"] == 192 * MIB
    assert last["file_bytes"] > 0.8 * LIMIT
    assert last["anon_bytes"] < 4 * MIB
    assert list(tmp_path.iterdir()) == []


def test_thrash_waits_for_the_disk(tmp_path: Path, canary: subprocess.Popen[bytes]) -> None:
    words = ("--programs", "20", "--code", "4MiB", "--limit", "48MiB", "--folder", str(tmp_path))
    page = lab("thrash", *words, "--iops", "1000", "--for", "7")
    assert page["processes"]["survived"] == 20
    assert page["last"]["oom_kills"] == 0
    assert page["limit_reached"]
    assert list(tmp_path.iterdir()) == []
    held = page["disk"]
    if held["iops"] is None:
        pytest.skip(f"the disk cannot be held slow here: {held['why_not']}")
    first = next(m for m in page["moments"] if m["turns"] or m["seconds"] > 3)
    faults = page["last"]["major_faults"] - first["major_faults"]
    seconds = page["last"]["seconds"] - first["seconds"]
    assert 300 < faults / seconds < 1300, "held to 1,000 reads a second"
    assert page["last"]["last_turn_seconds"] > 1, "1,024 pages at 1,000 a second"


# --- ends --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(number: signal.Signals) -> None:
    process = start("swarm", "--processes", "40", "--each", "1MiB", "--for", "60")
    inside = pids_in(cgroup_of(process))
    assert inside
    process.send_signal(number)
    out, err = process.communicate(timeout=15)
    assert process.returncode == 128 + number, err.decode()
    assert b"interrupted" in out
    assert b"all removed, checked" in out
    assert not any(map(is_running, inside))
    assert left() == []


def test_its_own_sigkill_takes_the_processes_along_and_clean_the_rest() -> None:
    process = start("swarm", "--processes", "60", "--each", "2MiB", "--uid", "65534", "--for", "60")
    folder = cgroup_of(process)
    wait_for("all of them", lambda: len(pids_in(folder)) >= 20)
    running = start("hog", "--size", "8MiB", "--limit", "16MiB", "--for", "60")
    inside = pids_in(folder)
    process.kill()
    process.communicate()
    wait_for("their death", lambda: not any(map(is_running, inside)))
    assert folder.exists()
    seen = lab("clean", "--dry-run")["leftovers"]
    assert str(folder) in [row["path"] for row in seen]
    assert folder.exists(), "only looked at"
    rows = lab("clean")["leftovers"]
    assert [row["path"] for row in rows] == [row["path"] for row in seen]
    assert all(row["removed"] for row in rows)
    assert not any(str(running.pid) in row["path"] for row in rows), "that one is alive"
    assert not folder.exists()
    assert pids_in(cgroup_of(running)), "a run that goes on was touched"
    running.send_signal(signal.SIGINT)
    running.communicate()


def test_the_next_run_removes_what_is_left() -> None:
    process = start("hog", "--size", "8MiB", "--limit", "16MiB", "--for", "60")
    folder = cgroup_of(process)
    process.kill()
    process.communicate()
    ran = seawall("lab", "hog", "--size", "8MiB", "--limit", "16MiB", "--for", "1").answered()
    assert "from runs that were killed:" in ran.text
    assert not folder.exists()


def test_whoever_closes_stdout_ends_it() -> None:
    line = f"{sys.executable} -m seawall lab hog --size 8MiB --limit 16MiB --for 30 | head -n 1"
    began = time.monotonic()
    subprocess.run(["sh", "-c", line], env=ENVIRONMENT, check=True, timeout=20, capture_output=True)
    assert time.monotonic() - began < 10
    assert left() == []


# --- before ------------------------------------------------------------------------------


def test_a_dry_run_does_nothing() -> None:
    page = lab("fill", "--size", "64MiB", "--limit", "32MiB", "--dry-run")
    assert page["what"] == "plan"
    assert any("33554432" in step for step in page["steps"])
    text = seawall("lab", "swarm", "--dry-run").answered().text
    assert "has done nothing" in text
    assert max(map(len, text.splitlines()), default=0) <= 100
    assert left() == []


def test_below_a_cgroup_that_is_too_small_it_refuses() -> None:
    with cgroups.cgroup(f"seawall-small-{os.getpid()}", LIMIT) as small:
        parent = f"/{small.path.name}"
        ran = seawall("lab", "hog", "--limit", "48MiB", "--parent", parent)
        assert ran.status == 2
        assert f"half of what the memory limit of {parent} leaves".encode() in ran.err
        page = lab("hog", "--size", "32MiB", "--limit", "16MiB", "--parent", parent, "--for", "5")
        assert page["cgroup"].startswith(f"{parent}/seawall-lab-")
        assert page["processes"]["killed"] == 1
    assert seawall("lab", "hog", "--parent", "/no/such").status == 2


def test_an_ordinary_user_is_told_what_would_help() -> None:
    code = "import os, sys; os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
    python = "/usr/bin/python3.11" if Path("/usr/bin/python3.11").exists() else sys.executable
    done = subprocess.run(
        [sys.executable, "-c", code, python, "-m", "seawall", "lab", "hog", "--limit", "16MiB"],
        env=ENVIRONMENT, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    if b"No module named" in done.stderr or b"Permission denied" in done.stderr:
        pytest.skip("the sources are not readable for user 65534: chmod o+rx")
    assert done.returncode == 2, done.stderr.decode()
    assert b"not writable for this user: run as root" in done.stderr


# --- what Seawall says of it --------------------------------------------------------------


def findings_about(name: str) -> list[dict[str, Any]]:
    page = seawall("why", "--json").answered().document
    firing = [f for f in page["findings"] if f["verdict"] == "fires"]
    blamed = [f["headline"] for f in firing if f["severity"] == "critical" and not f["workload"]]
    assert blamed == [], "the node is not short of anything"
    return [f for f in firing if f["workload"] and name in f["workload"]]


def test_why_and_pods_of_a_fill() -> None:
    process = start("fill", "--size", "160MiB", "--limit", "64MiB", "--for", "60")
    folder = cgroup_of(process)
    usage = cgroups.Cgroup(folder)
    wait_for("a full cgroup", lambda: usage.usage_bytes() > 0.95 * LIMIT)
    (row,) = [
        row for row in seawall("pods", "--json").answered().document["workloads"]
        if row["cgroup"].endswith(folder.name)
    ]  # fmt: skip
    assert row["limit_bytes"] == LIMIT
    assert row["charge_bytes"] > 0.95 * LIMIT
    found = findings_about(folder.name)
    assert [f["id"] for f in found] == ["SW201"], found
    assert found[0]["severity"] in ("info", "warning")
    process.send_signal(signal.SIGINT)
    process.communicate()


def test_why_of_a_hog_that_is_killed_again_and_again() -> None:
    process = start("hog", "--size", "96MiB", "--limit", "64MiB", "--respawn", "--for", "60")
    found = {f["id"]: f for f in findings_about(cgroup_of(process).name)}
    assert "SW207" in found, found
    assert "limit of 64.0 MiB" in found["SW207"]["headline"]
    process.send_signal(signal.SIGINT)
    process.communicate()
