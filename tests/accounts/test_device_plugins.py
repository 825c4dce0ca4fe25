"""Whether a device plugin is to blame: do its answers name nodes, and is it older than them?"""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_worlds import (
    ABSENT,
    HOOK,
    ID,
    NVIDIA,
    PLUGIN_STARTED,
    PLUGIN_WORKLOAD,
    World,
    only,
    spec,
    workload,
)
from tests.accounts.device_worlds import kubelet as answer

from seawall.accounts.devices.device_changes import differing
from seawall.accounts.devices.layers import Diagnosis, Plugin
from seawall.accounts.devices.plugins import names_nodes
from seawall.accounts.devices.promised.promises import Sources, promises
from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import DeviceMoment
from seawall.accounts.devices.watch.watched_table import watched_table_of
from seawall.readings.device_specs import DeviceSpecs

UVM = "/dev/nvidia-uvm"
SEEN = only("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1")
ASKS = {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}


def named(kubelet: Any = ABSENT, own: Any = None, **container: Any) -> str:
    specs = {ID: container["spec"]} if container else {}
    if own is not None:
        specs["ab" * 32] = spec({}, environment=own)
    sources = Sources(DeviceSpecs(specs), kubelet, ABSENT)
    promised = promises([workload()], sources)
    return names_nodes(PLUGIN_WORKLOAD, (UVM,), promised, sources)


def test_the_kubelets_checkpoint_tells_whether_answers_name_nodes() -> None:
    assert named(answer("/dev/nvidiactl", "/dev/nvidia0")) == "yes"
    assert named(answer(cdi_names=("k8s.device-plugin.nvidia.com/gpu=GPU-1",))) == "yes"
    assert named(answer(environment=ASKS)) == "no"
    assert named(answer(cdi_names=("nvidia.com/gpu=0",))) == "no"
    assert named(answer()) == "unknown", "an entry without an answer"
    assert named(answer(environment=ASKS, resource="amd.com/gpu")) == "unknown"
    assert named() == "unknown"


def test_a_pods_config_that_names_some_and_lacks_what_the_plugin_lacks_tells_it() -> None:
    some = only("/dev/nvidiactl", "/dev/nvidia1")
    assert named(spec=spec(some)) == "yes"
    assert named(spec=spec(some, hooks=(HOOK,), environment=ASKS)) == "unknown"
    assert named(spec=spec({**some, UVM: NVIDIA[UVM]})) == "unknown"
    assert named(spec=spec(some, "a *:* rwm")) == "unknown", "a privileged one"
    assert named(answer(environment=ASKS), spec=spec(some)) == "unknown", "they contradict"


def test_what_the_plugin_was_told_itself_comes_first() -> None:
    assert named(answer(environment=ASKS), own={"PASS_DEVICE_SPECS": "true"}) == "yes"
    assert named(own={"PASS_DEVICE_SPECS": "false"}) == "no"
    assert named(answer("/dev/nvidia0"), own={"PASS_DEVICE_SPECS": "false"}) == "yes"


def healthy_with_utility_alone(**watched_table_of: Any) -> World:
    """NVIDIA's default manifest: a hook gives pods their nodes, and the plugin no nvidia-uvm."""
    given = spec({}, hooks=(HOOK,), environment=ASKS)
    lines = [f"{kind} {major}:{minor} rw" for kind, major, minor in NVIDIA.values()]
    values = {"specs": given, "own": dict(NVIDIA), "kernel": tuple(lines), "plugin": SEEN,
              "kubelet": answer(environment=ASKS)}  # fmt: skip
    return World(**(values | watched_table_of))


def test_a_healthy_node_whose_plugin_names_no_nodes_is_quiet() -> None:
    table = healthy_with_utility_alone().table()
    (plugin,) = table.plugins
    assert (plugin.lacks, plugin.names_nodes) == ((), "no")
    assert not [one for one in table.about_to_break if one.workload == PLUGIN_WORKLOAD]
    assert table.containers[0].diagnosis is None
    unknown = healthy_with_utility_alone(kubelet=ABSENT).table()
    assert unknown.plugins[0].lacks == (UVM, "/dev/nvidia-uvm-tools")
    (soon,) = [one for one in unknown.about_to_break if one.workload == PLUGIN_WORKLOAD]
    assert "if it names nodes in them (PASS_DEVICE_SPECS)" in soon.why


def test_that_a_plugin_is_seen_to_name_no_nodes_is_no_event_of_its_dev() -> None:
    changes, at = Changes(), DeviceMoment(1.0, 1.0)
    for world in (healthy_with_utility_alone(kubelet=ABSENT), healthy_with_utility_alone()):
        table = world.table()
        assert changes.tell(watched_table_of(table, (), at, with_plugins=True)) == []


def test_a_plugin_that_names_no_nodes_is_not_blamed_for_a_hook_that_is_not_there() -> None:
    one = healthy_with_utility_alone(specs=spec({}, environment=ASKS), own={}, kernel=())
    found = one.container().diagnosis
    assert found is not None
    assert found.mode == "unnamed"
    assert "name no nodes" in found.cause
    assert "Restarting the device plugin does not mend it" in found.remedy


def blamed(**watched_table_of: Any) -> Diagnosis:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    lines = ("c 195:255 rw", "c 195:1 rw")
    world = World(specs=spec(given), own=given, plugin=SEEN, kernel=lines, **watched_table_of)
    found = world.container().diagnosis
    assert found is not None
    assert found.mode == "F1"
    assert "nvidia-device-plugin-x7" in found.cause
    return found


@pytest.mark.parametrize(
    ("offset", "words", "is_older"),
    [
        (8, "made or changed 8 s after it was started", False),
        (0, "made or changed just when it was started", False),
        (-36, "made or changed 36 s before the plugin was started, so something else", True),
        (None, "most likely it was started before the host had the node", False),
    ],
)
def test_f1_says_no_more_than_the_times_tell(
    offset: int | None, words: str, is_older: bool
) -> None:  # fmt: skip
    changed = {} if offset is None else {UVM: int(PLUGIN_STARTED) + offset}
    found = blamed(changed=changed)
    assert words in found.cause
    assert ("before the host had the node" in found.cause) == (offset is None)
    assert ("privileged" in found.remedy) == is_older
    assert found.remedy.startswith("Restart the plugin pod")


def test_a_plugin_is_kept_as_it_was_by_default() -> None:
    assert Plugin(workload=PLUGIN_WORKLOAD, pid=1, lacks=(UVM,)).names_nodes == "unknown"


# --- two moments --------------------------------------------------------------------------


def test_a_rule_by_hand_that_is_gone_at_the_last_moment_is_f7() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    lines = ("c 195:255 rw", "c 195:1 rw")
    own = {**given, UVM: NVIDIA[UVM]}
    world = World(specs=spec(given), own=own, plugin=SEEN, kernel=(*lines, "c 237:0 rw"))
    first = world.table()
    last = replace(world, kernel=lines).table()
    (one,) = differing(first, last)
    assert one.mode == "F1"
    assert "(F7)" in one.words
    (back,) = differing(last, first)
    assert (back.mode, back.words) == (None, "can use its devices")
    assert not list(differing(first, first))


def test_a_moment_that_does_not_hold_a_question_says_nothing() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    lines = ("c 195:255 rw", "c 195:1 rw", "c 237:0 rw")
    world = World(specs=spec(given), own={**given, UVM: NVIDIA[UVM]}, kernel=lines)
    last = replace(world, is_running=False, own="no_answer", kernel=ABSENT).table()
    assert last.containers[0].diagnosis is not None, "by its config alone"
    assert not list(differing(world.table(), last))
