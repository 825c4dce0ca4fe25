"""Who was promised what, and which nodes follow from it."""

import errno
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_programs import Rule, runc
from tests.accounts.device_worlds import (
    HOOK,
    NVIDIA,
    PLUGIN,
    PSEUDO,
    SLICE,
    World,
    entry,
    kubelet,
    nodes,
    only,
    process,
    rules,
    spec,
    workload,
)

from seawall.accounts.devices.container_processes import ContainerProcesses
from seawall.accounts.devices.device_inputs import ContainerSide, HostSide
from seawall.accounts.devices.device_sides import DeviceSides
from seawall.accounts.devices.device_table import DeviceTable, table_of
from seawall.accounts.devices.plugins import find
from seawall.accounts.devices.promised.promises import Sources, promises
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpec, CdiSpecs
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import Access, Tried
from seawall.readings.device_cgroups import DeviceCgroups
from seawall.readings.device_nodes import DeviceNodes
from seawall.readings.device_specs import DeviceSpecs
from seawall.readings.kubelet_devices import KubeletDevice, KubeletDevices
from seawall.readings.process import Processes
from seawall.readings.scope_devices import ScopeDevices, UnitDevices

GIVEN = only("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1")
EVERYTHING = ("c 195:* rw", "c 237:* rw", *PSEUDO)
UNIT = {"/dev/nvidia0": ("c", 195, 0)}


def paths(world: World) -> list[str]:
    return [row.path for row in world.container().devices]


def test_a_uid_as_systemd_writes_it() -> None:
    mine = replace(workload(), pod_uid="0dbd65af_6693_11eb_994b_246e9634b5c8")
    assert World(workload=mine, kubelet=kubelet()).container()


def test_entries_of_pods_that_ended_promise_nobody_anything() -> None:
    old = KubeletDevices((entry(pod_uid="other"), entry(container="other")), {})
    assert World(kubelet=old).table().containers == ()


def test_all_in_the_variable_alone_is_no_promise() -> None:
    """Images of CUDA carry it, wherever they run."""
    world = World(specs=spec({}, environment={"NVIDIA_VISIBLE_DEVICES": "all"}))
    assert world.table().containers == ()


@pytest.mark.parametrize("value", ["", "void", "none"])
def test_words_for_nothing(value: str) -> None:
    told = spec({}, environment={"NVIDIA_VISIBLE_DEVICES": value}, hooks=(HOOK,))
    assert World(specs=told).table().containers == ()


@pytest.mark.parametrize("value", ["0", "0,1", "GPU-1f2e", "MIG-1f2e", "0:1"])
def test_who_asks_by_name_wants_it(value: str) -> None:
    told = spec({}, environment={"NVIDIA_VISIBLE_DEVICES": value})
    world = World(specs=told, kernel=PSEUDO)
    one = world.container()
    assert one.promised_by == f"NVIDIA_VISIBLE_DEVICES={value}"
    # The index is not the minor, so no node is named; one of them has to be there.
    assert paths(world) == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidiaN"]
    assert one.devices[2].layers["access"].why == "its /dev has no such device"
    assert one.diagnosis is not None


def test_devices_that_a_hook_gave_are_found_in_its_dev() -> None:
    told = spec({}, environment={"NVIDIA_VISIBLE_DEVICES": "all"}, hooks=(HOOK,))
    world = World(specs=told, own=NVIDIA, kernel=EVERYTHING)
    assert paths(world) == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"]
    assert world.container().diagnosis is None


def test_without_a_process_no_device_is_missed() -> None:
    told = spec({}, environment={"NVIDIA_VISIBLE_DEVICES": "all"}, hooks=(HOOK,))
    world = World(specs=told, kernel=EVERYTHING, is_running=False)
    assert "/dev/nvidiaN" not in paths(world)
    assert world.container().diagnosis is None
    assert any("no process" in words for words in world.container().unseen)


def test_mig() -> None:
    """Two nodes of nvidia-caps beside the GPU: a dynamic major."""
    host = {**NVIDIA, "/dev/nvidia-caps/nvidia-cap21": ("c", 508, 21)}
    given = {**GIVEN, "/dev/nvidia-caps/nvidia-cap21": ("c", 508, 21)}
    drivers = CharDevices({195: "nvidia", 237: "nvidia-uvm", 508: "nvidia-caps"}, {})
    world = World(
        specs=spec(given), own=given, host=host, drivers=drivers,
        kernel=(*EVERYTHING, "c 508:21 rw"),
        kubelet=kubelet(*given, resource="nvidia.com/mig-1g.5gb"),
    )  # fmt: skip
    assert world.container().device_class == "nvidia"
    assert world.container().diagnosis is None
    moved = replace(drivers, char={195: "nvidia", 237: "nvidia-uvm", 509: "nvidia-caps"})
    assert replace(world, drivers=moved).mode() == "F10"


def test_amd() -> None:
    host = {"/dev/kfd": ("c", 234, 0), "/dev/dri/renderD128": ("c", 226, 128)}
    drivers = CharDevices({226: "drm", 234: "kfd"}, {})
    world = World(
        host=host, own=host, specs=spec(host), drivers=drivers,
        kernel=("c 234:0 rw", "c 226:128 rw"), kubelet=kubelet(*host, resource="amd.com/gpu"),
    )  # fmt: skip
    one = world.container()
    assert (one.device_class, one.diagnosis) == ("amd", None)
    lacking = {"/dev/dri/renderD128": host["/dev/dri/renderD128"]}
    broken = replace(
        world, own=lacking, specs=spec(lacking), kernel=("c 226:128 rw",),
        kubelet=kubelet(*lacking, resource="amd.com/gpu"),
    )  # fmt: skip
    assert broken.mode() == "F1"


def test_any_other_class_needs_exactly_what_was_promised() -> None:
    host = {"/dev/infiniband/uverbs0": ("c", 231, 192)}
    world = World(
        host=host, own=host, specs=spec(host), kernel=("c 231:192 rw",),
        kubelet=kubelet(*host, resource="rdma/hca"),
        drivers=CharDevices({231: "infiniband_verbs"}, {}),
    )  # fmt: skip
    one = world.container()
    assert (one.device_class, paths(world), one.diagnosis) == (
        "rdma/hca", ["/dev/infiniband/uverbs0"], None,
    )  # fmt: skip
    assert replace(world, kernel=PSEUDO).mode() == "F6"
    gone = replace(world, host={}, own={}).container().diagnosis
    assert gone is not None
    assert gone.headline == "/dev/infiniband/uverbs0 is missing on the host"


def test_a_monitor_that_was_given_the_control_node_alone() -> None:
    given = only("/dev/nvidiactl")
    world = World(specs=spec(given), own=given, kernel=EVERYTHING)
    assert paths(world) == ["/dev/nvidiactl"]
    assert world.container().diagnosis is None


def test_nodes_of_the_config_beyond_the_usual_ones() -> None:
    given = {"/dev/null": ("c", 1, 3), "/dev/fuse": ("c", 10, 229)}
    world = World(specs=spec(given), own=given, kernel=("c 10:229 rw",))
    one = world.container()
    assert (one.device_class, one.promised_by, paths(world)) == (
        "device", "OCI config", ["/dev/fuse"],
    )  # fmt: skip
    assert one.devices[0].layers["promised"].says == "none"


def test_two_classes_are_two_rows_of_the_table() -> None:
    given = {**GIVEN, "/dev/fuse": ("c", 10, 229)}
    found = World(specs=spec(given), own=given, kernel=("c *:* rw",)).table().containers
    assert [one.device_class for one in found] == ["nvidia", "device"]


def test_privileged_containers_were_promised_nothing_in_particular() -> None:
    told = replace(spec(NVIDIA), rules=rules("a *:* rwm"))
    assert World(specs=told).table().containers == ()


def test_what_was_promised_for_reading_is_not_judged_by_a_try_of_both() -> None:
    host = {"/dev/sensor": ("c", 250, 0)}
    given = (KubeletDevice("/dev/sensor", "/dev/sensor", "r"),)
    told = replace(spec(host), rules=rules("!a *:* rwm", "c 250:0 r"))
    world = World(
        host=host, own=host, specs=told, kernel=("c 250:0 r",), drivers=CharDevices({}, {}),
        kubelet=kubelet(resource="x.io/s", devices=given),
    )  # fmt: skip
    one = world.container()
    assert one.devices[0].errno == errno.EPERM
    assert one.devices[0].layers["access"].says == "unread"
    assert one.diagnosis is None


def test_a_cdi_name_that_no_file_knows() -> None:
    told = spec(GIVEN, cdi_names=("nvidia.com/gpu=7",))
    one = World(specs=told, own=GIVEN, kernel=EVERYTHING).container()
    assert one.promised_by == "CDI nvidia.com/gpu=7"
    assert one.diagnosis is None
    assert any("nvidia.com/gpu=7" in words for words in one.unseen)


def test_a_cdi_spec_with_the_number_of_before() -> None:
    made = CdiNode("/dev/nvidia-uvm", "/dev/nvidia-uvm", 510, 0)
    one = CdiSpec(source="/etc/cdi/nvidia.yaml", kind="nvidia.com/gpu",
                  common=(made, CdiNode("/dev/nvidiactl", "", None, None)), devices={})  # fmt: skip
    (soon,) = World(cdi=CdiSpecs((one,))).table().about_to_break
    assert soon.device == "/dev/nvidia-uvm"
    right = replace(one, common=(made._replace(major=237), one.common[1]))
    assert World(cdi=CdiSpecs((right,))).table().about_to_break == ()
    assert "510" in soon.why
    assert "237 now" in soon.why


def test_other_ways_of_the_same_class() -> None:
    """WSL: no control nodes, and nothing is known of what is needed."""
    told = spec({"/dev/dxg": ("c", 10, 125)}, environment={"NVIDIA_VISIBLE_DEVICES": "0"})
    world = World(specs=told, host={"/dev/dxg": ("c", 10, 125)}, drivers=CharDevices({}, {}))
    assert "/dev/nvidia-uvm" not in [
        row.path for one in world.table().containers for row in one.devices
    ]


# --- plugins and members ----------------------------------------------------------------


def test_plugins_by_their_names() -> None:
    def named(**told: Any) -> bool:
        return bool(find([replace(workload(), **told)]))

    assert named(pod="nvidia-device-plugin-daemonset-x7k")
    assert named(pod="amdgpu-dp-1")
    assert named(pod="x", container="sriov-device-plugin")
    assert not named(pod="train", name="nvidia-device-plugin/train/main")  # a namespace
    assert not named(pod="nvidia-device-plugin-x", is_sandbox=True)


def test_a_plugin_that_has_no_node_of_the_class_does_not_look_there() -> None:
    world = World(plugin={"/dev/null": ("c", 1, 3)})
    assert world.table().plugins[0].lacks == ()


def test_the_eldest_living_process_is_looked_through() -> None:
    mine = workload()
    people = {5: process(5, 300), 7: process(7, 200)._replace(state="Z"), 9: process(9, 250)}
    members = ContainerProcesses.of(
        Workloads({mine.cgroup: mine}, dict.fromkeys(people, mine)), Processes(people, ()),
        Unread("cgroups", "refused"),
    )  # fmt: skip
    assert members.pid_of(mine) == 9
    assert members.cgroup_of(mine) == mine.cgroup


def test_hostile_names_in_its_dev() -> None:
    own: dict[str, Any] = {**NVIDIA, "/dev/nvidia0\n/dev/nvidia9": ("c", 195, 9),
                           "/dev/nvidia" + "9" * 200: ("c", 195, 9)}  # fmt: skip
    told = spec({}, environment={"NVIDIA_VISIBLE_DEVICES": "all"}, hooks=(HOOK,))
    world = World(specs=told, own=own, kernel=EVERYTHING)
    assert paths(world) == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"]


def test_a_container_may_call_its_own_cgroups_as_it_likes() -> None:
    mine = UnitDevices("strict", (), ("mine",))
    units = ScopeDevices({"a.scope": mine, "b.scope": UnitDevices("auto", (), ())}, True)
    host = HostSide(Unread("x", "absent"), DeviceNodes({}, {}, 0), Unread("x", "absent"), units)
    assert host.unit_of("/kubepods.slice/a.scope/system.slice/b.scope") == ("a.scope", mine)
    assert host.unit_of("/user.slice/c.service/b.scope/init.scope") == (
        "b.scope", units.by_unit["b.scope"],
    )  # fmt: skip
    assert host.unit_of("/kubepods/pod1/0") is None


def test_a_dev_that_was_not_read_whole_lacks_nothing_for_certain() -> None:
    nothing = Unread("x", "absent")
    assert HostSide(nothing, DeviceNodes({}, {}, 0), nothing, nothing).lacks("/dev/nvidiactl")
    assert not HostSide(nothing, DeviceNodes({}, {}, 9), nothing, nothing).lacks("/dev/nvidiactl")


# --- how long it takes ------------------------------------------------------------------

COUNT, EACH = 100, 8


def many() -> tuple[list[ContainerSide], HostSide, Sources]:
    """100 containers with 8 devices each, each with a program of its own, under systemd."""
    devices: dict[str, Any] = {**GIVEN, **{f"/dev/nvidia{n}": ("c", 195, n) for n in range(2, 7)}}
    standard = [Rule(2, 7, 1, minor) for minor in (3, 5, 7, 8, 9)] + [Rule(2, 1), Rule(1, 1)]
    specs, attached, programs, units = {}, {"/": (), SLICE: ()}, {}, {}
    entries, sides = [], []
    for index in range(COUNT):
        key = f"{index:064x}"
        cgroup = f"{SLICE}/pod{index}.slice/cri-containerd-{key}.scope"
        attached[cgroup] = (index,)  # type: ignore[assignment]
        attached[f"{SLICE}/pod{index}.slice"] = attached.setdefault("/kubepods.slice", ())
        mine = [Rule(2, 6, major, minor) for _, major, minor in devices.values()]
        programs[index] = runc(*standard, Rule(2, 6, 1000 + index), *mine)
        allow = tuple((f"/dev/char/{m}:{n}", "rw") for _, m, n in devices.values())
        units[f"cri-containerd-{key}.scope"] = UnitDevices("strict", allow, ())
        specs[key] = replace(spec(devices), container_id=key)
        entries.append(entry(*devices, pod_uid=str(index)))
        sides.append(workload(cgroup, container_id=key, pod_uid=str(index)))
    host = HostSide(
        CharDevices({195: "nvidia", 237: "nvidia-uvm"}, {}),
        DeviceNodes(nodes({**NVIDIA, **devices}), {}, 0),
        DeviceCgroups(2, {}, attached, programs), ScopeDevices(units, True),
    )  # fmt: skip
    sources = Sources(DeviceSpecs(specs), KubeletDevices(tuple(entries), {}), CdiSpecs(()))
    access = Access({path: Tried(path, 0, *number, 0o666, None)
                     for path, number in devices.items()}, None)  # fmt: skip
    return [
        ContainerSide(promise=one, spec=sources.spec_of(one.workload), cgroup=one.workload.cgroup,
                      own_nodes=nodes(devices), access=access)
        for one in promises(sides, sources)
    ], host, sources  # fmt: skip


def test_a_hundred_containers_are_quick() -> None:
    began = time.process_time()
    sides, host, sources = many()
    made = time.process_time()
    table = table_of(DeviceSides(sides, host, sources))
    spent = time.process_time() - made
    assert [len(one.devices) for one in table.containers] == [EACH] * COUNT
    assert all(one.diagnosis is None for one in table.containers)
    assert {row.layers["kernel"].says for one in table.containers for row in one.devices} == {"yes"}
    assert not table.about_to_break
    # Well below on an idle machine; a loaded one is given room.
    assert spent < 1.0, f"{spent:.3f} s, after {made - began:.3f} s of making it"


def test_the_topic_is_found_by_its_class() -> None:
    from tests.case_host import parse_case

    from seawall.readings.snapshot import Snapshot

    nothing = parse_case(b"why: no cgroups\nverdict: quiet\n").rounds[0]
    assert isinstance(Snapshot(nothing).get(DeviceTable), Unread)
    mine = workload(PLUGIN)
    known = {Workloads: Workloads({PLUGIN: mine}, {}), CharDevices: CharDevices({}, {})}
    moment = Snapshot(nothing, known)
    assert isinstance(moment.get(DeviceTable), DeviceTable)
    # Nobody was promised anything: nothing more was read.
    assert not moment.has(DeviceCgroups)
