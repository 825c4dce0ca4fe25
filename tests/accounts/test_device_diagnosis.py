"""The failure modes, each from evidence; and what is no evidence."""

import errno
from typing import Any

import pytest
from tests.accounts.device_worlds import (
    HOOK,
    ID,
    NVIDIA,
    PSEUDO,
    SYSTEMD,
    World,
    changed,
    kubelet,
    only,
    spec,
    unit,
    workload,
)  # fmt: skip

from seawall.accounts.devices.layers import ContainerDevices, DeviceRow, Diagnosis
from seawall.host.host import Unread
from seawall.readings.char_devices import CharDevices

GIVEN = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1")
ALLOWED = ("c 195:255 rw", "c 237:0 rw", "c 195:1 rw", *PSEUDO)


def row(one: ContainerDevices, path: str) -> DeviceRow:
    return next(row for row in one.devices if row.path == path)


def diagnosis(world: World) -> Diagnosis:
    found = world.container().diagnosis
    assert found is not None
    return found


def says(found: DeviceRow) -> tuple[str, ...]:
    return tuple(answer.says for answer in found.layers.values())


def healthy(**told: Any) -> World:
    """cgroupfs, a checkpoint, everything given."""
    values = {
        "specs": spec(only(*GIVEN)), "own": only(*GIVEN), "kernel": ALLOWED,
        "kubelet": kubelet(*GIVEN),
    }  # fmt: skip
    return World(**(values | told))


def under_systemd(**told: Any) -> World:
    allow = ("/dev/char/195:255 rw", "/dev/char/237:0 rw", "/dev/char/195:1 rw")
    values = {"cgroup": SYSTEMD, "scopes": unit(*allow), "workload": workload(SYSTEMD)}
    return healthy(**(values | told))


def test_all_layers_agree() -> None:
    one = healthy().container()
    assert one.diagnosis is None
    assert one.device_class == "nvidia"
    assert one.promised_by == "kubelet checkpoint: 1 x nvidia.com/gpu"
    assert [found.path for found in one.devices] == list(GIVEN)
    uvm = row(one, "/dev/nvidia-uvm")
    assert says(uvm) == ("yes", "yes", "none", "yes", "yes")
    assert (uvm.kind, uvm.major, uvm.minor, uvm.errno, uvm.broken_at) == ("c", 237, 0, 0, None)
    assert under_systemd().container().diagnosis is None
    assert not healthy().table().about_to_break


# --- F1 ---------------------------------------------------------------------------------

SEED_NODE = CharDevices({1: "mem", 195: "nvidia-frontend", 237: "nvidia-uvm"}, {8: "sd"})
SEED_LIST = (
    "c 1:5 rwm", "c 1:3 rwm", "c 1:9 rwm", "c 1:8 rwm", "c 5:0 rwm", "c 5:1 rwm", "c 195:255 rw",
    "c 195:1 rw", "c *:* m", "b *:* m", "c 1:7 rwm", "c 136:* rwm", "c 5:2 rwm", "c 10:200 rwm",
)  # fmt: skip
SEED_PLUGIN: dict[str, Any] = {
    **{f"/dev/nvidia{n}": ("c", 195, n) for n in range(4)}, "/dev/nvidiactl": ("c", 195, 255),
}  # fmt: skip


def seed(**told: Any) -> World:
    """The published incident: its devices.list, docker inspect, strace and the plugin's /dev.
    The program saw the node (stat) and was refused (EPERM).
    """
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    values = {
        "host": {**SEED_PLUGIN, "/dev/nvidia-uvm": ("c", 237, 0),
                 "/dev/nvidia-uvm-tools": ("c", 237, 1)},
        "drivers": SEED_NODE, "specs": spec(given), "kernel": SEED_LIST, "plugin": SEED_PLUGIN,
        "own": {**given, "/dev/nvidia-uvm": ("c", 237, 0)},
    }  # fmt: skip
    return World(**(values | told))


@pytest.mark.parametrize("is_running", [True, False])
def test_the_published_incident_is_f1_and_the_plugin_is_named(is_running: bool) -> None:
    """Also from its files alone, when nothing can be tried any more."""
    world = seed(is_running=is_running)
    table = world.table()
    (one,) = table.containers
    uvm = row(one, "/dev/nvidia-uvm")
    assert uvm.broken_at == "configured"
    assert uvm.errno == (errno.EPERM if is_running else None)
    assert says(uvm)[3] == "no"
    found = one.diagnosis
    assert found is not None
    assert found.mode == "F1"
    assert found.headline == (
        "/dev/nvidia-uvm (c 237:0) was never given to this container; the host has it"
    )
    assert "kube-system/nvidia-device-plugin-x7/ctr" in found.cause
    assert "/dev/nvidia-uvm" in found.cause
    assert found.remedy.startswith(
        "Restart the plugin pod (kube-system/nvidia-device-plugin-x7/ctr), then recreate the pods"
    )
    assert "undone" in found.remedy
    assert "has to be restarted" in found.remedy
    (plugin,) = table.plugins
    assert plugin.lacks == ("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
    soon = [one for one in table.about_to_break if one.when == "the next pod that it serves"]
    assert [one.device for one in soon] == ["/dev/nvidia-uvm"]


def test_the_repair_by_hand_of_the_incident_is_about_to_be_undone() -> None:
    table = seed(kernel=(*SEED_LIST, "c 237:0 rw")).table()
    (one,) = table.containers
    assert one.diagnosis is None
    assert row(one, "/dev/nvidia-uvm").layers["access"].says == "yes"
    undone = [one for one in table.about_to_break if one.workload == table.containers[0].workload]
    assert [(one.device, one.when) for one in undone] == [
        ("/dev/nvidia-uvm", "the next update of the container")
    ]
    assert "does not last" in undone[0].remedy


def test_f1_of_a_checkpoint_breaks_at_the_promise() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    world = healthy(
        kubelet=kubelet(*given), specs=spec(given), own=given, kernel=SEED_LIST,
        plugin=SEED_PLUGIN,
    )  # fmt: skip
    one = world.container()
    assert row(one, "/dev/nvidia-uvm").broken_at == "promised"
    assert world.mode() == "F1"
    assert "names /dev/nvidiactl, /dev/nvidia1, and not this" in (
        row(one, "/dev/nvidia-uvm").layers["promised"].why
    )


def test_a_plugin_that_was_restarted_meanwhile_is_not_blamed() -> None:
    found = diagnosis(seed(plugin=NVIDIA))
    assert found.mode == "F1"
    assert "does have the node" in found.cause
    assert found.remedy.startswith("Recreate the pod")


def test_without_a_plugin_whoever_started_it_left_it_out() -> None:
    mine = workload(f"/docker/{ID}", name="docker:job", pod=None, pod_uid=None, namespace=None)
    found = diagnosis(seed(plugin=None, workload=mine))
    assert found.mode == "F1"
    assert "--device /dev/nvidia-uvm" in found.remedy
    assert "plugin pod" not in found.remedy


def test_utilities_do_without_uvm() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    for wanted, mode in (
        ("utility", None),
        ("graphics,utility", None),
        ("compute", "F1"),
        ("utility,compute", "F1"),
        ("", "F1"),
    ):
        environment = {"NVIDIA_DRIVER_CAPABILITIES": wanted}
        assert seed(specs=spec(given, environment=environment)).mode() == mode


def test_a_hook_beside_a_list_of_nodes_does_not_excuse_the_list() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    environment = {"NVIDIA_VISIBLE_DEVICES": "GPU-5a"}
    world = seed(specs=spec(given, hooks=(HOOK,), environment=environment))
    assert row(world.container(), "/dev/nvidia-uvm").layers["configured"].says == "no"
    assert world.mode() == "F1"


def test_the_plugin_itself_is_no_tenant() -> None:
    asks = spec({}, hooks=(HOOK,), environment={"NVIDIA_VISIBLE_DEVICES": "all"})
    world = seed(plugin=SEED_PLUGIN, specs=asks, workload=workload(pod="nvidia-device-plugin-z"))
    assert world.table().containers == ()


# --- F2 ---------------------------------------------------------------------------------


def test_f2_the_host_lacks_it() -> None:
    lacking = {path: number for path, number in NVIDIA.items() if "uvm" not in path}
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    world = healthy(
        host=lacking, specs=spec(given), own=given, kernel=SEED_LIST, kubelet=kubelet(*given),
        plugin=SEED_PLUGIN,
    )  # fmt: skip
    found = diagnosis(world)
    assert found.mode == "F2"
    assert "nvidia-modprobe -u -c 0" in found.remedy
    table = world.table()
    assert [one.mode for one in table.host_diagnosis] == ["F2"]
    assert [node.path for node in table.host_nodes if not node.is_there] == [
        "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
    ]  # fmt: skip
    assert not table.plugins[0].lacks
    uvm = row(table.containers[0], "/dev/nvidia-uvm")
    assert (uvm.major, uvm.minor) == (237, 0)  # /proc/devices tells, without any node


def test_f2_the_driver_is_not_loaded() -> None:
    lacking = {path: number for path, number in NVIDIA.items() if "uvm" not in path}
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    drivers = CharDevices({195: "nvidia"}, {}, {195: ("nvidiactl",)})
    world = healthy(host=lacking, specs=spec(given), own=given, drivers=drivers)
    assert diagnosis(world).mode == "F2"
    assert "not loaded" in diagnosis(world).headline
    assert not world.table().host_diagnosis


def test_a_hook_that_came_before_the_node() -> None:
    given = only("/dev/nvidiactl", "/dev/nvidia1")
    environment = {"NVIDIA_VISIBLE_DEVICES": "all"}
    world = World(
        specs=spec({}, hooks=(HOOK,), environment=environment), own=given, kernel=SEED_LIST
    )
    found = diagnosis(world)
    assert found.mode == "F2"
    assert "nvidia-container-runtime-hook" in found.cause


# --- F3, F4, F6 -------------------------------------------------------------------------

RELOADED = ("c 195:* m", *PSEUDO)
LINKS = {(195, 255): "../nvidiactl", (237, 0): "../nvidia-uvm", (195, 1): "../nvidia1"}


def test_f3_what_a_hook_gave_is_gone_after_a_reload() -> None:
    environment = {"NVIDIA_VISIBLE_DEVICES": "GPU-5a"}
    world = World(
        cgroup=SYSTEMD, workload=workload(SYSTEMD), scopes=unit("char-pts rwm"), kernel=RELOADED,
        specs=spec({}, hooks=(HOOK,), environment=environment), own=only(*GIVEN),
    )  # fmt: skip
    one = world.container()
    assert one.promised_by == "NVIDIA_VISIBLE_DEVICES=GPU-5a"
    assert says(row(one, "/dev/nvidiactl")) == ("yes", "none", "no", "no", "no")
    assert row(one, "/dev/nvidiactl").broken_at == "systemd"
    found = diagnosis(world)
    assert found.mode == "F3"
    assert "nvidia-container-runtime-hook gave it" in found.cause
    assert "until the next reload" in found.remedy
    assert "(the same of 2 more)" in found.headline


def test_f4_no_link_so_runc_left_the_rule_out() -> None:
    world = under_systemd(scopes=unit("char-pts rwm"), kernel=RELOADED)
    found = diagnosis(world)
    assert found.mode == "F4"
    assert "/dev/char/195:255" in found.cause
    assert "create-dev-char-symlinks" in found.remedy
    with_links = changed(world, links=LINKS)
    assert diagnosis(with_links).mode == "F3"


def test_before_the_reload_it_is_about_to_break() -> None:
    world = under_systemd(scopes=unit("char-pts rwm"))
    table = world.table()
    assert table.containers[0].diagnosis is None
    assert {one.when for one in table.about_to_break} == {"the next daemon-reload"}
    assert [one.device for one in table.about_to_break] == list(GIVEN)
    assert "/dev/char/195:255 is missing" in table.about_to_break[0].why
    assert not changed(world, scopes=unit("char-nvidia* rw")).table().about_to_break


def test_f6_the_rules_were_rewritten() -> None:
    found = diagnosis(healthy(kernel=RELOADED))
    assert found.mode == "F6"
    assert "daemon-reload" not in found.remedy
    both = diagnosis(under_systemd(kernel=RELOADED))
    assert both.mode == "F6"
    assert "daemon-reload" not in both.remedy, "it takes devices from others that are latent"


# --- F10, mode, unnamed -----------------------------------------------------------------


def test_f10_the_major_is_another_one_now() -> None:
    drivers = CharDevices({195: "nvidia", 511: "nvidia-uvm"}, {})
    host = {**NVIDIA, "/dev/nvidia-uvm": ("c", 511, 0), "/dev/nvidia-uvm-tools": ("c", 511, 1)}
    found = diagnosis(healthy(drivers=drivers, host=host))
    assert found.mode == "F10"
    assert "major 237" in found.headline
    assert "511 now" in found.headline
    uvm = row(healthy(drivers=drivers, host=host).container(), "/dev/nvidia-uvm")
    assert uvm.major == 511
    assert uvm.layers["configured"].says == "no"
    assert "it is c 511:0 now" in uvm.layers["configured"].why
    assert "its node is c 237:0" in uvm.layers["access"].why


def test_f10_of_the_host_itself() -> None:
    drivers = CharDevices({195: "nvidia", 511: "nvidia-uvm"}, {})
    table = healthy(drivers=drivers).table()
    assert [one.mode for one in table.host_diagnosis] == ["F10", "F10"]
    assert [node.is_there for node in table.host_nodes] == [True, False, False]
    assert [node.found for node in table.host_nodes] == ["", "c 237:0", "c 237:1"]


def test_what_is_needed_is_told_before_what_is_optional() -> None:
    given = (*GIVEN, "/dev/nvidia-uvm-tools")
    refused = {"/dev/nvidia-uvm-tools": errno.EIO}
    world = healthy(specs=spec(only(*given)), own=only(*given), kubelet=kubelet(*given))
    assert "uvm-tools" in diagnosis(changed(world, errors=refused)).headline
    both = diagnosis(changed(world, errors={**refused, "/dev/nvidia1": errno.EACCES},
                             modes={"/dev/nvidia1": 0o660}))  # fmt: skip
    assert both.mode == "mode"
    assert "fail" not in both.headline


@pytest.mark.parametrize(
    "told",
    [
        {"errors": {"/dev/nvidia1": errno.EPERM}},  # the rules that are seen allow it
        {"errors": {"/dev/nvidia1": errno.EIO}},
        {"own": only("/dev/nvidiactl", "/dev/nvidia-uvm")},
        {"errors": {"/dev/nvidia1": errno.EPERM}, "kernel": ("a *:* rwm",)},
    ],
)
def test_what_fits_nothing_is_unnamed(told: dict[str, Any]) -> None:
    found = diagnosis(healthy(**told))
    assert found.mode == "unnamed"
    assert found.cause.startswith("It fits no known failure.")
    assert "plugin" not in found.remedy


def test_what_could_not_be_seen_is_told_and_nobody_is_blamed() -> None:
    world = healthy(own="no_answer", kernel=Unread("devices.list", "refused"))
    one = world.container()
    assert one.diagnosis is None
    assert says(row(one, "/dev/nvidia1"))[3:] == ("unread", "unread")
    assert any("no_answer" in words for words in one.unseen)
    no_config = healthy(specs=Unread("config.json", "refused")).container()
    assert no_config.diagnosis is None
    assert any("config.json: refused" in words for words in no_config.unseen)


def test_the_host_is_not_asked_for_what_nobody_needs() -> None:
    world = World(drivers=CharDevices({1: "mem"}, {}))
    assert world.table().containers == ()
    # Sockets alone: promises may be told there and nowhere else.
    assert world.asked == ["pod_resources", "cri"]
