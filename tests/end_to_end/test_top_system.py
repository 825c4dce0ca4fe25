# SPDX-License-Identifier: Apache-2.0
"""``seawall top`` in tmux, a terminal that others wrote, with a shell and load; its marks."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import missing, own_environment, room, within
from tests.end_to_end.innocents import why_no_rings
from tests.end_to_end.top_pty import SOURCE, TopRun
from tests.processor_speed import processor_stretch

pytestmark = pytest.mark.system
WORKLOADS = 250
MARK_SHARE = 0.0125
"""Of a core, at one screen a second, the first look of its child in it; 0.6 % later."""
MARK_FIRST_SECONDS = 0.2
"""Of processor until the node's line is there, a part of 0.5 s; with workloads twice of it."""
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def tmux() -> Iterator[str]:
    """The name of a server of its own, with one window of 80x24."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux: apt-get install tmux")
    name = f"seawall-{uuid.uuid4().hex[:12]}"
    command = ["tmux", "-L", name, "-f", "/dev/null"]
    subprocess.run([*command, "new-session", "-d", "-x80", "-y24", "bash", "--norc"], check=True)
    try:
        yield name
    finally:
        subprocess.run([*command, "kill-server"], check=False)


def press(server: str, *keys: str) -> None:
    subprocess.run(["tmux", "-L", server, "send-keys", *keys], check=True)


def shown(server: str, what: str, *, is_there: bool = True, seconds: float = 40.0) -> str:
    until = time.monotonic() + seconds
    while True:
        done = subprocess.run(
            ["tmux", "-L", server, "capture-pane", "-p"], capture_output=True, text=True, check=True
        )
        if (what in done.stdout) == is_there:
            return done.stdout
        assert time.monotonic() < until, done.stdout
        time.sleep(0.1)


def test_tmux_with_a_shell_and_load() -> None:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        with tmux() as server:
            verb = f"PYTHONPATH={shlex.quote(str(SOURCE))} {shlex.quote(sys.executable)} -m seawall"
            press(server, f"{verb} top", "Enter")
            text = shown(server, "of it held by")
            assert all(len(line) <= 80 for line in text.splitlines())
            assert "q quit" in text.splitlines()[-1]
            press(server, "C-z")
            text = shown(server, "Stopped")
            assert "WORKLOAD" not in text
            press(server, "echo still $((40 + 2))", "Enter")
            shown(server, "still 42")
            press(server, "fg", "Enter")
            shown(server, "WORKLOAD")
            subprocess.run(["tmux", "-L", server, "resize-window", "-x40", "-y10"], check=True)
            text = shown(server, "q quit")
            assert "CHARGE" in text
            press(server, "Enter")
            shown(server, "seawall why")
            press(server, "q")
            shown(server, "CHARGE")
            press(server, "C-c")
            text = shown(server, "still 42")
            press(server, "stty -a | tr ' ' '\\n' | grep -cx -e echo -e icanon", "Enter")
            shown(server, "\n2\n")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
@pytest.mark.skipif(why_no_rings() is not None, reason=why_no_rings() or "")
def test_what_a_guard_that_runs_is_certain_of(tmp_path: Path) -> None:
    """It observes, in a scope of its own; until top has looked itself, the guard's claims count."""
    held = 120 << 20
    with room(tmp_path) as own:
        own.write(mode="observe", tick_most_seconds=1)
        own.begin(tmp_path / "out")
        folder = "kubepods"
        name = f"{folder}/{'ab' * 32}"
        own.make(folder)
        own.make(name, 64 << 20)
        hog = own.start(name, "rings", str(held), "0", "stdin", own_network=True)
        time.sleep(5)
        print("go", file=hog.stdin, flush=True)
        assert within(
            40, lambda: any(row["outside_certain_bytes"] > held // 2 for row in own.page()["top"])
        ), own.page()["top"]
        command = [*own.enter, sys.executable, "-m", "seawall", "top"]
        done = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, check=False,
            env=own_environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        page = json.loads(done.stdout)
        assert page["guard"].startswith("observes only")
        (row,) = (row for row in page["workloads"] if row["cgroup"] == f"{own.scope}/{name}")
        assert held * 0.9 < row["uncounted_bytes"] < held * 1.2
        assert row["uncounted_source"] in ("guard", "own_look")
        assert row["danger"]["level"] == "critical"
        assert row["danger"]["sentence"].startswith("really 1")
        program = f"import os; os.execvp('nsenter', {command!r})"
        with TopRun(program=program) as top:
            top.wait_for(lambda: "by the guard" in top.screen.text and is_told(top), seconds=60)
            assert "guard      observes only" in top.screen.text
            top.wait_for("by a look of its own", seconds=60)
            assert is_told(top)
            top.press("q")
            assert top.end() == 0


def is_told(top: TopRun) -> bool:
    """That somebody holds more than his limit, outside of his charge."""
    return "really 1" in top.screen.text


@contextmanager
def many_workloads() -> Iterator[None]:
    """Containers of pods, of ours."""
    root = Path("/sys/fs/cgroup/memory")
    if not (root / "memory.usage_in_bytes").exists() or os.geteuid():
        pytest.skip("needs root and the memory controller of cgroup v1 at /sys/fs/cgroup/memory")
    made: list[Path] = []
    try:
        for top in (root / "kubepods", root / "kubepods/burstable"):
            if not top.exists():
                top.mkdir()
                made.append(top)
        for number in range(WORKLOADS):
            pod = root / f"kubepods/burstable/pod{number:08x}-0000-4000-8000-0000000005ea"
            for folder in (pod, pod / f"{number:04x}{uuid.uuid4().hex}{'0' * 28}"):
                folder.mkdir()
                made.append(folder)
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def processor_seconds(pid: int) -> float:
    """Of it and of the children that it has buried."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, words[11:15])) / TICKS


def test_marks_with_250_workloads() -> None:
    """For the first minute, its child in it; seconds of processor, on a machine that is shared."""
    stretch = processor_stretch()
    with many_workloads(), TopRun() as top:
        top.wait_for("left", seconds=60)
        first = processor_seconds(top.pid)
        top.wait_for("WORKLOAD", seconds=60)
        began, before, sent = time.monotonic(), processor_seconds(top.pid), top.sent
        assert first < MARK_FIRST_SECONDS * stretch
        assert before < 2 * MARK_FIRST_SECONDS * stretch
        counts = [line.split()[0] for line in top.screen.lines if " workloads" in line[:16]]
        assert int(counts[-1]) >= WORKLOADS
        while time.monotonic() < began + 60:
            top.read(0.2)
        assert "of it held by" in top.screen.text
        seconds = time.monotonic() - began
        share = (processor_seconds(top.pid) - before) / seconds
        status = Path(f"/proc/{top.pid}/status").read_text()
        resident = int(status.partition("VmHWM:")[2].split()[0])
        sent_a_second = (top.sent - sent) / seconds
        words = (
            f"first screen {first:.2f} s of processor, all of it {before:.2f} s; "
            f"{share:.2%} of a core, stretch {stretch:.2f}; {resident} KiB, {sent_a_second:.0f} B/s"
        )
        print(words)  # noqa: T201 - by -rP
        assert resident < 30_000
        assert sent_a_second < 1000
        assert share < MARK_SHARE * stretch, words
        top.press("q")
        assert top.end() == 0
