"""devices.list of v1 and the programs of v2, of the cgroups that matter."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost
from tests.readings.device_samples import DEVICES_LIST

from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.problems import ParseProblem
from seawall.readings import device_cgroups
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.device_cgroups import DeviceCgroups, parse
from seawall.readings.device_rule import DeviceRule, access_of, rule_of

ID = "a" * 64
POD = f"/kubepods/burstable/pod7/{ID}"
V1, V2 = "/sys/fs/cgroup/devices", "/sys/fs/cgroup"


def cgroups(version: int, pids: dict[str, tuple[int, ...]], **v1: str) -> Cgroups:
    layout = CgroupLayout(
        v1={"memory": "/sys/fs/cgroup/memory", "devices": V1, **v1} if version == 1 else {},
        v2=None if version == 1 else V2, v2_controllers=(),
    )  # fmt: skip
    return Cgroups(layout, tuple(pids), layout.memory_tree or V2, pids, ())


def read(topic: Cgroups, host: Any) -> DeviceCgroups:
    found = device_cgroups.read(host, topic)
    assert isinstance(found, DeviceCgroups)
    return found


class Programs(CaseHost):
    """Answers the probe, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        super().__init__(Round())
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, probe: str, argument: str = "") -> Any:
        assert probe == device_cgroups.PROBE
        self.asked = json.loads(argument)["folders"]
        return self.answer


def test_rules_of_a_list() -> None:
    rules = parse(DEVICES_LIST)
    assert rules[0] == DeviceRule("b", None, None, "m")
    assert rules[5:7] == (DeviceRule("c", 136, None, "rwm"), DeviceRule("c", 195, 255, "rw"))
    assert parse(b"a *:* rwm\n") == (DeviceRule(None, None, None, "rwm"),)
    assert parse(b"") == (), "everything is denied"


@pytest.mark.parametrize(
    "line",
    ["c 1:3", "d 1:3 rwm", "c 1:3 x", "c 1 3 rwm", "c -1:3 r", "c 1:3 rwmr", "c 1:3 ",
     "c 99999999999:0 r", "c 4294967296:0 r"],
)  # fmt: skip
def test_lines_that_are_no_rule(line: str) -> None:
    assert rule_of(line) is None
    with pytest.raises(ParseProblem):
        parse(line.encode())


def test_access_is_put_in_order() -> None:
    assert [access_of(word) for word in ("wr", "m", "mwr", "", "rx", None, 7, "rr")] == [
        "rw", "m", "rwm", None, None, None, None, "r",
    ]  # fmt: skip


def test_v1_lists_of_containers_and_all_above() -> None:
    host = CaseHost(Round(files={
        f"{V1}{POD}/devices.list": DEVICES_LIST,
        f"{V1}/kubepods/devices.list": b"a *:* rwm\n",
        f"{V1}/devices.list": b"nonsense\n",
    }))  # fmt: skip
    found = read(cgroups(1, {POD: (7,)}), host)
    assert (found.version, found.attached, found.left_out) == (1, {}, 0)
    assert found.lists[POD] == parse(DEVICES_LIST)
    assert found.lists["/kubepods"] == (DeviceRule(None, None, None, "rwm"),)
    bad = {path: one.why for path, one in found.lists.items() if isinstance(one, Unread)}
    assert bad == {
        "/": "malformed", "/kubepods/burstable": "absent", "/kubepods/burstable/pod7": "absent",
    }  # fmt: skip


def test_v1_trees_may_differ_and_the_processes_tell() -> None:
    host = CaseHost(Round(files={
        "/proc/7/cgroup": b"5:devices:/swb\n4:memory:/job/1/swb\n",
        f"{V1}/swb/devices.list": DEVICES_LIST,
        f"{V1}/job/1/swb/devices.list": b"a *:* rwm\n",
    }))  # fmt: skip
    found = read(cgroups(1, {"/job/1/swb": (7,)}), host)
    assert found.lists["/job/1/swb"] == parse(DEVICES_LIST)


def test_without_a_tree_that_counts_memory_the_devices_tree_is_walked() -> None:
    mounts = b"36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
    host = CaseHost(Round(files={
        "/proc/1/mountinfo": mounts, f"{V1}{POD}/devices.list": DEVICES_LIST,
    }))  # fmt: skip
    found = device_cgroups.read(host, Unread("memory", "absent"))
    assert isinstance(found, DeviceCgroups)
    assert found.lists[POD] == parse(DEVICES_LIST)
    nowhere = device_cgroups.read(CaseHost(Round()), Unread("memory", "absent"))
    assert isinstance(nowhere, Unread)


def test_v2_one_question_for_all() -> None:
    code = "b4" + "00" * 7 + "95" + "00" * 7
    host = Programs({
        "folders": {f"{V2}{POD}": [17, 18], V2: [], f"{V2}/kubepods": {"problem": ["refused", "x"]},
                    f"{V2}/kubepods/burstable": "?"},
        "programs": {"17": code, "18": {"problem": ["absent", "gone"]}, "99": code},
    })  # fmt: skip
    found = read(cgroups(2, {POD: (7,)}), host)
    assert sorted(host.asked) == sorted(
        [V2, f"{V2}/kubepods", f"{V2}/kubepods/burstable", f"{V2}/kubepods/burstable/pod7",
         f"{V2}{POD}"]
    )  # fmt: skip
    assert (found.version, found.lists) == (2, {})
    assert found.attached[POD] == (17, 18)
    assert found.attached["/"] == (), "no program is no rule"
    whys = {path: one.why for path, one in found.attached.items() if isinstance(one, Unread)}
    assert whys == {
        "/kubepods": "refused", "/kubepods/burstable": "malformed",
        "/kubepods/burstable/pod7": "malformed",
    }  # fmt: skip
    assert found.programs[17] == bytes.fromhex(code)
    assert isinstance(found.programs[18], Unread)
    assert set(found.programs) == {17, 18}


def test_v2_a_probe_that_does_not_answer_is_no_cgroup_without_programs() -> None:
    found = read(cgroups(2, {POD: (7,)}), Programs(Unread("device_programs", "refused", "bpf(2)")))
    assert {one.why for one in found.attached.values() if isinstance(one, Unread)} == {"refused"}
    assert len(found.attached) == 5
    assert all(isinstance(one, Unread) for one in found.attached.values())


def test_containers_come_first_when_there_are_too_many() -> None:
    others = {f"/x{n}": (1,) for n in range(device_cgroups.CGROUPS_MOST)}
    found = read(cgroups(1, {**others, POD: (7,)}), CaseHost(Round()))
    assert found.left_out == 5
    assert POD in found.lists
    assert len(found.lists) == device_cgroups.CGROUPS_MOST


JSONS: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.just("00" * 8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["folders", "programs", "problem", V2, f"{V2}/x", "1", "7"]), inner
        )
    ),
)


@given(JSONS)
def test_any_answer(answer: Any) -> None:
    found = read(cgroups(2, {"/x": (7,)}), Programs(answer))
    assert set(found.attached) == {"/x", "/"}
    for ids in found.attached.values():
        assert isinstance(ids, Unread) or set(ids) <= set(found.programs)
    for code in found.programs.values():
        assert isinstance(code, Unread) or (code and len(code) % 8 == 0)
