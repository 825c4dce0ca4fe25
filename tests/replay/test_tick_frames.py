# SPDX-License-Identifier: Apache-2.0
"""Ticks on disk: exact, small, and nothing but a BundleProblem from what somebody else wrote."""

import json
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.films.scripts import random_film
from tests.replay.live_film import live

from seawall.actions.orders import Order, Outcome, Target
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group, Node, Outside
from seawall.problems import BundleProblem
from seawall.replay.group_rows import group_of, row_of
from seawall.replay.tick import Tick
from seawall.replay.tick_decoder import TickDecoder
from seawall.replay.tick_encoder import TickEncoder

MIB = 1 << 20
PODS = 250


def node(seconds: float) -> Node:
    return Node(
        seconds, 64 << 30, 3 << 30, 5 << 30, 1 << 29, 1 << 28, -(1 << 20), 1234567.891234,
        3 << 30, 1 << 30, 7654.321098, 100, False, False, 0.0, 0.0123456789, 0.001, 0, 0, 0, 1.25,
    )  # fmt: skip


def group(number: int) -> Group:
    folder = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{number:032x}.slice"
    path = f"{folder}/cri-containerd-{number:064x}.scope"
    made = Group(path, 5000 + number, f"shop/cart-{number}/worker")
    made.pod, made.charge_bytes, made.limit_bytes = f"{number:032x}", number * MIB, 512 * MIB
    made.started_seconds, made.adj, made.class_rank, made.processes = 12.5 + number, 900, 1, 4
    return made


def day(ticks: int, pods: int = PODS) -> list[Tick]:
    """Half of them change their charge in each tick."""
    chance = random.Random(1)
    groups = {made.path: made for made in (group(number) for number in range(pods))}
    made = []
    for number in range(1, ticks + 1):
        groups = dict(groups)
        for path in chance.sample(list(groups), pods // 2):
            changed = group_of(row_of(groups[path]))
            changed.charge_bytes = max(0, changed.charge_bytes + 4096 * chance.randint(-500, 500))
            changed.charge_slope = chance.uniform(-1e6, 1e6)
            groups[path] = changed
        made.append(Tick(number, 1.79e9 + number / 10, "near", node(900 + number / 10), groups, ()))
    return made


def same(one: Tick, other: Tick) -> bool:
    if one._replace(groups={}) != other._replace(groups={}) or list(one.groups) != list(
        other.groups
    ):
        return False
    rows = zip(one.groups.values(), other.groups.values(), strict=True)
    return all(row_of(mine) == row_of(theirs) for mine, theirs in rows)


def text_of(writer: TickEncoder, ticks: list[Tick], **flags: bool) -> bytes:
    return json.dumps(writer.body(ticks, **flags), separators=(",", ":"), allow_nan=False).encode()


# --- exact ------------------------------------------------------------------------------------


def test_what_goes_in_comes_out() -> None:
    ticks, writer, reader = day(30), TickEncoder(), TickDecoder()
    found = [tick for tick in ticks for tick in reader.take(json.loads(text_of(writer, [tick])))]
    assert len(found) == len(ticks)
    assert all(same(*pair) for pair in zip(found, ticks, strict=True))


numbers = st.one_of(st.floats(allow_nan=False), st.floats(-1e9, 1e9))


@given(st.data())
def test_any_values_come_out_as_they_went_in(data: st.DataObject) -> None:
    """Groups come, go and change their order; every field takes any value of its kind."""
    writer, reader = TickEncoder(), TickDecoder()
    for number in range(1, 5):
        paths = data.draw(st.lists(st.sampled_from("abcdefg"), unique=True))
        groups = {f"/{path}": any_group(f"/{path}", data) for path in paths}
        seconds = data.draw(numbers)
        outcomes = tuple(data.draw(st.lists(st.just(outcome()), max_size=2)))
        unix = data.draw(st.floats(-1e9, 1e12))
        tick = Tick(number, unix, "short", node(seconds), groups, outcomes)
        flags = {"is_key": data.draw(st.booleans())}
        (found,) = reader.take(json.loads(text_of(writer, [tick], **flags)))
        assert same(found, tick)


def any_group(path: str, data: st.DataObject) -> Group:
    made = Group(path, data.draw(st.integers(0, 1 << 40)), data.draw(st.text(max_size=5)))
    made.charge_bytes = data.draw(st.integers(-1, 1 << 50))
    made.limit_bytes = data.draw(st.none() | st.integers(0, 1 << 62))
    made.adj = data.draw(st.none() | st.integers(-1000, 1000))
    made.charge_slope, made.stall = data.draw(numbers), data.draw(numbers)
    made.progress_per_second = data.draw(st.none() | numbers)
    if data.draw(st.booleans()):
        made.outside = Outside(*data.draw(st.tuples(*[st.integers(0, 1 << 40)] * 3)), "rings")
    return made


def outcome() -> Outcome:
    order = Order("5eed0000-0001", "clamp", Target("/a", 7, "a\x1b"), "over_limit", 5, 1 << 40)
    return Outcome(order, False, "refused", 3, 1, 0.001, 0.1 + 0.2, "max", True)


def test_every_field_of_a_group_is_kept() -> None:
    made = group(1)
    for name in Group.__slots__:
        assert hasattr(group_of(row_of(made)), name)
    named = {"certain_bytes", "likely_bytes", "most_bytes", "sources"}
    from seawall.replay.group_rows import COLUMNS

    assert set(Group.__slots__) - {"outside"} | named == set(COLUMNS)


def test_nothing_outside_is_the_one_that_the_judge_asks_for() -> None:
    assert group_of(row_of(group(1))).outside is NOTHING_OUTSIDE


def test_a_tick_that_was_read_is_not_changed_by_the_next() -> None:
    ticks, writer, reader = day(5), TickEncoder(), TickDecoder()
    found = []
    for tick in ticks:
        found += reader.take(json.loads(text_of(writer, [tick])))
    assert all(same(*pair) for pair in zip(found, ticks, strict=True))


# --- small ------------------------------------------------------------------------------------


def test_a_tick_of_250_pods_takes_few_kilobytes() -> None:
    """Half of them changed charge and slope; a slope has all its digits."""
    writer = TickEncoder()
    sizes, packed = [], []
    for tick in day(20):
        text = text_of(writer, [tick])
        sizes.append(len(text))
        packed.append(len(zlib.compress(text, 1)))
    shown = f"key {sizes[0]} bytes, {packed[0]} packed; tick {sizes[-1]}, {packed[-1]} packed"
    print(shown)  # noqa: T201 - the figure that the text quotes
    assert max(sizes[1:]) < 6_000
    assert max(packed[1:]) < 3_500
    assert packed[0] < 20_000


def test_a_tick_of_peace_is_smaller_and_as_good_for_peace() -> None:
    exact, rounded, reader = TickEncoder(), TickEncoder(), TickDecoder()
    for tick in day(5):
        sizes = len(text_of(exact, [tick]))
        body = text_of(rounded, [tick], is_rounded=True)
        (found,) = reader.take(json.loads(body))
        if tick.number > 1:
            assert len(body) < 0.75 * sizes
        assert found.node.seconds == tick.node.seconds
        for path, kept in found.groups.items():
            assert kept.charge_bytes == tick.groups[path].charge_bytes
            assert kept.charge_slope == pytest.approx(tick.groups[path].charge_slope, rel=1e-5)


# --- what is missing --------------------------------------------------------------------------


def test_after_a_frame_that_is_missing_nothing_is_read_until_a_key() -> None:
    ticks, writer, reader = day(9), TickEncoder(), TickDecoder()
    bodies = [writer.body([tick], is_key=tick.number == 7) for tick in ticks]
    found = [t.number for at, body in enumerate(bodies) if at != 3 for t in reader.take(body)]
    assert found == [1, 2, 3, 7, 8, 9]
    assert reader.lost_ticks == 2


# --- hostile ----------------------------------------------------------------------------------


def bodies() -> list[str]:
    (lived, *_) = live(random_film(61))
    writer = TickEncoder()
    ticks = lived.ticks
    some = [writer.body(ticks[at : at + 3]) for at in range(0, 30, 3)]
    gone = writer.body([ticks[30]._replace(groups=dict(list(ticks[30].groups.items())[2:]))])
    return [json.dumps(body) for body in (some[0], some[-1], gone)]


BODIES = bodies()
ODD: list[Any] = [
    None, True, -1, 5, 1 << 70, "nan", "", "x" * 20_000, [], {}, [[1], [2]], [[-1], [1]], [[0]],
    [None] * 24, {"charge_bytes": [[0, 0, 0], [1, [None], 3]]}, {"path": [[0], ["/a"]]},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inner = value.items() if isinstance(value, dict) else []
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, part in inner:
        found += places(part, (*path, key))
    return found


@given(st.integers(0, 2), st.integers(0, 1 << 30), st.sampled_from(ODD))
def test_a_forged_body_is_ticks_or_a_problem(which: int, where: int, instead: Any) -> None:
    body = json.loads(BODIES[which])
    if which:
        body["key"] = False
    found = places(body)
    *above, last = found[1 + where % (len(found) - 1)]
    part = body
    for key in above:
        part = part[key]
    part[last] = instead
    reader = TickDecoder()
    reader.take(json.loads(BODIES[0]))
    if which:
        reader._last = body.get("from")
    try:
        ticks = reader.take(body)
    except BundleProblem:
        return
    for tick in ticks:
        assert all(type(one.charge_bytes) is int for one in tick.groups.values())


def test_small_bytes_do_not_become_much_memory() -> None:
    """A frame of ten thousand ticks that only name a number."""
    writer, reader = TickEncoder(), TickDecoder()
    body = json.loads(text_of(writer, day(1)))
    body["ticks"] += [{**body["ticks"][0], "new": [], "n": 2}] * 9_000
    with pytest.raises(BundleProblem, match="groups in a frame"):
        reader.take(body)
