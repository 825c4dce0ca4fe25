# SPDX-License-Identifier: Apache-2.0
"""Rounds go through frames and come back as they were; nothing but BundleProblem from bad ones."""

import json
import os
import time
from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.blackbox import text_changes
from seawall.blackbox.round_frames import RoundReader, RoundWriter
from seawall.host.host import JSON, Unread, Why
from seawall.host.live import LiveHost
from seawall.host.recording import Recording, Round
from seawall.problems import BundleProblem
from seawall.readings.meminfo import Meminfo
from seawall.readings.pressure import HostPressure
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo

_PATHS = st.one_of(
    st.sampled_from(["/proc/meminfo", "/proc/a", "/sys/x/a", "plain", "/", ""]),
    st.binary(max_size=6).map(os.fsdecode),
)
_UNREAD = st.builds(Unread, _PATHS, st.sampled_from(get_args(Why)), st.text(max_size=5))
_NUMBERS = st.lists(
    st.tuples(
        st.sampled_from(["MemFree:   ", "a ", "avg10=0.", "x", "0x", "-"]),
        st.integers(0, 10**22),
        st.sampled_from([" kB\n", "\n", "", "."]),
    ).map(lambda line: f"{line[0]}{line[1]}{line[2]}".encode()),
    max_size=4,
).map(b"".join)
_FILES = st.one_of(_NUMBERS, st.binary(max_size=30), _UNREAD)
_NAMES = st.one_of(
    _UNREAD,
    st.lists(_PATHS, max_size=4).map(tuple),
    st.sets(_PATHS, max_size=4).map(lambda names: tuple(sorted(names))),
)
_LEAF: st.SearchStrategy[JSON] = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3)
)
_PROBED = st.one_of(
    _UNREAD,
    _LEAF,
    st.lists(_LEAF, max_size=2),
    st.dictionaries(st.sampled_from(["u", "a", "!"]), _LEAF, max_size=2),
)
_ROUNDS = st.builds(
    Round,
    files=st.dictionaries(_PATHS, _FILES, max_size=4),
    names=st.dictionaries(_PATHS, _NAMES, max_size=2),
    links=st.dictionaries(_PATHS, st.one_of(_PATHS, _UNREAD), max_size=2),
    probes=st.dictionaries(st.tuples(_PATHS, _PATHS), _PROBED, max_size=2),
)
_STEPS = st.lists(st.tuples(_ROUNDS, st.sampled_from(["full", "light"]), st.booleans()), max_size=6)


def _through(body: dict[str, JSON]) -> dict[str, JSON]:
    """As a frame does it."""
    again: dict[str, JSON] = json.loads(json.dumps(body))
    return again


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(_STEPS)
def test_every_round_comes_back_as_it_was(steps: list[tuple[Round, str, bool]]) -> None:
    writer, reader = RoundWriter(), RoundReader()
    for round_, of, is_key in steps:
        taken = reader.take(_through(writer.body(round_, of, is_key=is_key)))
        assert taken is not None
        assert taken.of == of
        assert taken.round == round_
        assert repr(sorted(taken.round.probes.items(), key=repr)) == repr(
            sorted(round_.probes.items(), key=repr)
        )


@given(_NUMBERS, _NUMBERS)
def test_a_text_changes_exactly(old: bytes, new: bytes) -> None:
    before, after = old.decode(), new.decode()
    assert text_changes.changed(before, text_changes.change(before, after)) == after


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("MemFree:     1000 kB\n", "MemFree:      999 kB\n", [0, -1]),
        ("MemFree:      999 kB\n", "MemFree:     1000 kB\n", [0, 1]),
        ("nr_free 99\nnr_dirty 1\n", "nr_free 100\nnr_dirty 2\n", [0, 1, 0, 1]),
        ("some avg10=0.05 total=7\n", "some avg10=0.12 total=9\n", [0, [2, 7, 3, 2]]),
        ("a 1\nb 2\nc 3\n", "a 1\nmax\nc 3\n", [1, "max"]),
        ("a\n", "a\nb\n", "a\nb\n"),
    ],
)
def test_what_a_change_looks_like(old: str, new: str, told: JSON) -> None:
    assert text_changes.change(old, new) == told
    assert text_changes.changed(old, told) == new


def test_a_page_that_is_filled_up_with_blanks_takes_no_time() -> None:
    """As the guard's own status is: tried from each blank it took minutes on a slow node."""
    old, new = (f'{{"headroom_bytes":{n}{" " * 65536}}}\n' for n in (1, 2))
    began = time.process_time()
    assert text_changes.changed(old, text_changes.change(old, new)) == new
    assert time.process_time() - began < 1


def test_this_machine_twice() -> None:
    recording = Recording(LiveHost("/"))
    for _ in range(2):
        snapshot = Snapshot(recording)
        for topic in (Meminfo, Vmstat, HostPressure, Zoneinfo):
            snapshot.get(topic)
        recording.next_round()
    writer, reader = RoundWriter(), RoundReader()
    bodies = [writer.body(r, "full", is_key=False) for r in recording.rounds[:2]]
    for round_, body in zip(recording.rounds, bodies, strict=False):
        taken = reader.take(_through(body))
        assert taken is not None
        assert taken.round == round_
    assert len(json.dumps(bodies[1])) < len(json.dumps(bodies[0])) / 4


def test_a_missing_body_is_noticed_and_a_key_heals_it() -> None:
    writer, reader = RoundWriter(), RoundReader()
    rounds = [Round(files={"/a": b"%d" % n}) for n in range(5)]
    bodies = [writer.body(r, "full", is_key=n == 3) for n, r in enumerate(rounds)]
    taken = [reader.take(bodies[n]) for n in (0, 2, 3, 4)]
    assert [t and t.round for t in taken] == [rounds[0], None, rounds[3], rounds[4]]
    assert RoundReader().take(bodies[1]) is None


_JSON = st.recursive(
    st.one_of(_LEAF, st.integers(-(10**30), 10**30), st.just("\ud800")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["u", "n", "+", "-", "a"]), inner, max_size=3),
    ),
    max_leaves=12,
)
_ROWS = st.lists(st.tuples(st.integers(0, 2), _JSON), max_size=3).map(
    lambda rows: [value for row in rows for value in row]
)
_SECTION = st.one_of(
    _JSON,
    st.fixed_dictionaries(
        {"new": st.one_of(_JSON, st.just([[0, 0, 1], [1, 0]]))},
        optional={"is": st.one_of(_JSON, _ROWS), "also": _JSON, "gone": _JSON},
    ),
)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(st.just(value=True), _JSON),
        "step": st.one_of(st.integers(0, 2), _JSON),
        "of": st.one_of(st.just("full"), _JSON),
        "words": st.one_of(st.just(["a", "b"]), _JSON),
        "folders": st.one_of(st.just([0, 0]), _JSON),
        "files": _SECTION,
        "names": _SECTION,
        "links": _SECTION,
        "probes": _SECTION,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_BODIES, max_size=3))
def test_bad_bodies_end_in_a_problem_of_ours(bodies: list[dict[str, JSON]]) -> None:
    reader = RoundReader()
    for body in bodies:
        with suppress(BundleProblem):
            reader.take(body)


def _deep() -> JSON:
    deep: JSON = []
    for _ in range(5000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "much",
    [
        {"words": ["a"] * 400_001},
        {"words": ["a" * 9000], "folders": [0, 0, 1, 0]},
        {"words": ["a" * 99], "folders": [0, 0, *[x for n in range(170) for x in (n + 1, 0)]]},
        {"words": ["a"], "files": {"new": [[0, *[0] * 400_001]]}},
        {"words": ["a"], "probes": {"new": [[0, 0]], "is": [0, {"a": _deep()}]}},
    ],
)
def test_much_out_of_little_is_refused(much: dict[str, JSON]) -> None:
    with pytest.raises(BundleProblem):
        RoundReader().take({"key": True, "step": 0, "of": "full", **much})


def test_an_id_stands_in_a_key_once() -> None:
    name = "0123456789abcdef" * 4
    round_ = Round(
        files={f"/sys/fs/cgroup/{name}/memory.max": b"max\n"},
        names={"/sys/fs/cgroup": (f"{name}/",), f"/sys/fs/cgroup/{name}": ("memory.max",)},
    )
    assert json.dumps(RoundWriter().body(round_, "full")).count(name) == 1
