"""Logs whose newest line stands first are turned by their times, or it is said that these do not
tell.
"""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.end_to_end.explained_logs import LOGS
from tests.end_to_end.warm_verbs import seawall

NAME = "memcg-v2-5.15.158-2-pve-php-fpm.txt"
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


def dated(form: str, step_seconds: float = 0.3) -> list[str]:
    """A report with a time before every line."""
    lines = []
    for i, line in enumerate((LOGS / NAME).read_text().splitlines()):
        text = line.split("] ", 1)[-1] if line.startswith("[") and "]  " not in line[:20] else line
        at = START + timedelta(seconds=i * step_seconds)
        if form == "journalctl":
            lines.append(f"{at:%b %d %H:%M:%S} node-1 kernel: {text}")
        elif form == "iso":
            lines.append(f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06}Z node-1 kernel: {text}")
        elif form == "json":
            micro = str(int(at.timestamp() * 1e6))
            record = {"__REALTIME_TIMESTAMP": micro, "_TRANSPORT": "kernel", "MESSAGE": text}
            lines.append(json.dumps(record))
        else:
            lines.append(f"[{100 + i * step_seconds:12.6f}] {text}")
    return lines


def explained(tmp_path: Path, lines: list[str]) -> dict[str, object]:
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    document = seawall("oom", "explain", "--json", str(log)).answered().document
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("form", ["journalctl", "iso", "json", "dmesg"])
def test_newest_first_says_what_oldest_first_says(form: str, tmp_path: Path) -> None:
    lines = dated(form)
    straight, turned = explained(tmp_path, lines), explained(tmp_path, lines[::-1])
    assert straight["reports_found"] == 1
    assert turned["reports"] == straight["reports"]
    assert "line numbers" not in str(straight["could_not_see"])
    assert "counted from its end" in str(turned["could_not_see"])


def test_times_that_do_not_tell_are_said_so(tmp_path: Path) -> None:
    lines = dated("journalctl", 0.0)
    assert "newest line" not in str(explained(tmp_path, lines)["could_not_see"])
    seen = str(explained(tmp_path, lines[::-1])["could_not_see"])
    assert "whether the newest line stands first" in seen
    assert "tac FILE" in seen


def test_two_boots_in_one_file_are_not_turned(tmp_path: Path) -> None:
    lines = dated("dmesg")
    document = explained(tmp_path, [*lines, *lines])
    assert "newest" not in str(document["could_not_see"])


def loki_answer(lines: list[str], streams: int = 1) -> str:
    """What Loki's ``query_range`` answers: one line of JSON; ``lines`` in its order."""
    rows = [
        [str(int((START + timedelta(seconds=len(lines) - i)).timestamp() * 1e9)), line]
        for i, line in enumerate(lines)
    ]
    size = -(-len(rows) // streams)
    result = [
        {"stream": {"host": "node-1", "unit": f"kernel-{i}"}, "values": rows[i * size :][:size]}
        for i in range(streams)
    ]
    data = {"resultType": "streams", "result": result, "stats": {"summary": {"bytes": 12345}}}
    return json.dumps({"status": "success", "data": data}, separators=(",", ":"))


@pytest.mark.parametrize("streams", [1, 2])
def test_an_answer_of_loki_in_one_line(tmp_path: Path, streams: int) -> None:
    text = (LOGS / NAME).read_text().splitlines()
    straight = explained(tmp_path, text)
    turned = explained(tmp_path, [loki_answer(text[::-1], streams)])
    assert straight["reports_found"] == turned["reports_found"] == 1
    places = ("first_line", "last_line", "at", "at_time", "unread")
    [one], [other] = straight["reports"], turned["reports"]
    assert {k: v for k, v in one.items() if k not in places} == {
        k: v for k, v in other.items() if k not in places
    }
    assert "counted from its end" in str(turned["could_not_see"])


def test_an_array_of_records_in_one_line(tmp_path: Path) -> None:
    """CloudWatch's ``filter-log-events``, sorted newest first by whoever saved it."""
    text = (LOGS / NAME).read_text().splitlines()
    rows = [{"timestamp": 1_771_000_000_000 - 7 * i, "message": line, "tags": [{"a": 1}, {"b": 2}]}
            for i, line in enumerate(text[::-1])]  # fmt: skip
    straight = explained(tmp_path, [json.dumps(rows[::-1])])
    turned = explained(tmp_path, [json.dumps(rows)])
    [one], [other] = straight["reports"], turned["reports"]
    for name in ("killed", "tasks", "verdict", "advice", "returned_bytes"):
        assert one.get(name) == other.get(name)
    assert "newest" not in str(straight["could_not_see"])
    assert "counted from its end" in str(turned["could_not_see"])
