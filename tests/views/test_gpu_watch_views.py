"""``seawall gpu --watch`` as lines of text and of JSON."""

import json
from dataclasses import replace
from errno import EACCES, EPERM
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.accounts.device_looks import (
    ALLOWED,
    APP,
    GPU,
    REFUSED,
    RUNC,
    SHELL,
    START,
    UVM,
    look,
    moment,
    rule,
    told,
    watching,
    write,
)  # fmt: skip

from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import (
    AccessEvent,
    Begun,
    Blind,
    DeviceKey,
    DeviceMoment,
    Line,
    Stand,
    WatchEnded,
)
from seawall.readings.device_writers import DeviceWriter
from seawall.views.documents.gpu_event_document import json_lines
from seawall.views.gpu_watch_text import WatchText
from seawall.views.gpu_watch_words import event_words, writer_words
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-event.json").read_text())
HOSTILE = "sh\x1b[2J\n\udcff" + "x" * 300


SHELL_WORDS = "sh (pid 4701, program dash, child of sshd)"


def text(*lines: Line, colour: bool = False) -> list[str]:
    view = WatchText(Console(colour=colour))
    return [one for line in lines for one in view.lines(line)]


def documents(*lines: Line) -> list[dict[str, Any]]:
    found = [json.loads(one) for line in lines for one in json_lines(line)]
    for one in found:
        jsonschema.validate(one, SCHEMA)
    return found


def flap() -> list[AccessEvent]:
    """A repair by hand that a runtime undoes."""
    _, events = watching(
        look(0, {UVM: REFUSED}, rules=rule("c 195:0 rw")),
        look(3, {UVM: ALLOWED}, write(2.75, SHELL, "devices.allow"), rules=rule("c 510:0 rw")),
        look(11.2, {UVM: REFUSED}, write(11, RUNC), rules=rule("c 195:0 rw")),
    )
    return events


def begun(**more: Any) -> Begun:
    values = {
        "at": moment(0), "names": {APP: "shop/app"}, "stands": {UVM: REFUSED, GPU: ALLOWED},
        "every_seconds": 1.0, "for_seconds": None, "nodes": {UVM.path: "missing"},
        "unseen": ("who writes: nobody tells",),
    }  # fmt: skip
    return Begun(**{**values, **more})


def test_the_story_of_a_repair_by_hand() -> None:
    events = flap()
    assert text(begun(), (events[0],), (events[1],), WatchEnded(moment(12), 12.0, 3, 2, 1)) == [
        "2023-11-14 (UTC)",
        "22:13:20.000  watching 1 container, 2 devices, every 1 s, until Ctrl-C: 1 EPERM,",
        "              1 allowed",
        "              shop/app: EPERM: /dev/nvidia-uvm",
        "              shop/app: allowed: /dev/nvidia0",
        "              the host /dev/nvidia-uvm: missing",
        "              could not see: who writes: nobody tells",
        "22:13:22.750  shop/app /dev/nvidia-uvm: EPERM -> allowed after at least 2.8 s;",
        "              the kernel's rule (devices.list lost c 195:0 rw and got c 510:0",
        "              rw); written by sh (pid 4701, program dash, child of sshd)",
        "22:13:31.000  shop/app /dev/nvidia-uvm: allowed for 8.2 s, then refused again,",
        "              EPERM; the kernel's rule (devices.list lost c 510:0 rw and got c",
        "              195:0 rw); written over by runc (pid 4711, in",
        "              unit:containerd.service); what it undid was written by sh (pid",
        "              4701, program dash, child of sshd) (F7)",
        "22:13:32.000  ended after 12.0 s: 2 events, 3 looks",
    ]


def test_the_same_as_json() -> None:
    gave, took = documents(tuple(flap()))
    assert gave["at"] == "2023-11-14T22:13:22.750Z"
    assert (gave["from"], gave["to"], gave["errno"]) == ("EPERM", "allowed", 0)
    assert (gave["lasted_at_least"], gave["undid_writer"]) == (True, None)
    assert gave["writer"]["comm"] == "sh"
    assert took["event"] == "access"
    assert (took["workload"], took["cgroup"], took["device"]) == ("shop/app", APP, UVM.path)
    assert (took["from"], took["to"], took["errno"]) == ("allowed", "EPERM", EPERM)
    assert (took["layer"], took["lasted_seconds"], took["is_back"]) == ("kernel", 8.25, True)
    assert took["writer"]["comm"] == "runc"
    assert took["undid_writer"]["pid"] == SHELL.pid
    assert "allowed for 8.2 s, then refused again" in took["words"]


def test_how_it_begins_and_ends_as_json() -> None:
    started, *stands, blind = documents(begun())
    assert (started["event"], started["containers"], started["devices"]) == ("started", 1, 2)
    assert {(one["device"], one["to"]) for one in stands} == {
        (UVM.path, "EPERM"), (GPU.path, "allowed"), (UVM.path, "missing"),
    }  # fmt: skip
    assert (blind["event"], blind["words"]) == ("blind", "who writes: nobody tells")
    (ended,) = documents(WatchEnded(moment(12), 12.0, 3, 2, 1))
    assert (ended["lasted_seconds"], ended["events"], ended["looks"]) == (12.0, 2, 3)
    assert documents(Blind(moment(1), "x"))[0]["words"] == "x"


def test_devices_that_change_alike_are_one_line() -> None:
    keys = [DeviceKey(APP, f"/dev/nvidia{n}") for n in range(8)]
    changes = Changes()
    changes.tell(told(layers={key: {} for key in keys}))
    changes.see(look(0, dict.fromkeys(keys, ALLOWED)))
    events = changes.see(look(1, dict.fromkeys(keys, REFUSED), write(0.5, RUNC)))
    lines = text(tuple(events))
    assert " ".join(lines[1].split()[1:6]) == (
        "shop/app /dev/nvidia0, /dev/nvidia1, /dev/nvidia2, /dev/nvidia3"
    )
    assert "and 4 more: allowed -> EPERM" in " ".join(" ".join(lines).split())
    assert len(documents(tuple(events))) == 8


def test_a_new_day_is_told() -> None:
    late = DeviceMoment(START + 86_400, 1.0)
    assert text(Blind(moment(0), "a"), Blind(moment(1), "b"), Blind(late, "c")) == [
        "2023-11-14 (UTC)", "22:13:20.000  could not see: a", "22:13:21.000  could not see: b",
        "2023-11-15 (UTC)", "22:13:20.000  could not see: c",
    ]  # fmt: skip


def test_what_a_writer_is_called() -> None:
    assert writer_words(DeviceWriter(7)) == "pid 7, gone before it could be looked at"
    assert "another pid namespace" in writer_words(DeviceWriter(0))
    assert writer_words(DeviceWriter(7, "runc", "runc", 1, "/")) == "runc (pid 7)"
    assert writer_words(RUNC) == "runc (pid 4711, in unit:containerd.service)"
    assert len(writer_words(DeviceWriter(7, "a", cgroup="/x" * 200))) < 80


def test_of_several_writers_none_is_the_one() -> None:
    _, (event,) = watching(
        look(0, {UVM: ALLOWED}), look(1, {UVM: REFUSED}, write(0.5, SHELL), write(0.6, RUNC))
    )
    assert event_words([event]).endswith("and which of them did it is not known")
    (document,) = documents((event,))
    assert document["writer"] is None
    assert len(document["writers"]) == 2


def test_without_a_write_times_are_about() -> None:
    _, events = watching(
        look(0, {UVM: ALLOWED}), look(1, {UVM: Stand(EACCES)}), look(4, {UVM: ALLOWED})
    )
    assert "allowed -> EACCES after at least 1.0 s; the node's mode" in event_words([events[0]])
    assert "EACCES for about 3.0 s, then allowed again" in event_words([events[1]])


@pytest.mark.parametrize("colour", [False, True])
def test_hostile_names_steer_no_terminal(*, colour: bool) -> None:
    writer = DeviceWriter(7, HOSTILE, HOSTILE, 1, HOSTILE, 1, HOSTILE, HOSTILE)
    key = DeviceKey(APP, "/dev/" + HOSTILE)
    changes = Changes()
    changes.tell(told(names={APP: HOSTILE}, layers={key: {}}))
    changes.see(look(0, {key: ALLOWED}))
    events = tuple(changes.see(look(1, {key: REFUSED}, write(0.5, writer))))
    lines = text(begun(names={APP: HOSTILE}, stands={key: REFUSED}), events, colour=colour)
    assert not [line for line in lines if "\x1b[2J" in line or "\n" in line]
    (document,) = documents(events)
    assert document["writer"]["comm"].startswith("sh\x1b[2J\n\\xff")


def test_many_containers_are_short() -> None:
    names = {f"/c{n}": f"shop/c{n}" for n in range(40)}
    stands = {DeviceKey(cgroup, "/dev/nvidia0"): ALLOWED for cgroup in names}
    stands[DeviceKey("/c30", "/dev/nvidia0")] = REFUSED
    lines = text(begun(names=names, stands=stands, nodes={}, unseen=()))
    first = lines.index("              shop/c30: EPERM: /dev/nvidia0")
    assert lines[first:first + 2] == ["              shop/c30: EPERM: /dev/nvidia0",
                          "              shop/c0: allowed: /dev/nvidia0"]  # fmt: skip
    assert lines[-1] == "              and 25 containers more: all allowed"


def test_what_could_not_be_tried_is_not_called_allowed() -> None:
    names = {f"/c{n:02}": f"shop/c{n:02}" for n in range(20)}
    stands = {DeviceKey(cgroup, "/dev/nvidia0"): ALLOWED for cgroup in names if cgroup != "/c19"}
    lines = text(begun(names=names, stands=stands, nodes={}, unseen=()))
    assert "              shop/c19: none of its devices can be tried" in lines
    none_tried = text(begun(names=names, stands={}, nodes={}, unseen=()))
    assert none_tried[-1] == "              and 5 containers more: --json has them"


def test_other_changes() -> None:
    changes, _ = watching(look(0, {UVM: ALLOWED}, nodes={UVM.path: "there"}))
    first = told(lacks={"plugin": frozenset()})
    changes.tell(first)
    layers = {**first.layers, UVM: {**first.layers[UVM], "systemd": ("no", "lacks it")}}
    events = [
        *changes.tell(replace(first, layers=layers, lacks={"plugin": frozenset([UVM.path])})),
        *changes.see(look(2, {UVM: ALLOWED}, write(1, SHELL), nodes={UVM.path: "c 509:0"})),
        *changes.tell(told(9, {"/x": "shop/x"})),
    ]
    words = [event_words([one]) for one in events]
    assert words == [
        "shop/app /dev/nvidia-uvm: systemd's list has it -> does not have it (lacks it)",
        "plugin /dev/nvidia-uvm: in the device plugin's own /dev there -> missing",
        "the host /dev/nvidia-uvm: control node there -> c 509:0",
        f"shop/app: devices.deny written, nothing that was tried changed; written by {SHELL_WORDS}",
        "shop/app: is gone",
        "shop/x: came",
    ]
    assert documents(tuple(events))
