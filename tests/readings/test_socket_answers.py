"""Answers of the probes ``cri`` and ``pod_resources``: real, cut, hostile, silent."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.cri_sieve import container_facts
from seawall.host.host import Unread
from seawall.readings import cri_containers, pod_resources
from seawall.readings.cri_containers import CriContainers
from seawall.readings.device_rule import DeviceRule
from seawall.readings.device_specs import DeviceSpec
from seawall.readings.pod_resources import DeviceOwner, PodResources, ResourceClaim

INFO = Path(__file__).parent.parent / "host/files/containerd-1.6-container-info.json"
FACTS = json.loads(json.dumps(container_facts(INFO.read_bytes())))
ID, OTHER = "a" * 64, "b" * 64
PATH = "/run/containerd/containerd.sock"
RUNTIME = ["containerd", "1.7.24"]
MAIN = ["train", "job-0", "main"]
names = st.text(max_size=9)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


class Answers:
    """One answer for each question, the last for all that follow; keeps the arguments."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def ask(self, _probe: str, argument: str = "") -> Any:
        self.asked.append(argument)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def host(*answers: Any) -> Any:
    return Answers(*answers)


def socket(**told: Any) -> dict[str, Any]:
    values = {"path": PATH, "problem": None, "runtime": RUNTIME, "containers": {ID: FACTS}}
    return {"sockets": [values | told]}


# --- the runtime ------------------------------------------------------------------------


def test_a_record_of_containerd() -> None:
    asked = host(socket())
    found = cri_containers.ask(asked, {OTHER, ID})
    assert isinstance(found, CriContainers)
    assert json.loads(asked.asked[0]) == {"ids": [ID, OTHER]}
    assert set(found.by_id) == {ID}
    one = found.by_id[ID]
    assert isinstance(one, DeviceSpec)
    assert one.source == cri_containers.SOURCE
    assert [device.path for device in one.devices] == ["/dev/fuse", "/dev/full"]
    assert DeviceRule("c", 10, 229, "rw") in one.rules
    assert one.environment == {"NVIDIA_VISIBLE_DEVICES": "0"}
    assert one.cdi_names == ("nvidia.com/gpu=0",)
    assert one.hooks == ("/usr/bin/nvidia-container-runtime-hook",)
    assert one.device_mounts == ("/dev/shm",)


def test_read_asks_for_no_container() -> None:
    asked = host(socket(containers={}))
    assert cri_containers.read(asked) == CriContainers({})
    assert json.loads(asked.asked[0]) == {"ids": []}


def test_no_runtime_and_silence() -> None:
    assert cri_containers.read(host({"sockets": []})).why == "absent"  # type: ignore[union-attr]
    silent = Unread("cri", "no_answer")
    assert cri_containers.read(host(silent)) is silent


def test_a_socket_that_does_not_answer_is_told() -> None:
    found = cri_containers.read(
        host(socket(problem=["refused", "Permission denied"], runtime=None))
    )
    assert isinstance(found, CriContainers)
    assert found.unread == (Unread(PATH, "refused", "Permission denied"),)


def test_many_are_asked_in_parts_and_silence_ends_it() -> None:
    ids = [f"{number:064x}" for number in range(450)]
    rows = [socket(containers={ids[at]: FACTS}) for at in (0, 200, 400)]
    asked = host(*rows)
    found = cri_containers.ask(asked, ids)
    assert isinstance(found, CriContainers)
    assert len(asked.asked) == 3
    assert set(found.by_id) == {ids[0], ids[200], ids[400]}
    asked = host(rows[0], Unread("cri", "no_answer"))
    found = cri_containers.ask(asked, ids)
    assert isinstance(found, CriContainers)
    assert (set(found.by_id), len(asked.asked)) == ({ids[0]}, 2)


def test_the_runtime_that_has_it_is_believed() -> None:
    """Two daemons: one does not know the container any more."""
    gone = socket(containers={ID: {"problem": ["vanished", "gRPC status 5"]}})["sockets"]
    found = cri_containers.ask(host({"sockets": gone + socket(path="/run/b")["sockets"]}), [ID])
    assert isinstance(found, CriContainers)
    assert isinstance(found.by_id[ID], DeviceSpec)


@pytest.mark.parametrize(
    "facts",
    [
        None, [], {"spec": {"linux": {"devices": [{}]}}}, {"spec": []}, {"problem": "x"},
        {"spec": {"process": {"env": "x"}}}, {"spec": {"linux": {"devices": [{"path": 1}]}}},
    ],
)  # fmt: skip
def test_a_malformed_record_is_unread_and_stays_alone(facts: Any) -> None:
    found = cri_containers.ask(host(socket(containers={ID: facts, OTHER: FACTS})), [ID, OTHER])
    assert isinstance(found, CriContainers)
    one = found.by_id[ID]
    assert isinstance(one, Unread)
    assert one.why == "malformed"
    assert isinstance(found.by_id[OTHER], DeviceSpec)


# --- the kubelet ------------------------------------------------------------------------


def listed(**told: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "path": "/var/lib/kubelet/pod-resources/kubelet.sock", "problem": None,
        "devices": [[*MAIN, "nvidia.com/gpu", ["GPU-a"]], [*MAIN, "nvidia.com/gpu", ["GPU-b"]]],
        "claims": [[*MAIN, "ml", "one-gpu", "gpu.nvidia.com", "gpu-0", ["k8s.gpu.nvidia.com/d=0"]]],
        "allocatable": {"nvidia.com/gpu": ["GPU-a"]},
    }  # fmt: skip
    return values | told


def test_what_the_kubelet_lists() -> None:
    found = pod_resources.read(host(listed()))
    assert isinstance(found, PodResources)
    owner = DeviceOwner("train", "job-0", "main")
    assert found.ids(owner) == {"nvidia.com/gpu": ("GPU-a", "GPU-b")}
    cdi = ("k8s.gpu.nvidia.com/d=0",)
    assert found.claimed(owner) == (ResourceClaim("ml", "one-gpu", "gpu.nvidia.com", "gpu-0", cdi),)
    assert found.allocatable == {"nvidia.com/gpu": ("GPU-a",)}
    assert found.ids(DeviceOwner("train", "job-1", "main")) == {}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "absent"),
        (Unread("pod_resources", "no_answer"), "no_answer"),
        (listed(problem=["failed", "Connection refused"]), "failed"),
        (listed(devices=[["a"]]), "malformed"),
        (listed(devices=[[*MAIN, "r", [1]]]), "malformed"),
        (listed(claims=[[*MAIN, "a"]]), "malformed"),
        (listed(allocatable=[]), "malformed"),
        (listed(allocatable={"a": "b"}), "malformed"),
        ([], "malformed"),
    ],
)
def test_no_list(answer: Any, why: str) -> None:
    found = pod_resources.read(host(answer))
    assert isinstance(found, Unread)
    assert found.why == why


@given(anything)
def test_any_json_is_an_answer_or_a_reason(value: Any) -> None:
    assert isinstance(pod_resources.read(host(value)), PodResources | Unread)
    assert isinstance(cri_containers.ask(host(value), [ID]), CriContainers | Unread)
    assert isinstance(cri_containers.ask(host({"sockets": [value]}), [ID]), CriContainers | Unread)
    told = socket(containers={ID: {"problem": None, "spec": value, "cdi": value, "pid": value}})
    assert isinstance(cri_containers.ask(host(told), [ID]), CriContainers | Unread)
