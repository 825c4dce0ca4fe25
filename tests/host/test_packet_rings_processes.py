"""A process that is another one by the time its cgroup is read: nobody's row tells of it."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seawall.host.packet_rings import processes
from seawall.host.packet_rings.namespaces import Namespaces, network_namespaces

ME, ELSEWHERE = os.getpid(), 4026599999


def seen(space: int | None = None, **more: int) -> Namespaces:
    """Our own process, in that namespace, as it was found before."""
    real = network_namespaces(time.monotonic() + 1)
    by_pid = {ME: real.own if space is None else space}
    began = more.get("began_ticks", real.began_ticks)
    return Namespaces(real.own, real.host, real.paths, by_pid, began_ticks=began)


def lived_in(spaces: Namespaces) -> list[object]:
    space = spaces.by_pid[ME]
    (row,) = processes.inhabitants({space}, spaces, time.monotonic() + 1)
    assert isinstance(row, list)
    return row


def own_lines() -> list[str]:
    return Path("/proc/self/cgroup").read_text().splitlines()


def test_an_inhabitant_with_what_it_can_do() -> None:
    spaces = seen()
    space, is_whole, cgroups, bounding = lived_in(spaces)
    assert (space, is_whole, cgroups) == (spaces.own, True, [own_lines()])
    status = Path("/proc/self/status").read_text()
    assert bounding == [int(status.partition("CapBnd:\t")[2].split()[0], 16)]


def test_who_lives_elsewhere_by_now_is_no_inhabitant() -> None:
    """The number of a process that lived there is an innocent's now."""
    assert lived_in(seen(ELSEWHERE))[1:] == [True, [], []]


def test_a_holder_that_began_after_we_looked_is_another_process() -> None:
    spaces = seen()
    assert processes.process_row(ME, spaces)[3] == spaces.own
    ours = int(Path("/proc/self/stat").read_text().rpartition(") ")[2].split()[19])
    with pytest.raises(ProcessLookupError):
        processes.process_row(ME, seen(began_ticks=ours))


def test_a_holder_that_went_elsewhere_tells_no_namespace() -> None:
    assert processes.process_row(ME, seen(ELSEWHERE))[3] is None


@pytest.mark.parametrize(
    "asked", [lambda: processes.process_row(ME, seen()), lambda: lived_in(seen())[2]]
)
def test_a_number_that_changes_hands_between_two_files(
    asked: Callable[[], list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another start when its cgroup has been read."""
    read, starts = processes.read, iter(range(10, 90))

    def changing(path: str) -> bytes:
        data = read(path)
        if not path.endswith("/stat"):
            return data
        head, _, tail = data.rpartition(b") ")
        words = tail.split()
        words[19] = b"%d" % next(starts)
        return head + b") " + b" ".join(words)

    monkeypatch.setattr(processes, "read", changing)
    try:
        assert asked() == []
    except ProcessLookupError:
        return
