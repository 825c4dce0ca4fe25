"""The channel's watcher end: bounded datagrams, parts, and a guard that does not listen."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from seawall import guard_end
from seawall.guard import tick_facts, watcher_channel
from seawall.watcher import memory_requests
from seawall.watcher.guard_endpoint import GuardEndpoint, word

Pair = tuple[GuardEndpoint, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end = GuardEndpoint(ours.detach())
    theirs.setblocking(False)
    yield end, theirs
    end.close()
    theirs.close()


def heard(guard: socket.socket) -> list[dict[str, Any]]:
    found = []
    while True:
        try:
            data = guard.recv(1 << 20)
        except BlockingIOError:
            return found
        if not data:
            return found
        assert len(data) <= watcher_channel.DATAGRAM_MOST_BYTES
        found.append(json.loads(data))


def row(number: int, name: str = "shop/cart/worker") -> dict[str, Any]:
    uid = f"{number:032x}"
    return {
        "cgroup": f"/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{uid * 2}.scope",
        "inode": number, "name": name, "pod": uid, "class_rank": 1, "adj": 900,
        "request": 1 << 30, "role": "",
    }  # fmt: skip


def test_both_sides_mean_the_same() -> None:
    assert guard_end.DATAGRAM_MOST_BYTES == watcher_channel.DATAGRAM_MOST_BYTES
    ours = (
        memory_requests.BEST_EFFORT,
        memory_requests.BURSTABLE,
        memory_requests.GUARANTEED,
        memory_requests.SYSTEM,
    )
    assert ours == (
        tick_facts.BEST_EFFORT,
        tick_facts.BURSTABLE,
        tick_facts.GUARANTEED,
        tick_facts.SYSTEM,
    )


def test_250_pods_go_in_parts_and_all_arrive(pair: Pair) -> None:
    end, guard = pair
    rows = [row(number) for number in range(750)]
    assert end.tell_rows("groups", rows, gone=["/a"])
    messages = heard(guard)
    assert len(messages) > 1
    assert [m["part"] for m in messages] == list(range(len(messages)))
    assert {(m["t"], m["parts"], tuple(m["gone"])) for m in messages} == {
        ("groups", len(messages), ("/a",))
    }
    assert [r["inode"] for m in messages for r in m["rows"]] == list(range(750))


def test_a_few_rows_are_one_message(pair: Pair) -> None:
    end, guard = pair
    assert end.tell_rows("claims", [row(1)], seconds=1.5)
    assert heard(guard) == [{"t": "claims", "seconds": 1.5, "rows": [row(1)]}]


def test_absurd_rows_do_not_break_a_message(pair: Pair) -> None:
    end, guard = pair
    huge = row(2) | {"cgroup": "/" + "\x1b" * 40_000}
    assert end.tell_rows("groups", [row(1), huge, row(3)])
    assert [r["inode"] for m in heard(guard) for r in m["rows"]] == [1, 3]


def test_hostile_words_are_cut_and_fit_for_json(pair: Pair) -> None:
    end, guard = pair
    name = word("a\udcff\x1b[31m\n" + "x" * 9000)
    assert len(name) < 530
    assert end.tell_rows("groups", [row(1, name)])
    (message,) = heard(guard)
    assert message["rows"][0]["name"].startswith("a\\udcff\x1b[31m\nxxx")


def test_a_guard_that_does_not_read_never_holds_us(
    pair: tuple[GuardEndpoint, socket.socket],
) -> None:
    end, guard = pair
    rows = [row(number) for number in range(250)]
    began = time.monotonic()
    results = [end.tell_rows("claims", rows) for _ in range(300)]
    assert time.monotonic() - began < 20
    assert not results[-1]
    assert end.is_open
    heard(guard)
    assert end.tell("hello", pid=1)  # and goes on when it reads again


def test_what_the_guard_says_is_bounded_and_checked(
    pair: tuple[GuardEndpoint, socket.socket],
) -> None:
    end, guard = pair
    for data in (b'{"t":"pace","seconds":0.5}', b"[1]", b"no json", b"[" * 5000, b'{"t":"look"}'):
        guard.send(data)
    assert [m["t"] for m in end.messages()] == ["pace", "look"]
    for _ in range(100):
        guard.send(b"{}")
    assert len(list(end.messages())) == 64
    guard.close()
    assert len(list(end.messages())) == 36
    assert not end.is_open
    assert not end.tell("hello")
