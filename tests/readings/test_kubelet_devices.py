"""The kubelet's checkpoint in both shapes, and the plugin's answer in it."""

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost
from tests.readings.device_samples import CHECKPOINT, TEGRA

from seawall.formats.protobuf_wire import field, fields
from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.host.sieve import sieve_for
from seawall.problems import ParseProblem
from seawall.readings import kubelet_devices
from seawall.readings.kubelet_devices import KubeletDevice, KubeletDevices, PodDevices, parse

PATH = kubelet_devices.PATHS[0]


def message(**parts: str) -> bytes:
    """A message of strings: f1="a" is field 1."""
    return b"".join(field(int(name[1:]), text.encode()) for name, text in parts.items())


ANSWER = b"".join(
    (
        field(1, message(f1="NVIDIA_VISIBLE_DEVICES", f2="GPU-1")),
        field(1, message(f1="TOKEN", f2="hunter2")),
        field(2, message(f1="/usr/lib/x", f2="/opt/x") + b"\x18\x01"),  # read_only: true
        field(3, message(f1="/dev/nvidia0", f2="/dev/nvidia1", f3="rw")),
        field(4, message(f1="cdi.k8s.io/plugin", f2="nvidia.com/gpu=0,nvidia.com/gpu=1")),
        field(4, message(f1="other", f2="hunter2")),
        field(5, message(f1="nvidia.com/gpu=1")),
        field(9, b"of a later version"),
    )
)


def checkpoint(answer: object = None, ids: object = None) -> bytes:
    entry = {
        "PodUID": "u", "ContainerName": "c", "ResourceName": "nvidia.com/gpu",
        "DeviceIDs": ids, "AllocResp": answer,
    }  # fmt: skip
    return json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": None}}).encode()


def encoded(answer: bytes) -> str:
    return base64.b64encode(answer).decode()


def test_both_shapes() -> None:
    found = parse(CHECKPOINT)
    new, old = found.entries
    assert new == PodDevices(
        pod_uid="bf52b2cd", container="check", resource="nvidia.com/gpu", ids=("tegra",),
        devices=(), environment={"NVIDIA_VISIBLE_DEVICES": "tegra"}, cdi_names=(), mounts=(),
    )  # fmt: skip
    assert (old.ids, old.devices, old.environment) == (("GPU-1", "GPU-2"), (), {})
    assert {name: len(ids) for name, ids in found.registered.items()} == {"nvidia.com/gpu": 3}


def test_devices_of_several_numa_nodes() -> None:
    (entry,) = parse(checkpoint(ids={"10": ["c"], "2": ["b"], "-1": ["d"], "0": ["a"]})).entries
    assert entry.ids == ("a", "b", "d", "c")


def test_every_part_of_an_answer() -> None:
    (entry,) = parse(checkpoint(encoded(ANSWER))).entries
    assert entry.environment["NVIDIA_VISIBLE_DEVICES"] == "GPU-1"
    assert entry.mounts == ("/usr/lib/x",)
    assert entry.devices == (KubeletDevice("/dev/nvidia0", "/dev/nvidia1", "rw"),)
    assert entry.cdi_names == ("nvidia.com/gpu=0", "nvidia.com/gpu=1")


def test_an_empty_checkpoint_and_none() -> None:
    empty = b'{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}'
    assert parse(empty) == KubeletDevices((), {})
    found = kubelet_devices.read(CaseHost(Round()))
    assert isinstance(found, Unread)
    assert (found.path, found.why) == (PATH, "absent")


def test_the_first_kubelet_that_is_there() -> None:
    host = CaseHost(Round(files={kubelet_devices.PATHS[1]: CHECKPOINT}))
    assert kubelet_devices.read(host) == parse(CHECKPOINT)
    refused = CaseHost(Round(files={
        PATH: Unread(PATH, "refused"), kubelet_devices.PATHS[1]: CHECKPOINT,
    }))  # fmt: skip
    found = kubelet_devices.read(refused)
    assert isinstance(found, Unread)
    assert found.why == "refused"


@pytest.mark.parametrize(
    "answer",
    ["no base64!", "=", 7, encoded(b"\x0a\x05ab"), encoded(b"\x0b"), encoded(b"\x02\x00"),
     encoded(b"\x80" * 11), encoded(b"\x0a\x02\x0a\x09"), "\u00e9",
     encoded(b"\x0a" + b"\xff" * 9 + b"\x01")],
)  # fmt: skip
def test_answers_that_are_none(answer: object) -> None:
    with pytest.raises(ParseProblem):
        parse(checkpoint(answer))
    kept = sieve_for(PATH)
    assert kept is not None
    with pytest.raises(ParseProblem):
        parse(kept(checkpoint(answer)))


@given(st.binary(max_size=60))
def test_any_bytes_as_an_answer(answer: bytes) -> None:
    for data in (answer, ANSWER[: len(answer)] + answer, field(1, answer), field(3, answer)):
        with suppress(ParseProblem):
            parse(checkpoint(encoded(data)))


@given(st.lists(st.tuples(st.integers(1, 1 << 28), st.binary(max_size=300))))
def test_what_is_written_is_read(parts: list[tuple[int, bytes]]) -> None:
    assert list(fields(b"".join(field(*part) for part in parts))) == parts


def test_the_wire_format_of_others() -> None:
    """The message that a real plugin's library wrote."""
    assert list(fields(base64.b64decode(TEGRA))) == [
        (1, b"\x0a\x16NVIDIA_VISIBLE_DEVICES\x12\x05tegra")
    ]
    numbers = b"\x08\x96\x01\x11" + b"8" * 8 + b"\x1d" + b"4" * 4
    assert list(fields(numbers)) == [(1, 150), (2, b"8" * 8), (3, b"4" * 4)]


def test_the_sieve_keeps_variables_of_gpus_and_annotations_of_cdi() -> None:
    keep = sieve_for(PATH)
    assert keep is not None
    data = checkpoint(encoded(ANSWER), ids=["GPU-1"])
    kept: Any = json.loads(keep(data))
    answer = base64.b64decode(kept["Data"]["PodDeviceEntries"][0]["AllocResp"])
    assert b"hunter2" not in answer
    assert b"later version" not in answer
    (before,), (after,) = parse(data).entries, parse(keep(data)).entries
    assert after.environment == {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}
    assert (after.devices, after.mounts) == (before.devices, before.mounts)
    assert (after.cdi_names, after.ids) == (before.cdi_names, before.ids)
    for hostile in (b"", b"[" * 100_000, b'{"Data": []}', b'{"Data": {"PodDeviceEntries": [7]}}'):
        keep(hostile)
