"""Which processes are the guard's, and that what cannot be read is no zero."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.readings.parser_samples import ROLLUP

from seawall.host.host import JSON, Host, Unread
from seawall.host.live import LiveHost
from seawall.readings.guard_processes import GuardProcesses, read_guard_processes
from seawall.views.guard_line import memory_words

FAMILY = {
    # pid: (comm, ppid)
    7: ("seawall-guard", 1),
    8: ("seawall-helper", 7),
    9: ("seawall-watcher", 7),
    12: ("seawall-reader", 9),
    10: ("seawall-record", 7),
    20: ("touch", 8),
    21: ("seawall-web", 1),
}


class Refusing:
    """A host that refuses what ``refused`` names."""

    def __init__(self, host: Host, refused: str) -> None:
        self._host, self._refused = host, refused

    def read(self, path: str, limit_bytes: int = 1 << 20) -> bytes | Unread:
        if path == self._refused:
            return Unread(path, "refused", "Permission denied")
        return self._host.read(path, limit_bytes)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        return self._host.read_each(paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return self._host.names(path)

    def link(self, path: str) -> str | Unread:
        return self._host.link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        return self._host.ask(probe, argument)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for pid, (comm, ppid) in FAMILY.items():
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        numbers = "7 7 0 -1 64 9 0 2 0 5 6 0 0 20 0 1 0 77 8192 12 18446"
        (folder / "stat").write_text(f"{pid} ({comm}) S {ppid} {numbers}\n")
        (folder / "smaps_rollup").write_bytes(ROLLUP)
    return tmp_path


def found(host: Host) -> GuardProcesses:
    answer = read_guard_processes(host, 7)
    assert isinstance(answer, GuardProcesses)
    return answer


def test_those_that_descend_from_it_under_our_names(tree: Path) -> None:
    held = found(LiveHost(str(tree)))
    names = [(one.name, one.pid) for one in held.processes]
    assert names == [("guard", 7), ("helper", 8), ("watcher", 9), ("record", 10), ("reader", 12)]
    assert held.pss_bytes == 5 * 1200 << 10
    words = memory_words(held)
    assert words.startswith("Its 5 processes hold 5.9 MiB together (PSS): guard 1.2 MiB, helper")
    assert "touch" not in words
    assert "web" not in words


def test_a_share_that_is_refused_is_no_zero(tree: Path) -> None:
    held = found(Refusing(LiveHost(str(tree)), "/proc/9/smaps_rollup"))
    assert isinstance(held.pss_bytes, Unread)
    words = memory_words(held)
    assert "could not be seen" in words
    assert "watcher not seen (Permission denied)" in words
    assert "together (PSS)" not in words


def test_no_guard_under_that_pid(tree: Path) -> None:
    for pid in (8, 20, 99):
        answer = read_guard_processes(LiveHost(str(tree)), pid)
        assert isinstance(answer, Unread)
        assert "could not be seen" in memory_words(answer)


def test_a_kernel_without_the_file(tree: Path) -> None:
    for pid in FAMILY:
        (tree / f"proc/{pid}/smaps_rollup").unlink()
    answer = read_guard_processes(LiveHost(str(tree)), 7)
    assert isinstance(answer, Unread)
    assert "4.14" in memory_words(answer)
