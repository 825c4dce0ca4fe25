# SPDX-License-Identifier: Apache-2.0
"""``seawall top`` on a real pseudo-terminal: its keys, its sizes, and that it gives back."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from tests.end_to_end.frozen_host import GIB, frozen_node
from tests.end_to_end.top_pty import SOURCE, TopRun

SCHEMAS = SOURCE / "seawall/views/schemas"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return frozen_node(tmp_path / "host")


def test_screen_of_frozen_host(host: Path) -> None:
    with TopRun("--root", str(host)) as top:
        top.wait_for("of it held by")
        lines = top.screen.lines
        assert lines[0] == (
            "node-17  Linux 6.1.0  8.0 GiB, 2.0 GiB left  memory stalls 25 %"
            + "22:13:20Z".rjust(17)
        )
        assert lines[2].startswith("stalls     memory 25 %  io 1 %")
        assert "OOM kills" not in lines[2]
        assert lines[1].startswith("headroom   not told by files that stand still")
        assert "4 workloads  !! unit:ssh.service: 1.0 MiB left of 21.0 MiB (+1)" in lines
        table = lines.index(next(line for line in lines if "WORKLOAD" in line))
        assert [" ".join(line.split()) for line in lines[table : table + 5]] == [
            "WORKLOAD CHARGEv LIMIT OF LIMIT GROWTH/S STALL KILLS",
            "container:1f1f1f1f1f1f 3.0G 4.0G ######.. 0% 2",
            "! unit:kubelet.service 300M max 32% 0",
            "!! unit:ssh.service 20M 21M ######## 0% 0",
            r"/system.sl..[31mvil\x0a.service 10M max 0% 0",
        ]  # fmt: skip
        assert lines[-1].startswith("q quit  Enter why  / filter")
        top.press("q")
        assert top.end() == 0
        assert top.screen.modes == {"7", "25"}
        assert top.mode() == top.before


def test_first_screen_has_the_node_alone_and_no_zero(host: Path) -> None:
    slow = (
        "import sys, time\n"
        "from seawall.sources.live_sampler import LiveSampler\n"
        "from seawall.cli.main import console\n"
        "sample = LiveSampler.sample\n"
        "LiveSampler.sample = lambda self: (time.sleep(2), sample(self))[1]\n"
        f"sys.argv = ['seawall', 'top', '--root', {str(host)!r}]\n"
        "console()\n"
    )
    with TopRun("--root", str(host), program=slow) as top:
        top.wait_for("2.0 GiB left")
        top.wait_for("q quit")
        text = top.screen.text
        assert "Workloads are being looked for." in text
        assert "uncounted  asked for" in text
        assert "0 workloads" not in text
        assert "WORKLOAD" not in text
        assert "No workload" not in text
        top.wait_for("4 workloads")
        top.press("q")
        assert top.end() == 0


def test_keys(host: Path) -> None:
    def first_row(top: TopRun) -> str:
        lines = top.screen.lines
        return next((lines[at + 1] for at, line in enumerate(lines) if "WORKLOAD" in line), "")

    with TopRun("--root", str(host)) as top:
        top.wait_for("kubelet")
        top.press("s")
        top.wait_for(lambda: "kubelet" in first_row(top) and "STALLv" in top.screen.text)
        top.press("k")
        top.wait_for(lambda: "container:" in first_row(top) and "KILLSv" in top.screen.text)
        top.press("n")
        top.wait_for(lambda: r"vil\x0a" in first_row(top) and "WORKLOADv" in top.screen.text)
        top.press("r")
        top.wait_for(lambda: "ssh" in first_row(top) and "WORKLOAD^" in top.screen.text)
        top.press("c")
        top.wait_for(lambda: "container:" in first_row(top) and "CHARGEv" in top.screen.text)
        top.press("/", "s", "s", "h")
        top.wait_for("1 of 4 workloads match")
        assert "kubelet" not in "\n".join(top.screen.lines[6:])
        top.press("\r")
        top.wait_for("filter 'ssh'")
        top.press("\x1b")
        top.wait_for(lambda: "kubelet" in "\n".join(top.screen.lines[6:]))
        top.press("\x1b[B", "\x1b[B")
        top.wait_for(lambda: any(line.startswith(">!") for line in top.screen.lines))
        top.press("p")
        top.wait_for("PAUSED")
        top.press(" ")
        top.wait_for(lambda: "PAUSED" not in top.screen.text)
        top.press("?")
        top.wait_for("UNCOUNTED  held by it")
        top.press("x")
        top.wait_for("kubelet")
        top.press(
            "u", "g", "\x0c", "\x1b[6~", "\x1b[5~", "\x1b[H", "\x1b[F", "\x1bOA", "\xff\x1b[99z"
        )
        top.wait_for("GROWTH/Sv")
        top.press("\x03")
        assert top.end() == 130
        assert top.mode() == top.before


def test_enter_is_why_of_that_workload(host: Path) -> None:
    with TopRun("--root", str(host)) as top:
        top.wait_for("kubelet")
        top.press("/", "k", "u", "b", "\r")
        top.wait_for("filter 'kub'")
        top.press("\r")
        top.wait_for("seawall why unit:kubelet.service")
        top.wait_for("300 MiB without a limit of its own", seconds=60)
        top.press("q")
        top.wait_for("1 of 4 workloads match")
        top.press("q")
        assert top.end() == 0


@pytest.mark.parametrize(
    ("columns", "rows"), [(40, 10), (20, 6), (10, 3), (1, 1), (200, 60), (81, 24)]
)
def test_every_size_is_drawn_without_a_line_too_long(host: Path, columns: int, rows: int) -> None:
    with TopRun("--root", str(host), "--interval", "0.2", columns=columns, rows=rows) as top:
        top.wait_for(lambda: bool(top.screen.text.strip()))
        time.sleep(0.5)
        top.press("?", "x", "\x1b[B", "/", "a", "\x1b")
        for _ in range(10):
            assert top.read(0.1)
        if columns >= 40:
            assert "container:1f1f" in top.screen.text
        top.press("q")
        assert top.end() == 0


def test_resize_is_followed(host: Path) -> None:
    with TopRun("--root", str(host)) as top:
        top.wait_for("kubelet")
        top.resize(120, 40)
        top.wait_for(lambda: top.screen.lines[-1].startswith("q quit"))
        assert len(top.screen.lines[0]) == 120
        top.resize(40, 10)
        top.wait_for(lambda: top.screen.lines[-1].startswith("q quit"))
        assert "container:1f1f" in top.screen.text


def test_stop_and_go_on(host: Path) -> None:
    with TopRun("--root", str(host)) as top:
        top.wait_for("kubelet")
        os.kill(top.pid, signal.SIGSTOP)
        assert os.waitpid(top.pid, os.WUNTRACED)[0] == top.pid
        top.screen.resize(80, 24)
        os.kill(top.pid, signal.SIGCONT)
        top.wait_for("kubelet")
        assert "1049" in top.screen.modes
        top.press("q")
        assert top.end() == 0
        assert top.mode() == top.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_give_the_terminal_back(host: Path, number: signal.Signals) -> None:
    with TopRun("--root", str(host)) as top:
        top.wait_for("kubelet")
        os.kill(top.pid, number)
        assert top.end() == 128 + number
        assert top.mode() == top.before
        assert "1049" not in top.screen.modes


def test_exception_gives_the_terminal_back_and_shows_its_traceback(host: Path) -> None:
    broken = (
        "import sys\n"
        "import seawall.cli.top as top\n"
        "from seawall.cli.main import console\n"
        "draw = top.TopView.draw\n"
        "def broken(self, terminal):\n"
        "    draw(self, terminal)\n"
        "    if b'PAUSED' in ''.join(i.text for i in terminal.lines).encode():\n"
        "        raise RuntimeError('as a test')\n"
        "top.TopView.draw = broken\n"
        f"sys.argv = ['seawall', 'top', '--root', {str(host)!r}]\n"
        "console()\n"
    )
    with TopRun("--root", str(host), program=broken) as top:
        top.wait_for("kubelet")
        top.press("p")
        assert top.end() == 70
        assert top.mode() == top.before
        assert "1049" not in top.screen.modes
        assert "RuntimeError: as a test" in top.screen.beside


def test_terminal_that_goes_away_ends_it(host: Path) -> None:
    with TopRun("--root", str(host), "--interval", "0.2") as top:
        top.wait_for("kubelet")
        os.close(top.fd)
        until = time.monotonic() + 10
        while not (ended := os.waitpid(top.pid, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(0.05)
        assert ended[0] == top.pid
        top.status = os.waitstatus_to_exitcode(ended[1])
        assert top.status == 128 + signal.SIGHUP


def test_no_colour(host: Path) -> None:
    for words, environment, has_colour in (
        ((), {}, True), ((), {"NO_COLOR": "1"}, False), (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ):  # fmt: skip
        with TopRun("--root", str(host), *words, **environment) as top:
            top.wait_for("kubelet")
            assert (b"\x1b[0;1;31m" in top.raw) == has_colour
            assert (b"m" in b"".join(top.raw.split(b"\x1b[")[1:2])) is False


def test_little_is_sent_where_little_changes(host: Path) -> None:
    with TopRun("--root", str(host), "--interval", "0.2") as top:
        top.wait_for("of it held by")
        for _ in range(10):
            top.read(0.2)
        before = top.sent
        until = time.monotonic() + 2
        while time.monotonic() < until:
            top.read(0.1)
        assert 0 < top.sent - before < 10 * 120


def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "seawall", "top", *words],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
    )  # fmt: skip


def test_without_a_terminal_it_says_what_to_use() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "seawall top --once" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    "words",
    [("--interval", "0"), ("--interval", "x"), ("--sort", "size"), ("--root", "/nowhere"),
     ("--root", "/etc/passwd")],
)  # fmt: skip
def test_mistakes_are_told_in_a_line_or_a_usage(words: tuple[str, ...]) -> None:
    done = run("--once", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_dumb_terminal_is_refused(host: Path) -> None:
    with TopRun("--root", str(host), TERM="dumb") as top:
        assert top.end() == 2
        assert "TERM" in top.screen.beside


def test_once(host: Path) -> None:
    done = run("--once", "--root", str(host), "--interval", "0.1")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "unit:kubelet.service" in done.stdout
    assert "container:1f1f1f1f1f1f" in done.stdout
    assert r"/system.slice/e\x1b[31mvil\x0a.service" in done.stdout
    assert "could not be seen" in done.stdout or "of it held by" in done.stdout


def test_document_of_frozen_host(host: Path) -> None:
    done = run("--json", "--root", str(host), "--interval", "0.1", "--sort", "kills")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "top.json").read_text()))
    assert document["headroom"]["left_bytes"] == 2 * GIB
    assert document["headroom"]["seconds_left"] is None
    # Of files that stand still nobody knows a rate, and zero would be one.
    assert document["headroom"]["unread"] == ["pace_bytes_per_second"]
    assert "oom_kills" in document["unread"]
    assert "oom_kills" not in document
    rows = document["workloads"]
    assert [row["name"] for row in rows][:1] == ["container:1f1f1f1f1f1f"]
    assert document["workloads_in_all"] == len(rows) == 4
    assert {row["name"]: row["danger"] and row["danger"]["level"] for row in rows} == {
        "container:1f1f1f1f1f1f": None, "unit:kubelet.service": "warning",
        "unit:ssh.service": "critical", "/system.slice/e\x1b[31mvil\n.service": None,
    }  # fmt: skip
    first = rows[0]
    assert (first["charge_bytes"], first["limit_bytes"]) == (3 * GIB, 4 * GIB)
    assert first["oom_kills"] == 2
    assert "growth_bytes_per_second" in first["unread"]
    assert document["uncounted"]["source"] == "own_look"
    assert first["uncounted_source"] == "own_look"
    assert document["could_not_see"]


def test_document_of_this_machine() -> None:
    done = run("--json", "--filter", "there is none of that name")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "top.json").read_text()))
    assert document["workloads"] == []
    assert document["headroom"]["left_bytes"] > 0
    assert "pace_bytes_per_second" in document["headroom"]
    assert document["window_seconds"] >= 2
    assert document["uncounted"]["source"] in ("own_look", "guard")


def test_link_out_of_the_root_is_refused(host: Path) -> None:
    (host / "proc/meminfo").unlink()
    (host / "proc/meminfo").symlink_to("/proc/meminfo")
    done = run("--once", "--root", str(host))
    assert done.returncode == 2
    assert "leads out of it" in done.stderr
