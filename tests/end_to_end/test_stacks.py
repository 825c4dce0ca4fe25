"""`seawall stacks` against situations that are made for it: who hangs is shown where it hangs."""

import json
import os
import platform
import random
import shutil
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
from tests.end_to_end import cgroups, held_process
from tests.end_to_end.test_safety import needs_fuse, silent_files
from tests.end_to_end.verbs import ENVIRONMENT, SOURCES, run
from tests.end_to_end.warm_verbs import seawall
from tests.host.test_task_stacks_probe import CLONE, HELD
from tests.ready import ready

THRASH = Path(__file__).parents[1] / "kernels/guest/thrash.py"
FILE_BYTES, LIMIT_BYTES = 96 << 20, 24 << 20
WALKERS = 6
WANTED = ("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
STACK_REFUSED = "root on the host, or CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH"


def asked(*words: str) -> dict[str, Any]:
    return checked(seawall("stacks", "--json", *words).answered().document)


def checked(page: dict[str, Any]) -> dict[str, Any]:
    schema = json.loads((files("seawall.views") / "schemas/stacks.json").read_text())
    jsonschema.validate(page, schema)
    return page


def groups_of(page: dict[str, Any], pid: int) -> dict[str, dict[str, Any]]:
    """The groups that a process is in, by kind."""
    return {
        group["kind"]: group
        for group in page["groups"]
        if any(task["pid"] == pid for task in group["tasks"])
    }


@pytest.fixture
def held() -> Iterator[int]:
    """Blocked by its own child, under a name that would steer a terminal."""
    if platform.machine() not in CLONE:
        pytest.skip(f"the number of clone(2) on {platform.machine()} is not known here")
    with ready([sys.executable, "-c", HELD]) as process:
        yield process.pid


# --- for everybody ---------------------------------------------------------------------


def test_a_blocked_task_is_there_in_every_sample(held: int) -> None:
    page = asked("--for", "1.5", "--every", "0.3")
    assert 3 <= page["samples"] <= 5
    assert page["every_seconds"] == 0.3
    assert 0.8 <= page["window_seconds"] < 20
    found = groups_of(page, held)
    # Its place is told by its stack, else by its wait channel; to nobody, only that it is blocked.
    (kind, group), *others = found.items()
    assert not others
    assert kind in ("vfork", "unknown")
    (task,) = [one for one in group["tasks"] if one["pid"] == held]
    assert (task["observations"], task["state"]) == (page["samples"], "D")
    if task["still_seconds"] is not None:  # where the kernel counts turns
        assert task["still_seconds"] == pytest.approx(page["window_seconds"], abs=0.01)
    assert abs(sum(one["share"] for one in page["groups"]) - 1) < 0.001
    every_task = [one["pid"] for group in page["groups"] for one in group["tasks"]]
    assert os.getpid() not in every_task or page["threads"] > 1


def test_text_is_safe_and_says_what_it_could_not_see(held: int) -> None:
    text = seawall("stacks", "--for", "1", "--every", "0.5").answered().text
    assert text.startswith("memory: ")
    assert "\x1b" not in text
    assert f"a) D 1 (\\x1b[31m {held}" in " ".join(text.split())
    assert "Could not see" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("who", ["group", "parent"])
def test_an_interrupt_prints_what_was_gathered(held: int, who: str) -> None:
    """^C reaches the whole process group; kill -INT only the one process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seawall", "stacks", "--for", "300", "--every", "0.2", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True,
    )  # fmt: skip
    try:
        time.sleep(3)
        began = time.monotonic()
        (os.killpg if who == "group" else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert time.monotonic() - began < 30
    page = checked(json.loads(out))
    assert page["samples"] >= 2
    assert groups_of(page, held)


def test_a_bundle_holds_a_sample_for_each_pass(held: int, tmp_path: Path) -> None:
    bundle = str(tmp_path / "b.bundle")
    seawall("capture", "-o", bundle, "--for", "2").answered()
    page = asked("--from", bundle)
    assert (page["samples"], page["every_seconds"], page["sysrq"]) == (2, None, [])
    assert 1.5 < page["window_seconds"] < 60
    (group,) = groups_of(page, held).values()
    assert [one["observations"] for one in group["tasks"] if one["pid"] == held] == [2]
    raw = run(["tar", "xzOf", bundle, "1/answers.json"]).out
    assert b"[<" not in raw.partition(b'"task_stacks"')[2]


def test_a_tree_of_files_has_no_stacks_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    page = asked("--root", str(tmp_path))
    assert (page["samples"], page["groups"], page["window_seconds"]) == (0, [], None)
    (row,) = [row for row in page["could_not_see"] if row["what"] == "kernel stacks"]
    assert "hostPID" in row["provide"]
    text = seawall("stacks", "--root", str(tmp_path)).answered().text
    assert "No sample was taken." in text


@pytest.mark.parametrize(
    "words",
    [["--for", "0"], ["--for", "4000"], ["--every", "0.01"], ["--every", "x"], ["no/such/pod"]],
)
def test_unusable_words(words: list[str]) -> None:
    ran = seawall("stacks", *words, most_seconds=30)
    assert (ran.status, ran.out[:6]) in [(2, b""), (2, b"memory")]
    assert b"Traceback" not in ran.err


# --- real situations -------------------------------------------------------------------


def needs_stacks() -> None:
    if os.geteuid() or not os.path.exists("/proc/self/stack"):
        pytest.skip("kernel stacks need root, and a kernel with CONFIG_STACKTRACE")


@pytest.mark.system
def test_a_page_fault_that_never_ends_and_who_waits_behind_it(tmp_path: Path) -> None:
    needs_fuse()
    needs_stacks()
    with silent_files(tmp_path, "stuck") as mountpoint:
        process = subprocess.Popen(
            [sys.executable, held_process.__file__, str(mountpoint / "stuck")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout
        said = process.stdout.readline()
        time.sleep(1.5)
        try:
            page = asked("--for", "2", "--every", "0.4")
        finally:
            process.kill()
    process.communicate()  # it dies once its page fault has failed, with its server
    assert said == b"held\n"
    found = groups_of(page, process.pid)
    assert set(found) == {"page_fault_disk", "lock"}
    fault = found["page_fault_disk"]
    assert fault["samples"] == page["samples"]
    assert {"filemap_fault", "handle_mm_fault"} <= set(fault["frames"])
    stuck = [task for task in fault["tasks"] if task["pid"] == process.pid]
    assert all(task["still_seconds"] for task in stuck)
    lock = found["lock"]
    assert lock["name"] == "mmap_lock"
    # Others on this machine may wait for locks of their own meanwhile.
    waiting = {task["tid"] for task in lock["tasks"] if task["pid"] == process.pid}
    holding = {task["tid"] for task in lock["holders"] if task["pid"] == process.pid}
    assert waiting == {process.pid}
    assert holding == {task["tid"] for task in stuck}


@pytest.mark.system
def test_a_container_that_thrashes_at_its_limit(tmp_path: Path) -> None:
    needs_stacks()
    if why := cgroups.missing():
        pytest.skip(why)
    text = tmp_path / "text"
    text.write_bytes(random.Random(1).randbytes(FILE_BYTES))
    with text.open("rb") as file:
        os.fsync(file.fileno())
        # Else the pages would go on being charged to whoever wrote them.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    name = f"seawall-stacks-{os.getpid()}"
    with cgroups.cgroup(name, LIMIT_BYTES) as group:
        script = f'echo $$ > {group.entry}; exec "$0" {THRASH} walk {text} {WALKERS}'
        walker = subprocess.Popen(["sh", "-c", script, sys.executable], stderr=subprocess.DEVNULL)
        try:
            time.sleep(2)
            page = asked(f"/{name}", "--for", "3", "--every", "0.2")
        finally:
            walker.kill()
            walker.wait()
    assert page["workload"] == f"/{name}"
    tasks = [task for one in page["groups"] for task in one["tasks"]]
    assert {task["cgroup"] for task in tasks} == {f"/{name}"}
    shares = {one["kind"]: one["share"] for one in page["groups"]}
    print(shares)  # noqa: T201 - shown by -rP
    assert shares.get("page_fault_disk", 0) + shares.get("reclaim_cgroup", 0) > 0.4, shares
    assert "reclaim" not in shares, "the node is not short of memory"


@pytest.fixture(scope="module")
def ordinary() -> Iterator[list[str]]:
    """A python of an ordinary user who can read the sources; capabilities are to be added."""
    needs_stacks()
    python = "/usr/bin/python3.11"
    if not shutil.which("setpriv") or not os.path.exists(python):
        pytest.skip("another user needs: apt-get install util-linux python3.11")
    home = Path(f"/tmp/seawall-stacks-{os.getpid()}")
    shutil.copytree(SOURCES, home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    home.chmod(0o755)
    yield ["env", f"PYTHONPATH={home}/src", "PYTHONDONTWRITEBYTECODE=1", python, "-m", "seawall"]
    shutil.rmtree(home)


@pytest.mark.system
@pytest.mark.parametrize("kept", [WANTED, *(WANTED[:n] + WANTED[n + 1 :] for n in range(3)), ()])
def test_with_one_capability_less_it_says_what_would_help(
    ordinary: list[str], held: int, kept: tuple[str, ...]
) -> None:
    raised = ",".join(["-all", *(f"+{name.lower()}" for name in kept)])
    ran = run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
         f"--inh-caps={raised}", f"--ambient-caps={raised}", *ordinary,
         "stacks", "--for", "1", "--every", "0.5", "--json"]
    )  # fmt: skip
    page = checked(ran.answered().document)
    (kind,) = groups_of(page, held)
    told = [row["provide"] for row in page["could_not_see"]]
    if kept == WANTED:
        assert (kind, STACK_REFUSED in told) == ("vfork", False)
    else:
        # A wait channel is told to whom may trace the task, whatever else is refused.
        assert kind == ("vfork" if "SYS_PTRACE" in kept else "unknown")
        assert STACK_REFUSED in told


@pytest.mark.system
def test_sysrq_that_may_not_be_is_named() -> None:
    if os.path.exists("/proc/sysrq-trigger") and not os.geteuid():
        pytest.skip("sysrq works here, and would print into this machine's log: see tests/kernels")
    page = asked("--for", "0.5", "--sysrq")
    assert page["sysrq"] == []
    (row,) = [row for row in page["could_not_see"] if row["what"] == "where the CPUs are (sysrq)"]
    assert "/proc/sysrq-trigger" in row["why"]
    assert "root on the host" in row["provide"]
