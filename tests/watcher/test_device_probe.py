"""What a watch of devices asks the machine: one that hangs, a listener that is not there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.as_nobody import as_nobody
from tests.host.own_dev import no_fuse, with_silent_dev

from seawall.accounts.devices.watch.device_watch_events import DeviceKey, WatchedRule
from seawall.accounts.devices.watch.watched_table import WatchedDevices
from seawall.accounts.workloads import Workload
from seawall.host.device_access.device_cgroup import device_hierarchy
from seawall.host.device_access.process_handle import ProcessHandle
from seawall.readings.device_access import AccessTarget
from seawall.watcher.device_probe import DeviceProbe, now
from seawall.watcher.device_writes import DeviceWrites

PATHS = ("/dev/null", "/dev/none")


def container(name: str, pid: int) -> WatchedDevices:
    target = AccessTarget(pid, ProcessHandle(pid).start_ticks(), PATHS)
    workload = Workload(kind="container", name=name, cgroup=f"/{name}")
    return WatchedDevices(workload=workload, target=target, place=f"/{name}")


@pytest.fixture
def sight() -> Iterator[DeviceProbe]:
    made = DeviceProbe(None, 20.0)
    yield made
    made.close()


def test_a_look_at_oneself(sight: DeviceProbe) -> None:
    sight.containers = (container("me", os.getpid()),)
    look = sight.look()
    assert {key.path: stand.errno for key, stand in look.stands.items()} == {
        "/dev/null": 0, "/dev/none": 2,
    }  # fmt: skip
    assert look.began <= look.at.monotonic <= now().monotonic
    assert look.nodes is not None
    assert sight.look(["/nobody"]).stands == {}
    assert not sight.has_gone


def test_a_process_that_is_gone_is_told_by_the_next_table(sight: DeviceProbe) -> None:
    gone = container("gone", os.getpid())
    assert gone.target
    sight.containers = (
        WatchedDevices(
            workload=gone.workload, place="/gone", target=gone.target._replace(start_ticks=1)
        ),
    )
    assert sight.look().stands == {}
    assert sight.has_gone


def test_with_v2_a_try_follows_a_change_of_programs(sight: DeviceProbe) -> None:
    """Joining a cgroup is dear there."""
    me = container("me", os.getpid())
    sight._is_v2 = True
    rules = {"/me": WatchedRule("device programs:", ("program 1 of /",))}
    changed = {"/me": WatchedRule("device programs:", ("program 2 of /",))}
    asked = [sight._is_due(me, told, at) for told, at in (
        (rules, 100), (rules, 101), (changed, 102), (changed, 106), (changed, 107), ({}, 108),
    )]  # fmt: skip
    assert asked == [True, False, True, False, True, True]


@pytest.mark.system
def test_one_that_hangs_costs_itself_alone_and_only_now_and_then(sight: DeviceProbe) -> None:
    if why := no_fuse():
        pytest.skip(why)
    silent, me = DeviceKey("/silent", "/dev/null"), DeviceKey("/me", "/dev/null")
    with with_silent_dev() as pid:
        sight.containers = (container("silent", pid), container("me", os.getpid()))
        once, twice, later = (sight.look().stands for _ in range(3))
    assert silent not in once, "anybody is late once"
    assert twice[silent].errno is None
    assert "no_answer" in twice[silent].why
    assert silent not in later, "it is not asked again at once"
    assert any(one[me].errno == 0 for one in (once, twice, later) if me in one)


def test_who_may_not_listen_says_what_it_takes() -> None:
    hierarchy = device_hierarchy(Path("/proc/self/mountinfo").read_bytes())
    if hierarchy is None or hierarchy.version != 1:
        pytest.skip("no devices controller of cgroup v1: nobody writes to files of v2")

    def ask() -> str:
        return " ".join(DeviceWrites(lambda write: write).unseen)

    told = as_nobody(ask) if os.geteuid() == 0 else ask()
    assert told.startswith("who writes to devices.allow and devices.deny: ")
    assert "CAP_SYS_ADMIN" in told
