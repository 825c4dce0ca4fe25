"""The kubelet's and the runtime's own word beside their files: who is right, and what is told."""

from typing import Any

import pytest
from tests.accounts.device_worlds import (
    HOOK,
    ID,
    NVIDIA,
    World,
    kubelet,
    nodes,
    only,
    spec,
)  # fmt: skip

from seawall.accounts.devices.layers import ContainerDevices, DeviceRow
from seawall.host.host import Unread
from seawall.readings.cdi_specs import CdiNode, CdiSpec, CdiSpecs

GIVEN = only("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")
KERNEL = tuple(f"{kind} {major}:{minor} rw" for kind, major, minor in GIVEN.values())
MAIN = ["train", "job-0", "main"]
UVM, CTL = "/dev/nvidia-uvm", "/dev/nvidiactl"
NAME = "k8s.gpu.nvidia.com/device=gpu-0"
RECORD = "the runtime's own record (CRI)"


def listed(*devices: Any, claims: Any = (), problem: Any = None) -> dict[str, Any]:
    return {
        "path": "/kubelet.sock", "problem": problem, "devices": list(devices),
        "claims": list(claims), "allocatable": None,
    }  # fmt: skip


def record(given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the probe ``cri`` answers for the container."""
    made = [{"path": path, "type": n[0], "major": n[1], "minor": n[2]} for path, n in given.items()]
    allow = [{"allow": True, "type": n[0], "major": n[1], "minor": n[2], "access": "rw"}
             for n in given.values()]  # fmt: skip
    rules = [{"allow": False, "access": "rwm"}, *allow]
    linux = {"devices": made, "resources": {"devices": rules}}
    facts = {"problem": None, "pid": 1, "runtime_type": None, "binary": None, "cdi": []}
    return answered({ID: facts | {"spec": {"linux": linux}} | more})


def answered(containers: dict[str, Any], problem: Any = None) -> dict[str, Any]:
    runtime = ["containerd", "1.7.24"]
    told = {"path": "/c.sock", "problem": problem, "runtime": runtime, "containers": containers}
    return {"sockets": [told]}


def world(**told: Any) -> World:
    values: dict[str, Any] = {"own": dict(GIVEN), "kernel": KERNEL, "specs": spec(GIVEN)}
    return World(**(values | told))


def row(one: ContainerDevices, path: str) -> DeviceRow:
    return next(row for row in one.devices if row.path == path)


# --- the kubelet ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "pods", "by"),
    [
        (("GPU-a",), None, "kubelet checkpoint: 1 x"),
        (("GPU-a",), ["GPU-a", "GPU-b"], "kubelet checkpoint and pod-resources: 1 x"),
        (("GPU-old",), ["GPU-a"],
         "kubelet checkpoint (stale: pod-resources lists GPU-a instead): 1 x"),
        (("GPU-old",), [],
         "kubelet checkpoint (pod-resources does not list it now: a stale entry): 1 x"),
    ],
)  # fmt: skip
def test_the_checkpoint_is_confirmed_or_called_stale(
    ids: tuple[str, ...], pods: list[str] | None, by: str
) -> None:
    answer: Any = Unread("pod_resources", "absent")
    if pods is not None:
        answer = listed(*([[*MAIN, "nvidia.com/gpu", pods]] if pods else []))
    one = world(kubelet=kubelet(*GIVEN, ids=ids), answers={"pod_resources": answer}).container()
    assert one.promised_by == f"{by} nvidia.com/gpu"
    assert one.diagnosis is None


def test_whom_the_checkpoint_lacks_was_promised_something_all_the_same() -> None:
    pods = listed([*MAIN, "nvidia.com/gpu", ["GPU-a", "GPU-b"]])
    bare = world(specs=spec({}), own={}, kernel=(), answers={"pod_resources": pods})
    one = bare.container()
    assert one.promised_by == "kubelet pod-resources: 2 x nvidia.com/gpu"
    assert row(one, UVM).layers["promised"].says == "yes"
    assert one.diagnosis is not None
    assert any("checkpoint, which tells them: absent" in words for words in one.unseen)
    assert world(specs=spec({}), own={}, kernel=()).table().containers == ()


def test_a_node_that_was_left_out_of_what_the_kubelet_gave() -> None:
    """The container has its GPU and not uvm: F1; has it none at all, nobody is blamed."""
    pods = listed([*MAIN, "nvidia.com/gpu", ["GPU-a"]])
    given = only(CTL, "/dev/nvidia0")
    lines = tuple(f"{kind} {major}:{minor} rw" for kind, major, minor in given.values())
    part = world(
        specs=spec(given), own=dict(given), kernel=lines, answers={"pod_resources": pods}
    )  # fmt: skip
    assert part.mode() == "F1"
    none = world(specs=spec({}), own={}, kernel=(), answers={"pod_resources": pods})
    assert none.mode() == "unnamed"


def claim(cdi: str = NAME) -> list[Any]:
    return [*MAIN, "ml", "one-gpu", "gpu.nvidia.com", "gpu-0", [cdi]]


def dra_specs() -> CdiSpecs:
    made = tuple(CdiNode(path, path, n[1], n[2]) for path, n in GIVEN.items())
    return CdiSpecs((
        CdiSpec(source="/var/run/cdi/k8s.json", kind="k8s.gpu.nvidia.com/device",
                devices={"gpu-0": made[2:]}, common=made[:2]),
    ))  # fmt: skip


def test_a_claim_is_a_promise_with_its_nodes() -> None:
    pods = listed(claims=[claim()])
    one = world(
        specs=spec(GIVEN, cdi_names=(NAME,)), cdi=dra_specs(), answers={"pod_resources": pods}
    ).container()
    assert one.device_class == "nvidia"
    assert one.promised_by == "DRA claim ml/one-gpu: gpu.nvidia.com gpu-0"
    assert {path for path in GIVEN if row(one, path).layers["promised"].says == "yes"} == set(GIVEN)
    assert one.diagnosis is None


def test_a_claims_name_that_no_file_knows_is_told() -> None:
    pods = listed(claims=[claim("k8s.gpu.nvidia.com/device=gone")])
    one = world(answers={"pod_resources": pods}).container()
    assert any("device=gone" in words for words in one.unseen)


def test_a_driver_of_no_class_goes_by_its_own_name() -> None:
    pods = listed(claims=[[*MAIN, "ml", "nic", "dra.net", "eth1", []]])
    names = {one.device_class for one in world(answers={"pod_resources": pods}).table().containers}
    assert "dra.net" in names


def test_a_kubelet_that_is_silent_is_told() -> None:
    silent = Unread("pod_resources", "no_answer", "a process did not let go")
    table = world(answers={"pod_resources": silent}).table()
    assert any("pod-resources" in words and "no_answer" in words for words in table.unseen)


# --- the runtime ------------------------------------------------------------------------


def test_the_record_is_what_counts_and_agrees() -> None:
    one = world(answers={"cri": record(GIVEN)}).container()
    answer = row(one, UVM).layers["configured"]
    assert answer.says == "yes"
    assert RECORD in answer.why
    assert "otherwise" not in answer.why


def test_a_record_that_changed_since_the_start_is_told() -> None:
    started = spec(only(CTL, "/dev/nvidia0"))
    one = world(specs=started, answers={"cri": record(GIVEN)}).container()
    answer = row(one, UVM).layers["configured"]
    assert answer.says == "yes"
    assert "as it was started, otherwise: config.json" in answer.why


def test_what_a_wrapper_of_runc_gave_is_in_no_record() -> None:
    """nvidia-container-runtime writes into the config.json: its device is configured."""
    one = world(answers={"cri": record({})}).container()
    answer = row(one, UVM).layers["configured"]
    assert answer.says == "yes"
    assert f"{RECORD} does not have it" in answer.why
    assert one.diagnosis is None


def test_a_hook_of_the_wrapper_still_counts() -> None:
    hooked = spec({}, hooks=(HOOK,), environment={"NVIDIA_VISIBLE_DEVICES": "all"})
    one = world(specs=hooked, answers={"cri": record({})}).container()
    assert one.promised_by == "NVIDIA_VISIBLE_DEVICES=all"
    assert row(one, UVM).layers["configured"].says == "none"


@pytest.mark.parametrize("specs", [None, Unread("config.json", "refused")])
def test_the_record_alone_is_enough(specs: Any) -> None:
    lone = world(specs=specs, answers={"cri": record(only(CTL, "/dev/nvidia0"))})
    one = lone.container()
    assert {row.path for row in one.devices} == {CTL, UVM, "/dev/nvidia0"}
    assert row(one, CTL).layers["configured"].says == "yes"
    answer = row(one, UVM).layers["configured"]
    assert (answer.says, RECORD in answer.why) == ("no", True)
    assert not [words for words in one.unseen if "config" in words]


def test_neither_file_nor_record() -> None:
    gone = answered({ID: {"problem": ["failed", "gRPC status 13: INTERNAL"]}})
    pods = listed([*MAIN, "nvidia.com/gpu", ["GPU-a"]])
    one = world(specs=None, answers={"cri": gone, "pod_resources": pods}).container()
    answer = row(one, UVM).layers["configured"]
    assert answer.says == "unread"
    assert "INTERNAL" in answer.why


def test_a_socket_that_does_not_answer_is_told_and_files_still_count() -> None:
    broken = answered({}, ["failed", "Connection refused"])
    table = world(answers={"cri": broken}).table()
    (one,) = table.containers
    assert one.diagnosis is None
    assert "the runtime's own records (CRI), /c.sock: failed Connection refused" in table.unseen


def test_no_runtimes_socket_and_a_bundle_of_before_lack_nothing() -> None:
    for answers in ({}, {"cri": {"sockets": []}, "pod_resources": None}):
        table = world(answers=answers).table()
        assert not [words for words in table.unseen if "CRI" in words or "pod-res" in words]


def test_a_stale_major_of_a_wrapper_is_still_found() -> None:
    """The node that only the config.json has, with the number of before the reload."""
    old = {**GIVEN, UVM: ("c", 236, 0)}
    one = world(
        specs=spec(old), own=dict(old), answers={"cri": record({})}, host=dict(NVIDIA)
    ).container()
    assert one.diagnosis is not None
    assert one.diagnosis.mode == "F10"
    assert nodes(old)[UVM].major == 236
