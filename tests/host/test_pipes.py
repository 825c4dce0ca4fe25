"""Data in pipes, asked of real processes, and what is not to be had."""

import fcntl
import os
import subprocess
import sys
import time

import pytest

from seawall.host import pipes
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.slow_probes import SLOW_PROBES

PAGE = os.sysconf("SC_PAGE_SIZE")
TRACING = pytest.mark.skipif(
    not pipes._may_trace(), reason="needs CAP_SYS_PTRACE: sudo make test-system"
)


def pages_now() -> int:
    answer = pipes.data_in_pipes(PAGE)
    assert isinstance(answer, dict)
    pages = answer["pages"]
    assert isinstance(pages, int)
    return pages


@TRACING
@pytest.mark.system
def test_data_counts_once_whoever_holds_the_pipe() -> None:
    """100 pages and a byte are 101 pages, though two processes hold both ends."""
    before = pages_now()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 128 * PAGE)
    held = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stdin=reader, pass_fds=[writer]
    )
    try:
        os.write(writer, b"x" * (100 * PAGE + 1))
        assert abs(pages_now() - before - 101) <= 20
        read_back = os.read(reader, PAGE)
        assert read_back
    finally:
        held.kill()
        held.wait()
        os.close(reader)
        os.close(writer)


@TRACING
@pytest.mark.system
def test_asking_takes_nothing_out_and_leaves_no_descriptor() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"hello")
    before = len(os.listdir("/proc/self/fd"))
    pages_now()
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.read(reader, 100) == b"hello"
    os.close(writer)
    assert os.read(reader, 1) == b"", "no end stayed open"
    os.close(reader)


@TRACING
@pytest.mark.system
def test_live_host_asks_in_a_child_and_in_time() -> None:
    host = LiveHost()
    began = time.monotonic()
    answer = host.ask("pipes")
    host.close()
    assert isinstance(answer, dict)
    assert set(answer) == {"pipes", "pages", "processes_left_out"}
    assert time.monotonic() - began < SLOW_PROBES["pipes"].deadline_seconds + 0.5


def test_without_the_capability_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_may_trace", lambda: False)
    host = LiveHost()
    answer = host.ask("pipes")
    host.close()
    assert isinstance(answer, Unread)
    assert answer.why == "refused"


def test_a_tree_of_files_has_no_pipes(tmp_path: object) -> None:
    host = LiveHost(str(tmp_path))
    answer = host.ask("pipes")
    host.close()
    assert isinstance(answer, Unread)
    assert answer.why == "absent"
