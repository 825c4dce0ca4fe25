"""Where processes in state D wait, as far as the kernel tells."""

import pytest
from tests.readings.kernel_files import case, this_machine

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings.process import Processes
from seawall.readings.process import read as read_processes
from seawall.readings.wchan import ASKED_MOST, WaitChannels, parse, read

STAT = "=== /proc/{0}/stat\n{0} (p) {1} 1 1 1 0 -1 64 1 0 1 0 1 6 0 0 20 0 1 0 1 1 2 18446\n"


def channels(text: str) -> WaitChannels:
    host = case(text)
    processes = read_processes(host)
    assert isinstance(processes, Processes)
    found = read(host, processes)
    assert not isinstance(found, Unread)
    return found


def test_only_state_d_is_asked() -> None:
    text = "".join(STAT.format(pid, state) for pid, state in ((1, "S"), (7, "D"), (8, "D")))
    text += "=== /proc/1/wchan\ndo_wait\n=== /proc/7/wchan\nfolio_wait_bit_common\n"
    found = channels(text + "=== /proc/8/wchan\n0\n")
    assert found.by_pid == {7: "folio_wait_bit_common"}
    assert (found.waiting, found.unread) == (2, ())


def test_refused_is_named_and_gone_is_not() -> None:
    text = STAT.format(1, "S") + STAT.format(7, "D") + STAT.format(8, "D")
    found = channels(text + "=== /proc/7/wchan !refused\n=== /proc/8/wchan !vanished\n")
    assert [(one.path, one.why) for one in found.unread] == [("/proc/7/wchan", "refused")]
    assert found.by_pid == {}


def test_a_thousand_are_counted_and_some_asked() -> None:
    text = "".join(STAT.format(pid, "D") + f"=== /proc/{pid}/wchan\nf\n" for pid in range(1, 1001))
    found = channels(text)
    assert (found.waiting, len(found.by_pid)) == (1000, ASKED_MOST)


@pytest.mark.parametrize("data", [b"two words", b"x" * 129])
def test_what_no_function_is_called(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_this_machine_answers() -> None:
    with this_machine() as host:
        processes = read_processes(host)
        assert isinstance(processes, Processes)
        assert not isinstance(read(host, processes), Unread)
