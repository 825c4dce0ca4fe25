"""/run/seawall/status.json: valid for one boot."""

import json
from typing import Any

import pytest
from tests.case_host import parse_case
from tests.readings.parser_samples import GUARD_STATUS

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings.guard_status import PATH, GuardStatus, parse, read

BOOT = "00000000-0000-4000-8000-000000000000"


def with_(**changes: Any) -> bytes:
    return json.dumps({**json.loads(GUARD_STATUS), **changes}).encode()


def read_from(text: str) -> GuardStatus | Unread:
    return read(parse_case(f"why: guard\n{text}".encode()).rounds[0])


def test_every_field_is_read() -> None:
    status = parse(GUARD_STATUS)
    assert (status.boot_id, status.pid, status.mode, status.can_kill) == ("b", 7, "enforce", True)
    assert (status.headroom_bytes, status.headroom_seconds) == (-5, 4.5)
    assert status.residual_bytes is None
    assert status.last_decision is not None
    assert (status.last_decision.how, status.last_decision.result) == ("acted", "r")
    assert (status.top[0].cgroup, status.top[0].limit_bytes) == ("/x", None)
    assert status.blind == ("b",)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "seawall.guard_status/2"}, {"mode": "kill"}, {"can_kill": 1}, {"host": "b"},
        {"pid": -1}, {"pid": True}, {"headroom_bytes": None}, {"headroom_seconds": "4"},
        {"top": {}}, {"top": [7]}, {"top": [{}]}, {"blind": ["x"] * 65}, {"blind": [7]},
        {"last_decision": []}, {"last_decision": {}}, {"state": "x" * 4097}, {"kills": 1 << 61},
        {"decisions": float("nan")},
    ],
)  # fmt: skip
def test_what_is_malformed_is_said_to_be(changes: dict[str, Any]) -> None:
    with pytest.raises(ParseProblem):
        parse(with_(**changes))


def test_a_later_guards_keys_are_skipped() -> None:
    assert parse(with_(later=[1, {"x": None}])) == parse(GUARD_STATUS)


def test_a_status_of_another_boot_is_none() -> None:
    boot = f"=== /proc/sys/kernel/random/boot_id\n{BOOT}\n"
    mine = with_(host={"boot_id": BOOT}).decode()
    status = read_from(f"=== {PATH}\n{mine}\n{boot}")
    assert isinstance(status, GuardStatus)
    other = read_from(f"=== {PATH}\n{GUARD_STATUS.decode()}\n{boot}")
    assert isinstance(other, Unread)
    assert (other.why, other.detail) == ("absent", "of a guard of another boot")
    absent = read_from(boot)
    assert isinstance(absent, Unread)
    assert absent.why == "absent"
