"""An answer about sockets' queues may come from a bundle, so from anybody."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import JSON, Unread
from seawall.readings.socket_queues import QueueRow, SocketQueues, read
from seawall.readings.sockstat import Sockstat

MUCH = Sockstat(0, 1 << 20, 4096)
WHOLE: dict[str, Any] = {
    "rows": [[[["4:memory:/a"]], [7, 8], "udp", 2, 100, 3]],
    "rest": [["tcp", 1, 5, 6]],
    "namespaces_left_out": 1, "tables_cut": 2, "processes_left_out": 3, "holders_left_out": 4,
    "crowds": [["/many", 5, 6]],
}  # fmt: skip


class Answering:
    """A host that answers one probe."""

    def __init__(self, answer: JSON | Unread) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        assert probe == "socket_queues"
        self.asked.append(argument)
        return self.answer


def told(answer: JSON | Unread, sockstat: Sockstat = MUCH) -> SocketQueues | Unread:
    return read(Answering(answer), sockstat)  # type: ignore[arg-type]


def test_rows_and_what_was_left_out() -> None:
    found = told(WHOLE)
    assert isinstance(found, SocketQueues)
    assert found.rows == (
        QueueRow((("4:memory:/a",),), (7, 8), "udp", 2, 100, 3), QueueRow((), (), "tcp", 1, 5, 6),
    )  # fmt: skip
    assert (found.namespaces_left_out, found.tables_cut) == (1, 2)
    assert (found.processes_left_out, found.holders_left_out) == (3, 4)
    assert found.crowds[0].cgroup == "/many"


@pytest.mark.parametrize(
    ("tcp_units", "udp_units", "asked"),
    [(0, 8191, []), (8192, 8191, ["tcp"]), (0, 8192, ["udp"]), (9000, 9000, ["tcp,udp"])],
)
def test_nobody_is_asked_where_there_is_little(
    tcp_units: int, udp_units: int, asked: list[str]
) -> None:
    host = Answering(WHOLE)
    read(host, Sockstat(tcp_units, udp_units, 4096))  # type: ignore[arg-type]
    assert host.asked == asked


def test_why_there_is_no_answer_stays() -> None:
    refusal = Unread("socket_queues", "no_answer", "too slow")
    assert told(refusal) == refusal


@pytest.mark.parametrize("key", WHOLE)
@given(value=st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=12,
))  # fmt: skip
def test_nothing_else_is_believed(key: str, value: Any) -> None:
    found = told({**WHOLE, key: value})
    assert isinstance(found, SocketQueues | Unread)
    if isinstance(found, Unread):
        assert found.why == "malformed"


@pytest.mark.parametrize("size", [-1, 1 << 60, 1.5, True, "9"])
def test_an_absurd_size_is_malformed(size: Any) -> None:
    found = told({**WHOLE, "rest": [["udp", 1, size, 0]]})
    assert isinstance(found, Unread)
