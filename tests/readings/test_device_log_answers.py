"""Answers of the probe ``device_log``: a bundle may hold anything."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import Unread
from seawall.readings import device_log
from seawall.readings.device_log import DeviceLog, DriverGpu, LogEvent, LogRead

REFUSED = ["refused", 5.0, "ns", "pod", "u-1", "nvidia.com/gpu", "", None, "no_healthy"]
XID = ["xid", 4, "", "", "", "", "GPU-1", 79, ""]
LOG = ["kubelet", "journal", 3, 1.5, None]
WHOLE = {"events": [REFUSED, XID], "logs": [LOG], "gpus": [["0000:3b:00.0", "GPU-1"]],
         "left_out": 0}  # fmt: skip


class Answers:
    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ask(self, _probe: str, argument: str = "") -> Any:
        assert argument == ""
        return self._answer


def read(answer: Any) -> DeviceLog | Unread:
    host: Any = Answers(answer)
    return device_log.read(host)


def test_a_whole_answer_in_order_of_time() -> None:
    assert read(WHOLE) == DeviceLog(
        (
            LogEvent("xid", 4.0, "", "", "", "", "GPU-1", 79, ""),
            LogEvent("refused", 5.0, "ns", "pod", "u-1", "nvidia.com/gpu", "", None, "no_healthy"),
        ),
        (LogRead("kubelet", "journal", 3, 1.5, None),),
        (DriverGpu("0000:3b:00.0", "GPU-1"),),
        0,
    )


def test_why_a_log_could_not_be_read() -> None:
    row = ["plugin", "/var/log/pods", 0, None, ["refused", "Permission denied"]]
    found = read({**WHOLE, "logs": [row]})
    assert isinstance(found, DeviceLog)
    assert found.logs[0].problem == Unread("/var/log/pods", "refused", "Permission denied")


def test_no_answer_is_passed_on() -> None:
    silent = Unread("device_log", "no_answer", "it hangs")
    assert read(silent) is silent


@pytest.mark.parametrize(
    "bad",
    [
        None, [], {}, {**WHOLE, "left_out": -1}, {**WHOLE, "events": None},
        {**WHOLE, "events": [REFUSED[:-1]]},
        {**WHOLE, "events": [["exploded", *REFUSED[1:]]]},
        {**WHOLE, "events": [["refused", "noon", *REFUSED[2:]]]},
        {**WHOLE, "events": [["refused", -1.0, *REFUSED[2:]]]},
        {**WHOLE, "events": [["refused", 1e300, *REFUSED[2:]]]},
        {**WHOLE, "events": [["refused", True, *REFUSED[2:]]]},
        {**WHOLE, "events": [["refused", 1.0, "ns\x1b[2J", *REFUSED[3:]]]},
        {**WHOLE, "events": [["refused", 1.0, "a b", *REFUSED[3:]]]},
        {**WHOLE, "events": [["refused", 1.0, "n" * 400, *REFUSED[3:]]]},
        {**WHOLE, "events": [[*XID[:7], True, ""]]},
        {**WHOLE, "events": [[*XID[:7], 10**9, ""]]},
        {**WHOLE, "events": [[*REFUSED[:8], "because"]]},
        {**WHOLE, "logs": [["diary", "x", 0, None, None]]},
        {**WHOLE, "logs": [["kubelet", "x", 0, "yesterday", None]]},
        {**WHOLE, "gpus": [["0000:3b:00.0"]]},
        {**WHOLE, "gpus": [["\x1b", "GPU-1"]]},
    ],
)  # fmt: skip
def test_what_is_malformed(bad: Any) -> None:
    found = read(bad)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


@given(JSONS, st.sampled_from(["events", "logs", "gpus", "left_out"]))
def test_any_json(value: Any, key: str) -> None:
    found = read({**WHOLE, key: json.loads(json.dumps(value))})
    assert isinstance(found, DeviceLog | Unread)
