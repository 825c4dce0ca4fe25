"""What changed between looks at devices, and who is named for it."""

from dataclasses import replace
from errno import EACCES, ENOENT, EPERM
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounts.device_looks import (
    ALLOWED,
    APP,
    GPU,
    OTHER,
    REFUSED,
    RUNC,
    SHELL,
    UVM,
    look,
    moment,
    rule,
    told,
    watching,
    write,
)  # fmt: skip

from seawall.accounts.devices.watch.changes import distinct
from seawall.accounts.devices.watch.device_watch_events import DeviceKey, Stand
from seawall.readings.device_writers import DeviceWriter


def test_nothing_changed_nothing_told() -> None:
    _, events = watching(look(0, {UVM: ALLOWED}), look(1, {UVM: ALLOWED}))
    assert events == []


def test_a_flap_is_told_as_one_with_both_writers() -> None:
    _, (gave, took) = watching(
        look(0, {UVM: REFUSED, GPU: ALLOWED}, rules=rule("c 195:0 rw")),
        look(3, {UVM: ALLOWED, GPU: ALLOWED}, write(2.9, SHELL, "devices.allow"),
             rules=rule("c 195:0 rw", "c 510:0 rw")),
        look(11.2, {UVM: REFUSED, GPU: ALLOWED}, write(11.1, RUNC),
             rules=rule("c 195:0 rw")),
    )  # fmt: skip
    assert (gave.before, gave.after, gave.device) == ("EPERM", "allowed", UVM.path)
    assert gave.writers == (SHELL,)
    assert not gave.is_back
    assert gave.lasted is not None
    assert gave.lasted.is_first
    assert (took.before, took.after, took.errno) == ("allowed", "EPERM", EPERM)
    assert took.layer == "kernel"
    assert took.writers == (RUNC,)
    assert took.is_back
    assert took.lasted is not None
    assert took.lasted.writers == (SHELL,)
    assert took.at == moment(11.1)
    assert took.lasted_seconds == pytest.approx(8.2)
    assert took.why == "devices.list lost c 510:0 rw"
    assert took.files == ("devices.deny",)


def test_a_clock_that_is_set_spoils_no_duration() -> None:
    set_back = look(5, {UVM: REFUSED})
    set_back = replace(set_back, at=set_back.at._replace(unix=1.0))
    _, (event,) = watching(look(0, {UVM: ALLOWED}), set_back)
    assert event.lasted_seconds == 5
    assert event.at.unix == 1.0


def test_of_two_writers_neither_is_the_one() -> None:
    _, (event,) = watching(
        look(0, {UVM: ALLOWED}),
        look(1, {UVM: REFUSED}, write(0.5, SHELL), write(0.6, RUNC), write(0.7, RUNC)),
    )
    assert event.writers == (SHELL, RUNC)


@pytest.mark.parametrize(
    ("before", "after", "layer"),
    [
        (ALLOWED, Stand(ENOENT), "node"),
        (Stand(ENOENT), REFUSED, "node"),
        (ALLOWED, Stand(EACCES, "c 510:0"), "mode"),
        (ALLOWED, Stand(0, "c 511:0"), "node"),
        (ALLOWED, Stand(None, "", "no_answer"), None),
    ],
)
def test_a_writer_is_not_blamed_for_what_no_rule_can_do(
    before: Stand, after: Stand, layer: str | None
) -> None:
    _, events = watching(look(0, {UVM: before}), look(1, {UVM: after}, write(0.5, RUNC)))
    assert [(one.kind, one.layer, one.writers) for one in events] == [("access", layer, ())]


def test_who_gave_is_not_blamed_for_the_taking() -> None:
    """Its write is still among those since the look before, which had begun before it."""
    given_by = write(1.0, SHELL)
    _, events = watching(
        look(0, {UVM: REFUSED}),
        look(1.005, {UVM: ALLOWED}, given_by),
        look(2, {UVM: REFUSED}, given_by),
    )
    assert [one.writers for one in events] == [(SHELL,), ()]


def test_a_write_that_changes_nothing_is_told_once() -> None:
    lone = write(0.5, RUNC)
    _, events = watching(
        look(0, {UVM: ALLOWED}, rules=rule("a")),
        look(1, {UVM: ALLOWED}, lone, rules=rule("a")),
        look(2, {UVM: ALLOWED}, lone, rules=rule("a")),
    )
    assert [(one.kind, one.writers, one.files) for one in events] == [
        ("written", (RUNC,), ("devices.deny",))
    ]


def test_a_write_during_a_look_waits_for_the_next() -> None:
    during = write(1.0, RUNC)
    _, events = watching(
        look(0, {UVM: ALLOWED}), look(1.005, {UVM: ALLOWED}, during),
        look(1.3, {UVM: REFUSED}, during),
    )  # fmt: skip
    assert [(one.kind, one.writers) for one in events] == [("access", (RUNC,))]


def test_a_write_above_is_told_only_with_what_it_changed() -> None:
    above = {APP: (write(0.5, RUNC),)}
    _, events = watching(
        look(0, {UVM: ALLOWED}),
        look(1, {UVM: ALLOWED}, writes_above=above),
        look(2, {UVM: REFUSED}, writes_above={APP: (write(1.5, RUNC),)}),
    )
    assert [(one.kind, one.writers) for one in events] == [("access", (RUNC,))]


def test_a_rule_that_changes_no_access() -> None:
    _, events = watching(
        look(0, {UVM: ALLOWED}, rules=rule("a", "b")),
        look(1, {UVM: ALLOWED}),
        look(2, {UVM: ALLOWED}, write(1.5, RUNC), rules=rule("b", "a", "c")),
        look(3, {UVM: ALLOWED}, rules=rule("a", "b", "c")),
    )
    assert [(one.kind, one.why, one.writers) for one in events] == [
        ("kernel", "devices.list got c", (RUNC,)),
        ("kernel", "devices.list changed its order", ()),
    ]


def test_containers_come_and_go() -> None:
    changes, _ = watching(look(0, {UVM: REFUSED}))
    assert [(one.kind, one.workload, one.before, one.after)
            for one in changes.tell(told(5, {OTHER: "shop/other"}))] == [
        ("container", "shop/app", "there", None), ("container", "shop/other", None, "there"),
    ]  # fmt: skip
    (event,) = changes.see(look(6, {DeviceKey(OTHER, UVM.path): ALLOWED, UVM: ALLOWED}))
    assert (event.workload, event.before, event.after) == ("shop/other", None, "allowed")
    assert event.lasted_seconds is None


def test_layers_of_the_table_and_the_plugin() -> None:
    changes, _ = watching(look(0, {UVM: ALLOWED}))
    first = told(lacks={"plugin": frozenset()})
    changes.tell(first)
    layers = {UVM: {**first.layers[UVM], "systemd": ("no", "lacks it"),
                    "configured": ("unread", "?")}}  # fmt: skip
    later = told(9, layers=layers, lacks={"plugin": frozenset([UVM.path])})
    assert [(one.kind, one.workload, one.device, one.before, one.after)
            for one in changes.tell(later)] == [
        ("systemd", "shop/app", UVM.path, "yes", "no"),
        ("plugin", "plugin", UVM.path, "there", "missing"),
    ]  # fmt: skip


def test_control_nodes_of_the_host() -> None:
    _, events = watching(
        look(0, nodes={UVM.path: "there"}),
        look(1, nodes=None),
        look(2, nodes={UVM.path: "missing"}),
        look(3, nodes={UVM.path: "c 509:0", "/dev/kfd": "there"}),
        look(4, nodes={}),
    )
    assert [(one.device, one.before, one.after, one.workload) for one in events] == [
        (UVM.path, "there", "missing", None), ("/dev/kfd", None, "there", None),
        (UVM.path, "missing", "c 509:0", None), ("/dev/kfd", "there", None, None),
        (UVM.path, "c 509:0", None, None),
    ]  # fmt: skip


def test_one_process_under_one_name() -> None:
    gone = DeviceWriter(pid=RUNC.pid)
    assert distinct([write(1, RUNC), write(2, gone)]) == (RUNC,)
    assert distinct([write(1, gone), write(2, RUNC)]) == (RUNC,)
    again = RUNC._replace(start_ticks=99)
    assert distinct([write(1, RUNC), write(2, again)]) == (RUNC, again)


CODES = st.sampled_from([0, EPERM, ENOENT, EACCES])


@given(st.lists(CODES, min_size=1, max_size=30))
def test_access_events_are_the_changes_and_their_times_add_up(codes: list[int]) -> None:
    looks = [look(n, {UVM: Stand(code)}) for n, code in enumerate(codes)]
    _, events = watching(*looks)
    assert len(events) == sum(a != b for a, b in pairwise(codes))
    assert [one.errno for one in events] == [b for a, b in pairwise(codes) if a != b]
    if events:
        assert sum(one.lasted_seconds or 0 for one in events) == pytest.approx(
            events[-1].at.monotonic - 100
        )
    for before, one in pairwise(events):
        assert one.before == before.after
        assert one.is_back == (one.after == before.before)
