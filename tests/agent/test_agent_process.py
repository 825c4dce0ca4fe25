"""The agent as a process: how it begins, what it may, how it ends, what it holds."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.api_server import Answers, api_server
from tests.agent.pages import Pages
from tests.cluster.control_plane import free_ports

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
SEAWALL = (sys.executable, "-m", "seawall", "agent")
RESIDENT_MOST_KIB = 20 << 10
CPU_MOST_MS = 50


class Process:
    def __init__(self, popen: "subprocess.Popen[str]", answers: Answers, pages: Pages) -> None:
        self.popen, self.answers, self.pages = popen, answers, pages

    def status(self) -> dict[str, str]:
        text = Path(f"/proc/{self.popen.pid}/status").read_text()
        return dict(line.partition(":\t")[::2] for line in text.splitlines())

    def cpu_ms(self) -> float:
        return int(Path(f"/proc/{self.popen.pid}/schedstat").read_text().split()[0]) / 1e6

    def wait_for(self, done: Any, seconds: float = 15) -> None:
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, self.answers.requests
            assert self.popen.poll() is None, self.answers.requests
            time.sleep(0.05)


@contextmanager
def agent(tmp_path: Path, *more: str, stderr: Any = subprocess.PIPE) -> Iterator[Process]:
    with api_server(tmp_path) as answers:
        (tmp_path / "token").write_text("token\n")
        pages = Pages(tmp_path / "run")
        pages.peace()
        popen = subprocess.Popen(
            [*SEAWALL, "--node-name", "node-7", "--server", f"https://127.0.0.1:{answers.port}",
             "--ca", answers.certificate, "--token-file", str(tmp_path / "token"),
             "--run-folder", str(pages.folder), "--blackbox", "", *more],
            stderr=stderr, stdout=subprocess.DEVNULL, text=True, env=environment(),
        )  # fmt: skip
        try:
            yield Process(popen, answers, pages)
        finally:
            popen.kill()
            popen.communicate()


def environment() -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    return {**{k: v for k, v in os.environ.items() if k != "NODE_NAME"}, "PYTHONPATH": source}


def test_it_begins_tells_and_ends_by_sigterm(tmp_path: Path) -> None:
    with agent(tmp_path) as process:
        process.wait_for(lambda: process.answers.of("node"))
        process.popen.send_signal(signal.SIGHUP)  # means nothing to it
        process.pages.short()
        process.wait_for(lambda: len(process.answers.writes()) >= 3)
        assert process.answers.writes()[0].headers["Authorization"] == "Bearer token"
        process.popen.terminate()
        assert process.popen.wait(5) == 0
        text = process.popen.stderr.read() if process.popen.stderr else ""
        assert "Traceback" not in text
        assert "seawall agent: node node-7" in text


def test_it_may_nothing_and_is_small(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with agent(tmp_path, "--listen", f"127.0.0.1:{port}") as process:
        process.wait_for(lambda: process.answers.of("node"))
        time.sleep(1.0)
        before, began = process.cpu_ms(), time.monotonic()
        for _ in range(3):
            time.sleep(4)
            process.pages.peace()
        a_minute = (process.cpu_ms() - before) * 60 / (time.monotonic() - began)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        process.pages.short()
        process.wait_for(lambda: len(process.answers.writes()) >= 3)
        status = process.status()
        resident = int(status["VmRSS"].split()[0])
        figures = f"agent: {resident / 1024:.1f} MiB resident, {a_minute:.0f} ms of CPU a minute"
        sys.stdout.write(f"{figures}\n")
        assert resident <= RESIDENT_MOST_KIB * 1.15  # the interpreter's pages are the machine's
        assert a_minute <= CPU_MOST_MS * 2  # a busy machine
        for kind in ("Eff", "Prm", "Inh", "Amb"):
            assert int(status[f"Cap{kind}"], 16) == 0
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert 'seawall_guard_state{state="peace"} 1' in text
        assert "seawall_node_headroom_bytes 4294967296" in text
        assert 'seawall_workload_uncounted_bytes{namespace="shop",pod="cart"' in text
        assert not process.answers.writes()[0].path.startswith("/metrics")


def test_metrics_leave_out_what_is_not_known(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with agent(tmp_path, "--listen", f"127.0.0.1:{port}") as process:
        (process.pages.folder / "status.json").unlink()
        process.wait_for(lambda: process.answers.of("node"))
        url = f"http://127.0.0.1:{port}"
        process.pages.write("blind", total_bytes=0, headroom_bytes=0, residual_bytes=None, top=[])
        time.sleep(1.5)
        with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        assert 'seawall_guard_state{state="blind"} 1' in text
        assert "seawall_node_headroom_bytes" not in text
        assert "seawall_node_uncounted_bytes" not in text
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{url}/other", timeout=5)


def test_a_full_disk_behind_its_log_is_nothing_to_stop_for(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full, agent(tmp_path, stderr=full) as process:
        process.wait_for(lambda: process.answers.of("node"))
        process.pages.short()
        process.wait_for(lambda: len(process.answers.writes()) >= 3)


def test_a_log_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    try:
        while True:
            os.write(writes, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writes, True)
    try:
        with agent(tmp_path, stderr=writes) as process:
            process.wait_for(lambda: process.answers.of("node"))
            process.pages.short()
            process.wait_for(lambda: len(process.answers.writes()) >= 3)
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize(
    ("words", "says"),
    [((), "which node is this?"),
     (("--node-name", "Node_7"), "no name of a node"),
     (("--node-name", "a/../b"), "no name of a node"),
     (("--node-name", "n"), "where is the API server?"),
     (("--node-name", "n", "--server", "http://h"), "expected https://"),
     (("--node-name", "n", "--server", "https://h:99999999"), "expected https://"),
     (("--node-name", "n", "--server", "https://h/x\r\ny"), "expected https://"),
     (("--node-name", "n", "--server", "https://h", "--ca", "/no/ca"), "--ca /no/ca"),
     (("--last-death", "--blackbox", "/no/box"), "/no/box"),
     (("--last-death", "--blackbox", "/etc/passwd"), "not a black box")],
)  # fmt: skip
def test_a_mistake_is_one_line(words: tuple[str, ...], says: str) -> None:
    done = subprocess.run([*SEAWALL, *words], capture_output=True, text=True, env=environment(),
                          check=False, timeout=30)  # fmt: skip
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    with api_server(tmp_path) as other, agent(
        tmp_path, "--listen", f"127.0.0.1:{other.port}"
    ) as process:  # fmt: skip
        assert process.popen.wait(15) == 2
        text = process.popen.stderr.read() if process.popen.stderr else ""
        assert "Address already in use; give another address" in text
