"""What the guard tells the recorder, over real sockets: whole, exact, and never waited for."""

import json
import math
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.guard.telling import groups as some_groups
from tests.guard.telling import node

from seawall.actions.orders import Order, Outcome, Target
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.policy_state_json import state_pieces
from seawall.guard.recorder_link import AGAIN_SECONDS, RecorderLink
from seawall.guard.rehearsal import record_on_paper
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group, Node, Outside
from seawall.recorder.guard_messages import GuardBye, GuardMessageReader, GuardStart, JournalLine
from seawall.replay.player import Player
from seawall.replay.policy_state_codec import state_document as read_back
from seawall.replay.tick import Tick

MIB = 1 << 20
BOOT = "5eed0000-0000-4000-8000-000000000000"
KILL = Order("5eed0000-0001", "kill", Target("/kubepods/w1", 7, "shop/w1"), "node_short", 5 * MIB)


class Pair:
    """The guard's end, and ours."""

    def __init__(self) -> None:
        end, self.ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        self.link = RecorderLink(end)
        self.heard = GuardMessageReader()
        self.judge = Judge(Settings(), BOOT)

    def hello(self, following: int = 1) -> None:
        self.ours.send(json.dumps({"t": "hello", "pid": 9, "next": following}).encode())
        self.hear()

    def hear(self, now: float = 1000.0) -> None:
        list(self.link.messages(now))
        if self.link.is_due(now):
            self.link.start(Settings(), self.judge.last_decision, state_pieces(self.judge), now)

    def tick(self, node: Node, groups: dict[str, Group], *outcomes: Outcome) -> None:
        self.judge.step(node, groups)
        for outcome in outcomes:
            self.judge.learn(outcome, node)
        self.judge.updates(node, groups)
        self.link.tick(node, groups, self.judge.state(), outcomes)

    def datagrams(self) -> Iterator[bytes]:
        while True:
            try:
                yield self.ours.recv(1 << 17)
            except BlockingIOError:
                return

    def said(self) -> list[Any]:
        found: list[Any] = []
        for datagram in self.datagrams():
            found += self.heard.take(datagram)
        return found + self.heard.flush()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.link.close()
    made.ours.close()


def fields(group: Group) -> dict[str, Any]:
    return {name: getattr(group, name) for name in Group.__slots__}


def test_a_tick_arrives_as_it_was_to_the_last_bit(pair: Pair) -> None:
    seen = some_groups(3)
    first, second, third = seen.values()
    first.charge_slope, first.outside_slope = math.pi * 1e7, -1 / 3
    first.limit_bytes, first.adj, first.processes, first.gives_back_bytes = None, -997, 0, 0
    second.progress_per_second, second.stall, second.adj = 0.1 + 0.2, 5e-324, None
    second.events_max, second.started_seconds = float("inf"), 1e300
    third.name, third.pod = 'shop/\u202e\udcff"', "uid"
    third.protected_by, third.hopeless_why = "its role", "stuck"
    third.outside = Outside(1, 2, 1 << 62, "packet rings, traced")
    looked = node(slope_bytes_per_second=-0.1, residual_bytes=None, claims_seconds=None,
                  stalls_per_second=1e-9, is_low=True)  # fmt: skip
    wanted = {path: fields(group) for path, group in seen.items()}
    pair.hello(41)
    before = time.time()
    pair.tick(looked, seen)
    start, tick = pair.said()
    assert isinstance(start, GuardStart)
    assert start.settings == Settings()
    assert (tick.number, tick.node, tick.state) == (41, looked, pair.judge.state())
    assert before <= tick.unix_seconds <= time.time()
    assert {path: fields(group) for path, group in tick.groups.items()} == wanted
    assert [type(value) for value in tick.node] == [type(value) for value in looked]
    assert pair.link.frame == 41


@pytest.mark.parametrize("late", [0.25, 5.0])
def test_a_tick_is_dated_as_its_look_not_as_what_was_done_after_it(pair: Pair, late: float) -> None:
    pair.hello()
    before = time.time()
    pair.tick(node(seconds=time.monotonic() - late), some_groups())
    tick = pair.said()[-1]
    assert before - late - 0.001 <= tick.unix_seconds <= time.time() - late + 0.001


def test_a_difference_is_as_good_as_the_whole_and_changes_nothing_that_was_handed_out(
    pair: Pair,
) -> None:
    seen = some_groups(40)
    pair.hello()
    told = []
    for number in range(12):
        if not seen:
            seen.update(some_groups(41))
        paths = list(seen)
        seen[paths[number]].charge_bytes += 4096
        seen[paths[20]].name = f"shop/{number // 3}"
        if number % 4 == 1:  # one goes, one comes, one is another under the same path
            del seen[paths[0]]
            seen[f"/new{number}"] = Group(f"/new{number}", number)
            seen[paths[5]] = Group(paths[5], 99 + number, "again")
        if number == 7:  # the same ones in another order
            last = seen.pop(paths[3])
            seen[paths[3]] = last
            seen[paths[3]] = Group(paths[3], 5)
        if number == 9:
            seen.clear()
        pair.tick(node(seconds=100.0 + number), seen)
        told.append({path: fields(group) for path, group in seen.items()})
    found = [tick for tick in pair.said() if isinstance(tick, Tick)]
    assert [tick.number for tick in found] == list(range(1, 13))
    for tick, wanted in zip(found, told, strict=True):
        assert list(tick.groups) == list(wanted)
        assert {path: fields(group) for path, group in tick.groups.items()} == wanted
    assert found[2].groups["/kubepods/w30"] is found[3].groups["/kubepods/w30"]
    assert pair.heard.dropped == pair.link.lost == 0


def test_outcomes_are_behind_their_tick_and_lines_keep_its_number(pair: Pair) -> None:
    pair.hello(7)
    outcomes = (Outcome(KILL, is_done=True, processes=3, seconds=0.25), Outcome(KILL, False, "x"))
    pair.tick(node(), some_groups(), *outcomes)
    pair.link.line(b'{"kind":"verdict"}\n')
    pair.link.line(b"%s\n" % (b"y" * 200_000))
    pair.tick(node(seconds=101.0), some_groups())
    pair.link.bye()
    _, tick, line, long_line, after, bye = pair.said()
    assert tick.outcomes == outcomes
    assert (line, after.outcomes, bye) == (JournalLine(7, '{"kind":"verdict"}'), (), GuardBye())
    assert long_line == JournalLine(7, "y" * 200_000)


def test_a_replay_is_exact_from_any_hello_on(pair: Pair) -> None:
    """Also where the judge is in the middle of something."""
    for number in range(4):
        pair.tick(scene(number), some_groups(6), *(() if number else (Outcome(KILL, True),)))
    pair.hello(1000)
    for number in range(4, 30):
        pair.tick(scene(number), some_groups(6 + number % 3))
    player: Player | None = None
    for told in pair.said():
        if isinstance(told, GuardStart):
            player = Player(told.settings, BOOT, "", told.last_decision)
            assert told.mind is not None
            player.recall(told.mind)
        elif isinstance(told, Tick):
            assert player is not None
            player.step(told)
    assert player is not None
    assert player.state_document() == read_back(pair.judge)
    assert json.loads("".join(state_pieces(pair.judge))) == read_back(pair.judge)


def test_a_claim_that_was_not_repeated_is_remembered_there_as_here(pair: Pair) -> None:
    """What one that is gone held outside is taken off the growth of who comes after it."""
    pair.hello()
    every, held = some_groups(6), Outside(400 * MIB, 500 * MIB, 525 * MIB, "packet rings")
    path = next(iter(every))
    for number in range(12):
        every[path].outside = held if number < 4 else NOTHING_OUTSIDE
        there = {at: group for at, group in every.items() if at != path or number < 8}
        pair.tick(node(seconds=100.0 + number, claims_seconds=0.2), there)
    start, *ticks = pair.said()
    player = Player(start.settings, BOOT, "", start.last_decision)
    player.recall(start.mind)
    for tick in ticks:
        player.step(tick)
    assert player.state_document() == read_back(pair.judge)
    assert pair.judge._mind.window.gone.most(112.0) == held.most_bytes


def scene(number: int) -> Node:
    left = max(0, 4096 - 200 * number) * MIB
    return node(seconds=100.0 + number / 4, headroom_bytes=left, free_bytes=left)


def test_who_does_not_listen_is_not_waited_for_and_is_told_everything_anew(pair: Pair) -> None:
    pair.hello()
    seen = some_groups(300)
    began, number = time.monotonic(), 0
    while not pair.link.lost and number < 2000:
        number += 1
        for group in seen.values():
            group.charge_bytes += 1
        pair.tick(node(seconds=1000.0), seen)
    for _ in range(50):
        pair.tick(node(seconds=1000.0), seen)
    assert time.monotonic() - began < 60
    lost = pair.link.lost
    assert lost == 51
    told = [tick.number for tick in pair.said() if isinstance(tick, Tick)]
    assert told == list(range(1, number))
    pair.tick(node(seconds=1000.0), seen)  # not before it was told everything
    assert pair.said() == []
    pair.hear(1000.0 + AGAIN_SECONDS + 1)
    pair.tick(node(seconds=1001.0), seen)
    start, tick = pair.said()
    assert start.mind is not None
    assert tick.number == pair.link.number == number + 52
    assert len(tick.groups) == 300
    assert not pair.heard.is_lost


def test_before_it_has_said_hello_nothing_has_a_number(pair: Pair) -> None:
    pair.tick(node(), some_groups())
    assert (pair.link.frame, pair.link.lost, pair.said()) == (None, 0, [])
    for wrong in (0, -1, 1.5, "2", None, True, 1 << 70):
        pair.ours.send(json.dumps({"t": "hello", "pid": 1, "next": wrong}).encode())
    pair.hear()
    assert pair.link.frame is None
    pair.hello(5)
    pair.tick(node(), some_groups())
    pair.hello(2)  # another box: numbers do not come twice
    pair.tick(node(), some_groups())
    assert [told.number for told in pair.said() if isinstance(told, Tick)] == [5, 6]


def test_figures_that_nobody_can_have_end_nothing(pair: Pair) -> None:
    seen = some_groups(2)
    pair.hello()
    next(iter(seen.values())).charge_bytes = 1 << 70
    pair.tick(node(seconds=1000.0), seen)
    assert pair.link.lost == 1
    next(iter(seen.values())).charge_bytes = 1
    pair.hear(1000.0 + AGAIN_SECONDS)
    pair.tick(node(seconds=1001.0), seen)
    assert [told.number for told in pair.said() if isinstance(told, Tick)] == [2]


def test_other_settings_are_told_between_ticks(pair: Pair) -> None:
    pair.hello()
    pair.tick(node(), some_groups())
    pair.link.change(Settings(mode="enforce"), "5eed0000-0004", 100.0)
    pair.tick(node(), some_groups())
    _, _, start, _ = pair.said()
    assert start == GuardStart(Settings(mode="enforce"), "5eed0000-0004", None)


def test_one_that_is_gone_is_noticed(pair: Pair) -> None:
    pair.hello()
    pair.ours.close()
    pair.tick(node(), some_groups())
    pair.link.line(b"x\n")
    assert not pair.link.is_there
    assert pair.link.lost >= 1


def test_a_tick_that_is_not_understood_does_not_take_the_one_before_it_along(pair: Pair) -> None:
    heard, seen = GuardMessageReader(), some_groups(2)
    pair.hello()
    pair.tick(node(), seen)
    pair.tick(node(seconds=101.0), seen)
    pair.tick(node(seconds=102.0), seen)
    *good, spoiled, difference = pair.datagrams()
    before = [told for one in good for told in heard.take(one)]
    assert heard.take(spoiled[:-3]) == heard.take(difference) == []
    assert [told.number for told in [*before, *heard.flush()] if isinstance(told, Tick)] == [1]
    assert heard.is_lost
    pair.hello(3)
    pair.tick(node(seconds=103.0), seen)
    found = [told for one in pair.datagrams() for told in heard.take(one)] + heard.flush()
    assert [told.number for told in found if isinstance(told, Tick)] == [4]
    assert not heard.is_lost


@pytest.mark.parametrize("seed", range(3))
def test_malformed_datagrams_are_counted_and_nothing_else(pair: Pair, seed: int) -> None:
    pair.hello()
    pair.tick(node(), some_groups(4))
    pair.link.line(b"{}\n")
    good = list(pair.datagrams())
    heard = GuardMessageReader()
    noise = os.urandom(4096)
    for number, datagram in enumerate(good * 200):
        spoiled = bytearray(datagram)
        for step in range(3):
            place = noise[(number * 7 + step + seed * 1000) % 4096]
            spoiled[place * 13 % len(spoiled)] ^= noise[(number + step) % 4096]
        heard.take(bytes(spoiled[: len(spoiled) - number % 3]))
    heard.flush()
    assert heard.dropped > 0
    again = GuardMessageReader()
    assert [type(told) for one in good for told in again.take(one)] == [
        GuardStart,
        Tick,
        JournalLine,
    ]


def test_the_rehearsal_tells_all_of_it() -> None:
    assert record_on_paper(Judge(Settings(), BOOT), node(), some_groups(), Settings()) == 0
