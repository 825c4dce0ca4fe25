"""The probe ``cri``: which sockets are asked, what leaves it, and what must not."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.host.grpc_server import SETTINGS, Part, answer, frame, serving

from seawall.formats.protobuf_wire import field
from seawall.host import cri, pod_resources
from seawall.host.cri_sieve import container_facts
from seawall.problems import ParseProblem

FILES = Path(__file__).parent / "files"
CONTAINERD = (FILES / "containerd-1.6-container-info.json").read_bytes()
"""``info`` as containerd 1.6.20 tells it, with more in it that is nobody's business."""
ID = "b7c63d95ff6ab419bd8b2513ffcbefd83298e634ae9fd0425e6ab2f7787192e9"
OTHER = "c" * 64
UNIMPLEMENTED = b"\x88\x40\x0bgrpc-status\x0212"
SECRETS = (b"hunter2", b"SECRET_TOKEN", b"/mnt/passwords", b"--password", b"my.company/owner")


@pytest.fixture(autouse=True)
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cri, "SOCKETS", ())
    monkeypatch.setattr(cri, "CRICTL", str(tmp_path / "crictl.yaml"))
    monkeypatch.setattr(cri, "SOCKET_SECONDS", 1.0)
    monkeypatch.setattr(pod_resources, "SOCKETS", (str(tmp_path / "kubelet.sock"),))
    monkeypatch.setattr(pod_resources, "SECONDS", 0.5)


def version(stream: int = 1) -> bytes:
    told = field(1, b"0.1.0") + field(2, b"containerd") + field(3, b"1.6.20~ds1") + field(4, b"v1")
    return answer(told, stream)


def listed(*ids: str, stream: int = 3) -> bytes:
    rows = (field(1, key.encode()) + field(8, field(1, b"label") + field(2, b"x")) for key in ids)
    return answer(b"".join(field(1, row) for row in rows), stream)


def status(info: bytes, stream: int = 5) -> bytes:
    return answer(field(1, b"") + field(2, field(1, b"info") + field(2, info)), stream)


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *parts: Part, ids: Any = (ID,)) -> Any:
    """The one socket's answer."""
    with serving(tmp_path / "s", *parts) as server:
        monkeypatch.setattr(cri, "SOCKETS", (server.path, str(tmp_path / "nobody")))
        told: Any = cri.cri(json.dumps({"ids": list(ids)}))
    json.dumps(told)
    (found,) = told["sockets"]
    return found


def test_what_is_kept_of_a_containers_record() -> None:
    assert all(secret in CONTAINERD for secret in SECRETS)
    facts: Any = container_facts(CONTAINERD)
    assert facts["pid"] == 15781
    assert facts["runtime_type"] == "io.containerd.runc.v2"
    assert facts["binary"] == "/usr/bin/nvidia-container-runtime"
    assert facts["cdi"] == ["nvidia.com/gpu=0"]
    spec = facts["spec"]
    assert set(spec) == {"linux", "annotations", "mounts", "process", "hooks"}
    assert [row["path"] for row in spec["linux"]["devices"]] == ["/dev/fuse", "/dev/full"]
    assert set(spec["linux"]) == {"devices", "cgroupsPath", "resources"}
    assert set(spec["linux"]["resources"]) == {"devices"}
    assert spec["process"] == {"env": ["NVIDIA_VISIBLE_DEVICES=0"]}
    assert spec["annotations"] == {"cdi.k8s.io/plugin_gpu": "nvidia.com/gpu=0"}
    assert [set(row) for row in spec["mounts"]] == [{"destination", "type", "options"}]
    assert spec["hooks"] == {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook"}]}
    kept = json.dumps(facts).encode()
    assert not [secret for secret in SECRETS if secret in kept]


def test_a_runtime_that_does_not_tell_its_spec() -> None:
    """cri-dockerd."""
    facts = container_facts(b'{"sandboxID": "x", "pid": 7}')
    assert (facts["pid"], facts["spec"]) == (7, None)
    assert container_facts(b"")["spec"] is None


@pytest.mark.parametrize("info", [b"[]", b"{", b"[" * 100_000, b'"x"'])
def test_a_record_that_is_none(info: bytes) -> None:
    with pytest.raises(ParseProblem):
        container_facts(info)


@pytest.mark.parametrize(
    "spec",
    [
        {"linux": [], "process": 7, "mounts": {"a": 1}, "hooks": "x", "annotations": []},
        {"linux": {"resources": []}, "process": {"env": [1, None, {}]}, "mounts": [1, None]},
        {"linux": {"devices": "x" * 100}, "hooks": {"prestart": [None, 3, {"path": {}}]}},
    ],
)
def test_records_of_odd_shapes_do_not_stop_it(spec: Any) -> None:
    json.dumps(container_facts(json.dumps({"runtimeSpec": spec, "config": [1]}).encode()))


def test_only_wanted_containers_that_run_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (SETTINGS, version(), listed(ID, "d" * 64), status(CONTAINERD))
    found = asked(tmp_path, monkeypatch, *parts, ids=(ID, OTHER))
    assert found["problem"] is None
    assert found["runtime"] == ["containerd", "1.6.20~ds1"]
    assert set(found["containers"]) == {ID}
    assert found["containers"][ID]["problem"] is None


def test_an_older_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """v1alpha2 is asked where v1 is unknown; Docker's containerd has neither."""
    unknown = [frame(1, 5, stream, UNIMPLEMENTED) for stream in (1, 3)]
    found = asked(tmp_path, monkeypatch, SETTINGS, unknown[0], version(3), ids=())
    assert found["runtime"] == ["containerd", "1.6.20~ds1"]
    os.unlink(tmp_path / "s")
    found = asked(tmp_path, monkeypatch, SETTINGS, *unknown)
    assert found["problem"] == ["absent", "gRPC status 12: UNIMPLEMENTED"]


def test_a_container_that_went_away_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = frame(1, 5, 5, b"\x88\x40\x0bgrpc-status\x015")
    parts = (SETTINGS, version(), listed(ID, OTHER), gone, status(CONTAINERD, 7))
    found = asked(tmp_path, monkeypatch, *parts, ids=(ID, OTHER))
    assert found["containers"][ID] == {"problem": ["vanished", "gRPC status 5: NOT_FOUND"]}
    assert found["containers"][OTHER]["problem"] is None


def test_a_runtime_that_falls_silent_keeps_what_it_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cri, "SOCKET_SECONDS", 0.3)
    parts = (SETTINGS, version(), listed(ID, OTHER), status(CONTAINERD))
    found = asked(tmp_path, monkeypatch, *parts, ids=(ID, OTHER))
    assert found["containers"][ID]["problem"] is None
    assert found["containers"][OTHER]["problem"][0] == "no_answer"


def test_crictls_endpoint_and_each_socket_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("s")
    yaml = f'timeout: 2\nruntime-endpoint: "unix://{tmp_path}/s"  # mine\n'
    (tmp_path / "crictl.yaml").write_text(yaml)
    with serving(tmp_path / "s", SETTINGS, version()) as server:
        assert [row["path"] for row in cri.cri("")["sockets"]] == [server.path]  # type: ignore[index,call-overload]
        monkeypatch.setattr(cri, "SOCKETS", (str(tmp_path / "link"),))
        assert [row["path"] for row in cri.cri("")["sockets"]] == [str(tmp_path / "link")]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("text", ["runtime-endpoint: tcp://1.2.3.4:5\n", "", "\xff\0", "- a\n"])
def test_a_crictl_yaml_without_a_unix_socket(tmp_path: Path, text: str) -> None:
    (tmp_path / "crictl.yaml").write_text(text, encoding="latin-1")
    assert cri.cri("") == {"sockets": []}


def test_a_fifo_for_a_config_and_one_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "crictl.yaml")
    monkeypatch.setattr(cri, "SOCKETS", (str(tmp_path / "crictl.yaml"),))
    (found,) = cri.cri("")["sockets"]  # type: ignore[index,call-overload,misc]
    assert found["problem"] == ["failed", "Socket operation on non-socket"]  # type: ignore[index,call-overload]


# --- the kubelet ------------------------------------------------------------------------


def test_no_kubelet_and_one_that_ended(tmp_path: Path) -> None:
    assert pod_resources.pod_resources() is None
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "kubelet.sock"))
    told: Any = pod_resources.pod_resources()
    assert told["problem"] == ["failed", "Connection refused"]


def devices(resource: str, *ids: str) -> bytes:
    given = b"".join(field(2, key.encode()) for key in ids)
    return field(1, resource.encode()) + given + field(3, field(1, b"\x08\x01"))  # topology


def test_what_the_kubelet_gave(tmp_path: Path) -> None:
    claim = (
        field(2, b"one-gpu") + field(3, b"ml")
        + field(4, field(1, field(1, b"k8s.gpu.nvidia.com/device=gpu-0"))
                + field(2, b"gpu.nvidia.com") + field(3, b"node-a") + field(4, b"gpu-0"))
    )  # fmt: skip
    container = (
        field(1, b"main") + field(2, devices("nvidia.com/gpu", "GPU-a"))
        + field(2, devices("nvidia.com/gpu", "GPU-b")) + b"\x18\x04" + field(5, claim)
    )  # fmt: skip
    pod = field(1, b"job-0") + field(2, b"train") + field(3, container)
    allocatable = field(1, devices("nvidia.com/gpu", "GPU-a")) + field(
        1, devices("nvidia.com/gpu", "GPU-b")
    )
    parts = (SETTINGS, answer(field(1, pod)), answer(allocatable, 3))
    with serving(tmp_path / "kubelet.sock", *parts):
        told: Any = pod_resources.pod_resources()
    whose = ["train", "job-0", "main"]
    assert told["devices"] == [
        [*whose, "nvidia.com/gpu", ["GPU-a"]], [*whose, "nvidia.com/gpu", ["GPU-b"]],
    ]  # fmt: skip
    assert told["claims"] == [
        [*whose, "ml", "one-gpu", "gpu.nvidia.com", "gpu-0", ["k8s.gpu.nvidia.com/device=gpu-0"]]
    ]
    assert told["allocatable"] == {"nvidia.com/gpu": ["GPU-a", "GPU-b"]}


def test_a_kubelet_that_does_not_tell_what_is_allocatable(tmp_path: Path) -> None:
    parts = (SETTINGS, answer(b""), frame(1, 5, 3, UNIMPLEMENTED))
    with serving(tmp_path / "kubelet.sock", *parts):
        told: Any = pod_resources.pod_resources()
    assert (told["problem"], told["devices"], told["allocatable"]) == (None, [], None)


@pytest.mark.parametrize("message", [b"\x0a\xff", b"\x07", b"\x0a\x02\x0a\x05"])
def test_an_answer_that_is_no_message(tmp_path: Path, message: bytes) -> None:
    with serving(tmp_path / "kubelet.sock", SETTINGS, answer(message)):
        told: Any = pod_resources.pod_resources()
    assert told["problem"][0] == "malformed"
