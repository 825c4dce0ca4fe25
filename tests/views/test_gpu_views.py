"""``seawall gpu`` as text and as JSON, from tables made by hand."""

import errno
import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.accounts.device_worlds import row

from seawall.accounts.devices.device_changes import Differs
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import (
    LAYERS,
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    Plugin,
    Since,
    UpcomingLoss,
)
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.views.document import head, render
from seawall.views.documents.gpu_documents import GPU
from seawall.views.gpu_page import GpuPage, state_of
from seawall.views.gpu_text import lines
from seawall.views.gpu_unseen import unseen_rows
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/gpu.json").read_text())
HOSTILE = "/dev/\x1b[2J\nnvidia9\udcff"
F1 = Diagnosis(
    "F1",
    "/dev/nvidia-uvm was left out when the pod was allocated",
    "The plugin's own /dev lacked it.",
    "Restart the plugin's pod, then recreate the pod.",
)
GONE = HostNode(
    path="/dev/nvidia-uvm", driver="nvidia-uvm", major=511, minor=0, is_there=False
)  # fmt: skip
KFD = HostNode(path="/dev/kfd", driver="kfd", major=234, minor=0, is_there=True)


SINCE = Since(1_795_317_247.0, "the last daemon-reload")


UVM = row(
    "/dev/nvidia-uvm", "no-no-no-no-no", major=237, errno=errno.EPERM, broken_at="promised"
)  # fmt: skip
NOT_TRIED = row("/dev/nvidia1", "yes-unread-none-unread-unread", errno=None)


def container(
    name: str, *rows: DeviceRow, diagnosis: Diagnosis | None = None, unseen: tuple[str, ...] = ()
) -> ContainerDevices:
    return ContainerDevices(
        workload=Workload(kind="container", name=name, cgroup=f"/kubepods/{name}"),
        device_class="nvidia", promised_by="kubelet checkpoint", devices=rows,
        diagnosis=diagnosis, unseen=unseen,
    )  # fmt: skip


def page(*containers: ContainerDevices, **more: Any) -> GpuPage:
    table = DeviceTable(
        host_nodes=more.pop("host_nodes", ()), plugins=more.pop("plugins", ()),
        containers=containers, about_to_break=more.pop("soon", ()),
        host_diagnosis=more.pop("host_diagnosis", ()), unseen=more.pop("unseen_table", ()),
    )  # fmt: skip
    values = {"table": table, "wanted": None, "drivers": (), "opens": False, "is_root": True,
              "unseen": (), "bundle_notes": (), **more}  # fmt: skip
    made = GpuPage(**values)
    unseen = unseen_rows(made.table, made.containers, is_root=made.is_root)
    return replace(made, unseen=tuple(unseen))


def shown(made: GpuPage, *, whole: bool = False, **paper: Any) -> str:
    return "\n".join(lines(made, Console(**paper), whole=whole))


def flat(made: GpuPage, **more: Any) -> str:
    return " ".join(shown(made, **more).split())


BROKEN = container("train/job-7/main", row("/dev/nvidiactl"), UVM, diagnosis=F1)
FINE = container("train/job-8/main", row("/dev/nvidiactl"), row("/dev/nvidia3"))


def test_the_first_line_says_the_worst() -> None:
    many = [container(f"train/job-{n}/main", row("/dev/nvidiactl")) for n in range(10, 22)]
    text = shown(page(FINE, BROKEN, *many))
    first = text.splitlines()[0]
    assert first == "1 of 14 containers cannot use what they were promised."


def test_a_broken_container_has_its_diagnosis_and_its_five_layers() -> None:
    text = shown(page(FINE, BROKEN))
    words = " ".join(text.split())
    assert "F1 train/job-7/main: /dev/nvidia-uvm was left out when the pod was" in words
    assert "cause The plugin's own /dev lacked it." in words
    assert "do Restart the plugin's pod, then recreate the pod." in words
    assert "seen /dev/nvidia-uvm: promised: why promised; access: why access" in words
    assert "promised by kubelet checkpoint" in words
    heads = next(line.split() for line in text.splitlines() if line.startswith("  device"))
    assert heads == ["device", "number", *LAYERS]
    cells = next(line.split() for line in text.splitlines() if line.startswith("  /dev/nvidia-uvm"))
    assert cells == ["/dev/nvidia-uvm", "237:0", "NO", "no", "no", "no", "EPERM"]
    assert text.index("  /dev/nvidia-uvm ") < text.index("  /dev/nvidiactl "), "broken ones first"
    assert "train/job-8/main: 2 devices, all answered" in words


def test_what_is_broken_in_the_same_way_is_told_once() -> None:
    broken = [container(f"a/b-{n}/c", UVM, diagnosis=F1) for n in range(30)]
    words = flat(page(*broken))
    assert words.count("The plugin's own /dev lacked it.") == 1
    assert "also the same: a/b-1/c" in words
    assert "and 14 more" in words
    assert "a/b-29/c" in flat(page(*broken), whole=True)


def test_lines_fit_and_names_cannot_steer_a_terminal() -> None:
    hostile = row(HOSTILE, "yes-no-none-no-no", errno=errno.EACCES, broken_at="configured")
    bad = Diagnosis("unnamed", HOSTILE, HOSTILE, HOSTILE)
    made = page(
        container("x/\x1b[31my/z", hostile, row("/dev/" + "n" * 300), diagnosis=bad),
        container("u", NOT_TRIED, unseen=(HOSTILE,)),
        plugins=(Plugin(workload=FINE.workload, pid=1, lacks=(HOSTILE,)),),
        soon=(UpcomingLoss(FINE.workload, HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        host_nodes=(GONE,), host_diagnosis=(bad,), unseen_table=(HOSTILE,),
    )  # fmt: skip
    text = shown(made, whole=True)
    assert "\x1b" not in text
    assert "\udcff" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b[1;31m" in shown(made, colour=True)
    checked(made)


def test_what_was_not_tried_is_never_healthy() -> None:
    unsure = container("a/b/c", NOT_TRIED, unseen=("what it may open: root on the host",))
    assert state_of(unsure) == "untried"
    words = flat(page(unsure, is_root=False))
    assert words.startswith(
        "The container could not be tried: whether its devices can be used is not known. You are "
        "not root: 1 thing was not seen: see the end."
    )
    assert "a/b/c: 1 device, 0 answered; the rest was not tried" in words
    assert "which devices could not be told" in flat(page(container("a/b/c")))
    mixed = flat(page(unsure, FINE))
    assert mixed.startswith("1 of 2 containers could not be tried; none of the others is broken.")


def test_an_optional_device_that_is_refused_breaks_nothing() -> None:
    modeset = row(
        "/dev/nvidia-modeset", "no-no-none-no-no", is_needed=False, errno=1, broken_at="promised"
    )
    fine = container("a/b/c", row("/dev/nvidia0"), modeset)
    assert state_of(fine) == "works"
    words = flat(page(fine))
    assert words.startswith("The container can use what it was promised.")
    assert "2 devices, 1 answered; not needed and refused: /dev/nvidia-modeset" in words


@pytest.mark.parametrize(
    ("drivers", "nodes", "unseen", "expected"),
    [
        ((), (), (), "No container here was promised a device; /proc/devices knows no GPU driver."),
        ((), (), ("it: root",), "No container here that could be seen was promised a device;"),
        (("nvidia-uvm",), (GONE,), (), "a device; loaded: nvidia-uvm. On the host /dev/nvidia-uvm"),
        (("kfd",), (), (), "loaded: kfd; whether their control nodes are there was not seen."),
        (("kfd",), (KFD,), (), "loaded: kfd, and all 1 of their control nodes are there."),
        (
            None,
            (),
            ("/proc/devices: x",),
            "promised a device. 1 thing was not seen: see the end.",
        ),
    ],
)
def test_a_host_without_promises(drivers: Any, nodes: Any, unseen: Any, expected: str) -> None:
    assert expected in flat(page(drivers=drivers, host_nodes=nodes, unseen_table=unseen))


def test_control_nodes_say_what_makes_them() -> None:
    words = flat(page(FINE, host_nodes=(GONE,)))
    assert "missing, though nvidia-uvm is loaded (c 511:0)" in words
    assert "nvidia-modprobe -u -c 0, or mknod -m 666 /dev/nvidia-uvm c 511 0" in words
    stale = flat(page(FINE, host_nodes=(replace(GONE, found="c 510:0"),)))
    assert "/dev/nvidia-uvm is c 510:0, but nvidia-uvm is c 511:0 now" in stale
    assert "or rm -f /dev/nvidia-uvm && mknod -m 666 /dev/nvidia-uvm c 511 0" in stale


def test_a_plugin_that_lacks_nodes_and_what_is_about_to_break() -> None:
    plugin = Plugin(
        workload=FINE.workload, pid=7, lacks=("/dev/nvidia-uvm",), names_nodes="yes"
    )  # fmt: skip
    soon = UpcomingLoss(FINE.workload, "/dev/nvidia3", "systemd does not know it",
                "the next daemon-reload", "recreate the pod")  # fmt: skip
    words = flat(page(FINE, plugins=(plugin,), soon=(soon,)))
    assert "The device plugin cannot hand out all that the host has. 1 about to break." in words
    assert "Device plugin train/job-8/main: its own /dev lacks /dev/nvidia-uvm" in words
    assert "/dev/nvidia3: systemd does not know it when: the next daemon-reload" in words
    assert "every pod that it serves from now on will lack it too. Restart" in words


def test_a_plugin_of_which_nothing_tells_whether_it_names_nodes_is_not_condemned() -> None:
    plugin = Plugin(workload=FINE.workload, pid=7, lacks=("/dev/nvidia-uvm",))
    words = flat(page(FINE, plugins=(plugin,)))
    assert "cannot hand out" not in words
    assert "if it names nodes in its answers (PASS_DEVICE_SPECS), every pod" in words


def test_a_plugin_that_is_named_is_told_of() -> None:
    one = Workload(kind="container", name="kube-system/dp/ctr", cgroup="/kubepods/dp")
    plugin = Plugin(workload=one, pid=7, lacks=("/dev/nvidia-uvm",), names_nodes="yes")
    words = flat(page(FINE, plugins=(plugin,), wanted=one))
    assert words.startswith("kube-system/dp/ctr is a device plugin: it hands out devices")
    assert "its own /dev lacks /dev/nvidia-uvm" in words


def test_no_promise_is_no_answer_where_its_witness_was_not_seen() -> None:
    nobody = Workload(kind="container", name="web/x/y", cgroup="/kubepods/web")
    words = flat(page(FINE, wanted=nobody, unseen_table=("the kubelet's checkpoint, /c: refused",)))
    assert words.startswith("No promise of a device to web/x/y was found in what could be seen.")


def test_what_its_own_config_names_was_not_promised() -> None:
    own = row("/dev/nvidia-uvm", "none-no-none-no-no", errno=errno.EPERM, broken_at="configured")
    words = flat(page(container("a/b/c", own, diagnosis=F1)))
    assert words.startswith("The container cannot use what its config names.")
    assert "named by kubelet checkpoint" in words


def test_what_was_not_seen_is_told_in_words_once_and_with_what_would_provide_it() -> None:
    told = (
        "the kubelet's checkpoint, /c: not_captured the bundle does not hold it",
        "a CDI spec, /etc/cdi: not_captured the bundle does not hold it",
        "the host's /dev, device_nodes: no_answer",
        "the kernel's device rules, /sys: refused Permission denied",
    )
    found = page(FINE, unseen_table=told, is_root=False).unseen
    assert [(row.what, row.why) for row in found] == [
        ("the kubelet's checkpoint, /c; a CDI spec, /etc/cdi", "the bundle does not hold it"),
        ("the host's /dev, device_nodes", "it did not answer in time"),
        ("the kernel's device rules, /sys", "Permission denied"),
    ]
    assert found[0].provide == "capture the machine again with this version of seawall"
    assert found[2].provide.startswith("root on the host")


def test_the_last_moment_of_a_bundle_that_says_otherwise_comes_first() -> None:
    differs = Differs(FINE.workload, "nvidia", "F1", "cannot use all of its devices: x")
    made = replace(page(FINE), moments=2, at_last=(differs,))
    assert shown(made).splitlines()[1:3] == [
        "Shown: the first of 2 moments of this bundle.",
        "At the last moment of this bundle train/job-8/main cannot use all of its",
    ]
    assert checked(made)["at_last_moment"][0]["mode"] == "F1"
    assert "moment" not in shown(page(FINE))


def test_one_workload_is_shown_whole_and_nobody_else() -> None:
    made = page(FINE, BROKEN, wanted=FINE.workload, host_nodes=(GONE,))
    text = shown(made)
    assert "job-7" not in text
    assert "511" not in text, "the host was not asked for"
    assert "  /dev/nvidia3  " in text
    nobody = Workload(kind="container", name="web/x/y", cgroup="/kubepods/web")
    assert flat(page(FINE, wanted=nobody)) == "web/x/y was promised no device."


def test_many_devices_are_bounded() -> None:
    rows = [row(f"/dev/nvidia{n}", minor=n) for n in range(40)]
    broken = container("a/b/c", UVM, *rows, diagnosis=F1)
    text = shown(page(broken))
    assert "  and 31 more devices, all answered" in text
    assert "/dev/nvidia39" in shown(page(broken), whole=True)
    many = [container(f"a/{n}/c", row("/dev/nvidia0")) for n in range(40)]
    assert "and 25 more; --whole has them" in shown(page(*many))


def test_a_table_that_was_not_there_is_no_answer() -> None:
    missing = Unread("/proc/devices", "refused", "Permission denied")
    made = page(table=missing)
    assert shown(made) == "Nothing can be told of devices: /proc/devices: Permission denied."
    assert unseen_rows(missing, (), is_root=True) == []
    assert checked(made)["containers"] == []


# --- JSON ------------------------------------------------------------------------------


def checked(made: GpuPage) -> dict[str, Any]:
    found = json.loads(render(GPU.of(head("gpu", Unread("kernel", "absent"), None), made)))
    jsonschema.validate(found, SCHEMA)
    assert isinstance(found, dict)
    return found


def test_json_holds_the_contract() -> None:
    plugin = Plugin(workload=FINE.workload, pid=7, lacks=("/dev/nvidia-uvm",))
    soon = UpcomingLoss(None, "/dev/nvidia3", "w", "the next daemon-reload", "r")
    found = checked(page(FINE, BROKEN, plugins=(plugin,), soon=(soon,), host_nodes=(GONE,)))
    assert found["schema"] == "seawall.gpu/1"
    broken, fine = found["containers"]
    assert (broken["workload"], broken["state"]) == ("train/job-7/main", "broken")
    assert broken["diagnosis"]["mode"] == "F1"
    uvm = next(one for one in broken["devices"] if one["path"] == "/dev/nvidia-uvm")
    assert (uvm["major"], uvm["minor"], uvm["errno"], uvm["broken_at"]) == (237, 0, 1, "promised")
    assert uvm["layers"]["access"] == {"says": "no", "why": "why access"}
    assert (fine["diagnosis"], fine["state"]) == (None, "works")
    assert found["plugin"][0]["lacks"] == ["/dev/nvidia-uvm"]
    assert found["about_to_break"][0]["workload"] is None
    assert found["host_nodes"][0]["is_there"] is False


def test_since_when_stands_below_the_headline() -> None:
    broken = replace(container("a", UVM, diagnosis=F1), since=SINCE)
    one = replace(page(broken), taken_at=SINCE.at + 7500)
    found = list(lines(one, Console(width=80, colour=False), whole=False))
    at = next(number for number, line in enumerate(found) if line.startswith("F1"))
    words = " ".join(found[at : at + 4])
    assert "since   2026-11-22 03:14:07 UTC, 2 h 5 min: the last daemon-reload" in words
    (told,) = GPU.of(head("gpu", Unread("kernel", "absent"), None), one)["containers"]
    assert told["diagnosis"]["since"] == {
        "at": "2026-11-22T03:14:07Z", "how": "the last daemon-reload"}  # fmt: skip
    text = "\n".join(lines(page(broken), Console(width=80, colour=False), whole=False))
    assert "since   2026-11-22 03:14:07 UTC: the last" in text, "the moment is not known"


def test_an_absurd_since_is_no_crash() -> None:
    broken = replace(container("a", UVM, diagnosis=F1), since=Since(1e300, "x"))
    one = page(broken)
    (told,) = GPU.of(head("gpu", Unread("kernel", "absent"), None), one)["containers"]
    assert told["diagnosis"]["since"] is None
    assert "an unknown time" in "\n".join(lines(one, Console(width=80, colour=False), whole=True))
