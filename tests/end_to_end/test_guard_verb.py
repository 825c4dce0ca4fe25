"""``seawall guard ...`` as a user types it: check, explain, status, undo, and its own help."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.warm_verbs import seawall

from seawall.cli.guard import VERBS
from seawall.cli.guard_status import exit_status, status
from seawall.guard import lock_file, own_place
from seawall.guard.launcher import own_mounts, settings_of
from seawall.problems import UsageProblem

RUN = (sys.executable, "-m", "seawall", "guard", "run")
SOURCES = Path(__file__).parents[2] / "src"


def guard(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    ran = seawall("guard", *words, **environ)
    return subprocess.CompletedProcess(words, ran.status, ran.text, ran.err.decode())


def valid(text: str, name: str) -> Any:
    page = json.loads(text)
    schema = json.loads((files("seawall.views") / f"schemas/{name}.json").read_text())
    jsonschema.validate(page, schema)
    return page


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "guard.toml"
    path.write_text('scope = ["/"]\nkills_per_minute = 2\n')
    path.chmod(0o600)
    return path


def test_alone_it_says_what_it_can() -> None:
    done = guard()
    assert done.returncode == 2
    for verb in ("run", "check", "explain", "status", "undo"):
        assert re.search(rf"^  {verb} ", done.stderr, re.MULTILINE)
        assert guard(verb, "--help").returncode == 0


def test_no_option_turns_killing_on() -> None:
    pages = [guard(verb, "--help").stdout for verb in ("run", "check", "explain", "undo")]
    options = {word for page in pages for word in re.findall(r"--[a-z-]+", page)}
    known = {"--help", "--config", "--json", "--whole", "--color", "--all", "--after-stop"}
    assert options <= known | {"--suggest-scope"}


@pytest.mark.parametrize("verb", VERBS)
def test_its_help_fits_80_columns(verb: str) -> None:
    lines = guard(verb, "--help", COLUMNS="80").stdout.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if len(line) > 80] == []


def test_check(config: Path) -> None:
    done = guard("check", str(config))
    assert (done.returncode, done.stdout) == (0, f"{config} is right; mode observe\n")
    done = guard("check", SEAWALL_CONFIG=str(config))
    assert done.stdout == f"{config} is right; mode observe\n"
    config.write_text('mode = "on"\n')
    done = guard("check", str(config))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f'seawall: {config}:1: mode: expected "observe" or "enforce", found "on"\n'
    )


def test_explain_on_this_machine(config: Path) -> None:
    done = guard("explain", "--config", str(config), "--json")
    assert done.returncode == 0, done.stderr
    page = valid(done.stdout, "guard-explain")
    meminfo = Path("/proc/meminfo").read_text()
    total = int(re.findall(r"^MemTotal: +(\d+)", meminfo, re.MULTILINE)[0]) * 1024
    hugetlb = re.findall(r"^Hugetlb: +(\d+)", meminfo, re.MULTILINE)
    assert page["total_bytes"] == total - int(hugetlb[0] if hugetlb else 0) * 1024
    assert page["floor_bytes"] == min(int(0.06 * page["total_bytes"]), 2 << 30)
    assert page["config"] == {"path": str(config), "is_default": False}
    assert page["settings"]["kills_per_minute"] == 2
    text = guard("explain", "--config", str(config)).stdout
    assert "mode     observe" in text
    assert f"config   {config}" in " ".join(text.split("\n"))
    assert "Could not see" in text


def test_a_file_that_is_wrong_is_wrong_for_every_verb(config: Path) -> None:
    config.write_text("watch = 1\n")
    expected = f"seawall: {config}:1: watch: expected true or false, found 1\n"
    for verb in ("explain", "run"):
        done = guard(verb, "--config", str(config))
        assert (done.returncode, done.stderr) == (2, expected)


def test_the_launcher_reads_by_a_child(config: Path) -> None:
    assert settings_of(str(config)).kills_per_minute == 2
    assert "tomllib" not in guard_modules()
    config.chmod(0o666)
    with pytest.raises(UsageProblem, match="others may write this file"):
        settings_of(str(config))


def guard_modules() -> str:
    """What the launcher itself has loaded when it execs the guard."""
    line = "import sys, seawall.guard.launcher; print(' '.join(sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", line], env={"PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


# --- status -------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], folder: Path) -> tuple[int, str]:
    return status(as_json=False, folder=str(folder)), capsys.readouterr().out


def test_status_without_a_guard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = f"{tmp_path}/none/status is not there or not ours to read"
    code, text = said(capsys, tmp_path / "none")
    assert (code, " ".join(text.split())) == (0, f"No guard runs on this machine; {nothing}.")
    assert all(len(line) <= 80 for line in text.splitlines() if " " in line.strip())
    (tmp_path / "status").write_text("seawall guard OBSERVE  \n   \n\n")
    os.utime(tmp_path / "status", (time.time() - 7205,) * 2)
    code, text = said(capsys, tmp_path)
    assert code == 0, "answered"
    assert text == (
        "No guard runs on this machine; the last one wrote this 2 h ago:\nseawall guard OBSERVE\n"
    )


def test_status_of_a_guard_that_writes_and_of_one_that_hangs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = lock_file.take(str(tmp_path))
    page = tmp_path / "status"
    page.write_text("seawall guard OBSERVE\n\x1b[2J\n")
    (tmp_path / "status.json").write_text('{"mode": "observe"}   \n')
    code, text = said(capsys, tmp_path)
    assert (code, text.splitlines()) == (
        0,
        [
            f"A guard runs (pid {os.getpid()}); written 0 s ago:",
            "seawall guard OBSERVE",
            "\\x1b[2J",
            "What its processes hold could not be seen: no guard is seen under this pid here.",
        ],
    )
    for path in (page, tmp_path / lock_file.NAME):
        os.utime(path, (time.time() - 300,) * 2)
    code, text = said(capsys, tmp_path)
    assert code == 0
    assert "but it has not written for 5 min: do not believe this:" in text
    assert status(as_json=True, folder=str(tmp_path)) == 0
    document = valid(capsys.readouterr().out, "guard-status")
    assert document["runs"] is True
    assert document["is_old"] is True
    assert document["pid"] == os.getpid()
    assert document["page"] == {"mode": "observe"}
    assert "memory" not in document
    assert "memory" in document["unread"]
    os.close(lock.fd)


def test_the_page_of_an_earlier_guard_is_not_taken_for_that_of_one_that_just_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "status").write_text("seawall guard ENFORCE\n")
    (tmp_path / "status.json").write_text('{"mode": "enforce", "can_kill": true}\n')
    os.utime(tmp_path / "status", (time.time() - 2,) * 2)
    lock = lock_file.take(str(tmp_path))
    assert lead(said(capsys, tmp_path)[1]) == (
        f"A guard runs (pid {os.getpid()}), but it has written nothing yet; "
        "one before it wrote this:"
    )
    assert status(as_json=True, fail_on="critical", folder=str(tmp_path)) == 11, "not known yet"
    assert valid(capsys.readouterr().out, "guard-status")["is_old"] is True
    os.utime(tmp_path / lock_file.NAME, (time.time() - 60,) * 2)
    os.utime(tmp_path / "status", (time.time() - 62,) * 2)
    assert status(as_json=False, fail_on="critical", folder=str(tmp_path)) == 10, "it hangs"
    os.close(lock.fd)


def lead(text: str) -> str:
    """What stands above the page."""
    words, _, _ = text.partition("seawall guard ")
    return " ".join(words.split())


def test_status_of_a_page_from_the_future(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It hangs, and the clock was set back by an hour since: nobody knows for how long."""
    lock = lock_file.take(str(tmp_path))
    page = tmp_path / "status"
    page.write_text("seawall guard ENFORCE\n")
    (tmp_path / "status.json").write_text('{"mode": "enforce", "can_kill": true}\n')
    os.utime(page, (time.time() + 3000,) * 2)
    told = "the clock was set back, so when this was written cannot be told:"
    assert lead(said(capsys, tmp_path)[1]) == f"A guard runs (pid {os.getpid()}); {told}"
    for fail_on in ("critical", "warning"):
        assert status(as_json=True, fail_on=fail_on, folder=str(tmp_path)) == 11
        document = valid(capsys.readouterr().out, "guard-status")
        assert (document["age_seconds"], document["is_old"]) == (None, True)
    os.close(lock.fd)
    assert status(as_json=False, fail_on="critical", folder=str(tmp_path)) == 10, "none runs"
    assert lead(capsys.readouterr().out) == f"No guard runs on this machine; {told}"
    lock = lock_file.take(str(tmp_path))
    os.utime(page, (time.time() + 1,) * 2)
    assert status(as_json=False, fail_on="critical", folder=str(tmp_path)) == 0, "clocks are slewed"
    os.close(lock.fd)


def test_status_says_the_same_as_json_without_a_guard() -> None:
    done = guard("status", "--json")
    page = valid(done.stdout, "guard-status")
    assert done.returncode == 0
    failed = guard("status", "--fail-on", "critical").returncode
    assert (failed == 10) == (page["runs"] is False or page["is_old"]), failed


@pytest.mark.parametrize(
    ("pid", "age", "page", "critical", "warning"),
    [
        (0, None, None, 10, 10),  # none runs
        (7, 31.0, {"mode": "observe", "can_kill": True}, 10, 10),  # it hangs
        (None, None, None, 11, 11),  # an ordinary user
        (7, 1.0, None, 11, 11),
        (7, None, {"mode": "enforce", "can_kill": True}, 11, 11),  # the clock was set back
        (7, 1.0, {"mode": "enforce", "can_kill": False}, 10, 10),
        (7, 1.0, {"mode": "observe", "can_kill": False}, 0, 0),
        (7, 1.0, {"mode": "enforce", "can_kill": True, "problems": []}, 0, 0),
        (7, 1.0, {"mode": "enforce", "can_kill": True, "problems": ["no textfile"]}, 0, 10),
        (7, 1.0, {"mode": "observe", "mode_why": "another guard holds the lock"}, 0, 10),
    ],
)
def test_what_a_script_is_told(
    pid: int | None, age: float | None, page: dict[str, Any] | None, critical: int, warning: int
) -> None:
    assert exit_status(pid, age, page, "critical") == critical
    assert exit_status(pid, age, page, "warning") == warning


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo make test-system")
def test_its_own_cgroup_is_found_from_a_cgroup_namespace_too() -> None:
    """A container reads ``/`` there, and would think itself the root of the machine."""
    here = own_place.own_cgroup(own_mounts())
    line = (
        "import os; from seawall.guard import own_place;"
        "from seawall.guard.launcher import own_mounts;"
        "own = lambda: own_place.own_cgroup(own_mounts());"
        "print(own()); own_place.enter_host_cgroups(os.getppid()); print(own());"
        "print(os.readlink('/proc/self/ns/cgroup'))"
    )
    if here == "/" or os.readlink("/proc/self/ns/cgroup") != "cgroup:[4026531835]":
        pytest.skip("this test is not in a cgroup of its own of the host's namespace")
    done = subprocess.run(
        ["unshare", "--cgroup", sys.executable, "-c", line], env={"PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [here, here, "cgroup:[4026531835]"]


# --- a whole one ------------------------------------------------------------------------------


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo make test-system")
def test_a_guard_starts_observes_reloads_and_ends(tmp_path: Path) -> None:
    """On this very machine, with a scope in which there is nothing, and mode observe."""
    if lock_file.holder():
        pytest.skip("a guard runs on this machine: systemctl stop seawall-guard")
    config = tmp_path / "guard.toml"
    config.write_text('scope = ["/seawall-TEST-nothing"]\nwatch = false\nblackbox = ""\n')
    config.chmod(0o600)
    process = subprocess.Popen(
        [*RUN, "--config", str(config)],
        env=os.environ | {"PYTHONPATH": str(SOURCES)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert within(20, lambda: guard("status", "--fail-on", "critical").returncode == 0)
        shown = guard("status").stdout
        assert shown.startswith(f"A guard runs (pid {process.pid}); written ")
        assert "seawall guard OBSERVE" in shown
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        assert command[1:3] == [b"-I", b"-S"], "it became that process, under the same pid"
        page = valid(guard("status", "--json").stdout, "guard-status")
        assert page["page"]["mode"] == "observe"
        assert page["page"]["pid"] == process.pid
        beside = subprocess.run(
            ["timeout", "-s", "TERM", "4", *RUN, "--config", str(config)],
            env=os.environ | {"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert f"another guard runs (pid {process.pid}): this one observes" in beside.stderr
        assert "OBSERVE" in Path(f"{lock_file.FOLDER}/second/status").read_text()
        config.write_text('scope = ["/seawall-TEST-other"]\nwatch = false\n')
        process.send_signal(signal.SIGHUP)
        assert within(20, lambda: "/seawall-TEST-other" in guard("status").stdout)
        config.write_text("watch = 7\n")
        process.send_signal(signal.SIGHUP)
        assert within(20, lambda: "watch: expected true or false, found 7" in told())
        assert "/seawall-TEST-other" in guard("status").stdout, "the old settings hold"
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(f"{lock_file.FOLDER}/second", ignore_errors=True)
    done = guard("status")
    assert done.returncode == 0
    assert done.stdout.startswith("No guard runs on this machine; the last one wrote this ")


def told() -> str:
    """What the guard wrote down of itself."""
    return Path(f"{lock_file.FOLDER}/decisions.jsonl").read_text(errors="replace")


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.2)
    return False


def test_why_says_it_first_from_another_root_too(tmp_path: Path) -> None:
    """As in a container that sees the host below a folder, or in a report."""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("5eed\n")
    (tmp_path / "run/seawall").mkdir(parents=True)
    page: dict[str, Any] = {
        **{key: [] for key in ("top", "blind", "problems", "others", "scope")},
        "schema": "seawall.guard-status-page/1",
        "host": {"boot_id": "5eed"}, "unix_seconds": 1000.0,
        "since_unix_seconds": 10.0, "pid": 7, "mode": "enforce", "mode_why": "", "state": "near",
        "can_kill": False, "can_kill_words": "no", "watcher": "", "config": "", "decisions": 0,
        "headroom_bytes": 1, "headroom_seconds": 2.0, "residual_bytes": None, "kills": 0,
        "residual_grown_bytes": 0, "returned_bytes": 0, "last_decision": None,
    }  # fmt: skip
    (tmp_path / "run/seawall/status.json").write_text(json.dumps(page) + " " * 100)
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "why", "--root", str(tmp_path), "--json"],
        env=os.environ | {"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = valid(done.stdout, "why")["guard"]
    assert (found["mode"], found["state"], found["can_kill"]) == ("enforce", "near", False)
    assert found["is_old"] is True
