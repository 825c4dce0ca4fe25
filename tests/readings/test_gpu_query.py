"""The answer of the probe ``gpu_query``, hostile ones too, and the module's version."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import JSON, Unread
from seawall.problems import ParseProblem
from seawall.readings.gpu_query import Failed, GpuQuery, ask, parse_module

OPEN = b"""NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  (r@x)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
CLOSED = b"""NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27 21:21:55 UTC 2021
GCC version:  gcc version 4.8.5 20150623 (Red Hat 4.8.5-44) (GCC)
"""


class Answering:
    """A host that gives one answer."""

    def __init__(self, answer: JSON | Unread) -> None:
        self._answer = answer

    def ask(self, _: str, __: str = "") -> JSON | Unread:
        return self._answer

    def read(self, path: str, _: int = 0) -> bytes | Unread:
        return OPEN


def asked(answer: Any) -> GpuQuery | Unread:
    host: Any = Answering(answer)
    return ask(host)


def library(name: str) -> JSON:
    return {"name": name, "path": f"/x/{name}", "tried": [["/usr/lib64", "not there"]]}


def whole(**more: Any) -> dict[str, Any]:
    libraries = {key: library(key) for key in ("nvml", "cuda", "runtime")}
    nvml = {
        "driver_version": "590.48.01",
        "cuda_version": 13010,
        "devices": [
            {"index": 0, "name": "H200", "uuid": "GPU-1", "total": 5, "minor": None, "failed": []},
            {"index": 1, "failed": [["nvmlDeviceGetHandleByIndex_v2", 15]]},
        ],
        "failed": [["nvmlX", None]],
    }
    return {"libraries": libraries, "nvml": nvml, "cuda": None, "runtime_version": None,
            "environment": {"CUDA_VISIBLE_DEVICES": ""}, **more}  # fmt: skip


def test_an_answer_is_read() -> None:
    found = asked(whole())
    assert isinstance(found, GpuQuery)
    assert (found.driver_version, found.module_version, found.cuda_version) == (
        "590.48.01", "590.48.01", 13010,
    )  # fmt: skip
    first, lost = found.devices
    assert (first.name, first.uuid, dict(first.figures)) == ("H200", "GPU-1", {"total": 5})
    assert lost.failed == (Failed("nvmlDeviceGetHandleByIndex_v2", 15),)
    assert found.failed == (Failed("nvmlX", None),)
    assert found.environment == {"CUDA_VISIBLE_DEVICES": ""}, "an empty one hides every device"
    assert found.libraries["cuda"].tried == (("/usr/lib64", "not there"),)


def test_a_refusal_stays_one() -> None:
    missing = Unread("gpu_query", "no_answer", "x")
    assert asked(missing) is missing
    for answer in (None, 7, {}, {"libraries": {"nvml": library("n")}}):
        found = asked(answer)
        assert isinstance(found, Unread)
        assert found.why == "malformed"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(ANY, ANY, ANY)
def test_nothing_escapes(nvml: Any, cuda: Any, environment: Any) -> None:
    assert isinstance(
        asked(whole(nvml=nvml, cuda=cuda, environment=environment)), GpuQuery | Unread
    )


@pytest.mark.parametrize(("data", "version"), [(OPEN, "590.48.01"), (CLOSED, "470.82.01")])
def test_version_of_the_module(data: bytes, version: str) -> None:
    assert parse_module(data) == version


@given(st.binary())
def test_only_a_parse_problem_comes_out(data: bytes) -> None:
    with contextlib.suppress(ParseProblem):
        parse_module(data)
