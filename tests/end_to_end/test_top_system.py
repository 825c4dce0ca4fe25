# SPDX-License-Identifier: Apache-2.0
"""``seawall top`` in tmux, a terminal that others wrote, with a shell and load; its marks."""

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
from tests.end_to_end.top_pty import SOURCE, TopRun

pytestmark = pytest.mark.system
WORKLOADS = 250
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
    with many_workloads(), TopRun() as top:
        top.wait_for("of it held by", seconds=60)
        counts = [line.split()[0] for line in top.screen.lines if " workloads" in line[:16]]
        assert int(counts[-1]) >= WORKLOADS
        until = time.monotonic() + 8  # what the children need is loaded then
        while time.monotonic() < until:
            top.read(0.2)
        began, before, sent = time.monotonic(), processor_seconds(top.pid), top.sent
        while time.monotonic() < began + 20:
            top.read(0.2)
        seconds = time.monotonic() - began
        share = (processor_seconds(top.pid) - before) / seconds
        status = Path(f"/proc/{top.pid}/status").read_text()
        resident = int(status.partition("VmHWM:")[2].split()[0])
        sent_a_second = (top.sent - sent) / seconds
        assert resident < 30_000
        assert sent_a_second < 1000
        assert share < 0.02, share  # the mark is 0.01 on a machine that does nothing else
        top.press("q")
        assert top.end() == 0
