"""Since when a device is refused: only from what tells it, and with its doubt."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_programs import Rule, runc
from tests.accounts.device_worlds import (
    ABSENT,
    BOOT,
    NOW,
    NVIDIA,
    PLUGIN_STARTED,
    PSEUDO,
    SLICE,
    STARTED,
    SYSTEMD,
    World,
    kubelet,
    moment_of_kernel,
    only,
    spec,
    unit,
    versions,
)  # fmt: skip
from tests.accounts.test_device_diagnosis import GIVEN, RELOADED, healthy, under_systemd

from seawall.accounts.devices.layers import Since
from seawall.accounts.devices.reasons.since import elapsed, moment
from seawall.host.host import Unread
from seawall.readings.device_cgroups import DeviceCgroups

WITHOUT = tuple(path for path in GIVEN if "uvm" not in path)
MADE = int(PLUGIN_STARTED) + 8
OTHERS = [Rule(2, 6, 195), Rule(2, 7, 1, 3)]


def since(world: World) -> Since | None:
    return world.container().since


def without_uvm(**told: Any) -> World:
    """F1: the plugin saw no nvidia-uvm."""
    values = {"specs": spec(only(*WITHOUT)), "own": only(*WITHOUT), "kubelet": kubelet(*WITHOUT),
              "plugin": only(*WITHOUT), "changed": {"/dev/nvidia-uvm": MADE}}  # fmt: skip
    return healthy(**(values | told))


def v2(*rules: Rule, loaded: float | None, **told: Any) -> World:
    """A scope that systemd has no device for, and one program at it."""
    above = ("/", "/kubepods.slice", SLICE, SYSTEMD.rpartition("/")[0])
    attached: dict[str, Any] = dict.fromkeys(above, ())
    times = {} if loaded is None else {7: loaded - BOOT}
    groups = DeviceCgroups(2, {}, {**attached, SYSTEMD: (7,)}, {7: runc(*rules)}, 0, times)
    values = {"scopes": unit("char-pts rwm"), "kernel": RELOADED, "groups": groups}
    return under_systemd(**(values | told))


def test_what_works_was_never_refused() -> None:
    assert since(healthy()) is None


def test_f1_since_the_container_was_started_and_the_plugin_before_the_node() -> None:
    found = since(without_uvm())
    assert found == Since(
        STARTED,
        "the container was started; the host's /dev/nvidia-uvm was made or changed 8 s after the"
        " device plugin was started",
    )
    others: tuple[dict[str, Any], ...] = (
        {"changed": {}}, {"changed": {"/dev/nvidia-uvm": MADE - 60}}, {"plugin": None},
    )  # fmt: skip
    for told in others:
        assert since(without_uvm(**told)) == Since(STARTED, "the container was started")


@pytest.mark.parametrize("told", [
    {"kernel_moment": Unread("kernel", "absent")},
    {"kernel_moment": replace(moment_of_kernel(), taken_at_unix_seconds=None), "boot": ABSENT},
    {"kernel_moment": replace(moment_of_kernel(), uptime_seconds=None), "boot": ABSENT},
])  # fmt: skip
def test_without_a_clock_it_is_not_known(told: dict[str, Any]) -> None:
    one = without_uvm(**told).container()
    assert one.diagnosis is not None
    assert one.since is None


def test_without_proc_stat_the_uptime_tells() -> None:
    """A clock that was set an hour ahead moves all of it."""
    assert since(without_uvm(boot=ABSENT, plugin=None)) == Since(
        STARTED, "the container was started"
    )
    moved = replace(moment_of_kernel(), taken_at_unix_seconds=NOW + 3600)
    found = since(without_uvm(boot=ABSENT, plugin=None, kernel_moment=moved))
    assert found is not None
    assert found.at == STARTED + 3600


def test_f4_when_the_program_that_refuses_was_loaded() -> None:
    at = STARTED + 7000
    reloads = versions("runc version 1.1.5", reloaded=at - 0.5)
    world = v2(loaded=at, versions=reloads)
    assert world.mode() == "F4"
    assert since(world) == Since(
        at, "at the latest: the last daemon-reload put systemd's own device program there"
    )
    for other in (versions(reloaded=at - 3000), versions(), Unread("x", "no_answer")):
        found = since(v2(loaded=at, versions=other))
        assert found is not None
        assert found.at == at
        assert found.how.endswith("the cgroup's device program that refuses it was loaded")


def test_a_program_that_allows_tells_nothing() -> None:
    """A reload tells of itself only what came after the container."""
    allowing = [*OTHERS, Rule(2, 6, 237)]
    world = v2(*allowing, loaded=STARTED + 50, versions=versions(reloaded=STARTED + 90))
    assert since(world) == Since(
        STARTED + 90,
        f"at the latest: the last daemon-reload; the container was started {moment(STARTED)}",
    )
    assert since(v2(*allowing, loaded=STARTED + 50, versions=versions(reloaded=BOOT))) is None
    assert since(v2(*allowing, loaded=STARTED + 50)) is None


def test_a_program_as_old_as_the_container_refused_from_the_start() -> None:
    assert since(v2(loaded=STARTED - 1)) == Since(STARTED, "the container was started")
    assert since(v2(loaded=None)) is None


def test_v1_keeps_no_time() -> None:
    world = under_systemd(scopes=unit("char-pts rwm"), kernel=RELOADED)
    found = since(world)
    assert found is not None
    assert found.at == STARTED
    assert found.how.startswith("at the earliest")
    reloaded = since(replace(world, versions=versions(reloaded=STARTED + 60), asked=[]))
    assert reloaded is not None
    assert reloaded.at == STARTED + 60
    assert reloaded.how.startswith("at the latest: the last daemon-reload")
    # Before the container was there it cannot have taken anything from it.
    assert since(replace(world, versions=versions(reloaded=STARTED - 60), asked=[])) == found


def test_f6_on_v1_names_the_reload_and_does_not_blame_it() -> None:
    found = since(healthy(kernel=RELOADED, versions=versions(reloaded=STARTED + 60)))
    assert found is not None
    assert found.at == STARTED
    assert found.how.endswith(f"the last daemon-reload was at {moment(STARTED + 60)}")


def test_f10_by_the_hosts_new_node() -> None:
    old = {**only(*GIVEN), "/dev/nvidia-uvm": ("c", 240, 0)}
    world = healthy(specs=spec(old), own=old, kernel=("c 195:* rw", "c 240:0 rw", *PSEUDO))
    assert world.mode() == "F10"
    assert since(world) is None
    later = replace(world, changed={"/dev/nvidia-uvm": int(STARTED) + 500}, asked=[])
    assert since(later) == Since(
        STARTED + 500, "the host's node of the driver's new number was made or changed"
    )
    before = replace(world, changed={"/dev/nvidia-uvm": int(STARTED) - 500}, asked=[])
    found = since(before)
    assert found is not None
    assert found.at == STARTED
    assert "old already" in found.how
    stale = {**NVIDIA, "/dev/nvidia-uvm": ("c", 240, 0)}
    assert since(replace(later, host=stale, asked=[])) is None, "the host's own node is old too"


@pytest.mark.parametrize(("seconds", "words"), [
    (-5, "0 s"), (0.4, "0 s"), (8, "8 s"), (125, "2 min 5 s"), (7500, "2 h 5 min"),
    (7205, "2 h"), (273_600, "3 d 4 h"), (86_400, "1 d"), (10**30, "11574074074074074074074074 d"),
])  # fmt: skip
def test_elapsed(seconds: float, words: str) -> None:
    assert elapsed(seconds).startswith(words)


def test_an_absurd_moment_is_no_crash() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert moment(1e300) == moment(-1e300) == "an unknown time"
