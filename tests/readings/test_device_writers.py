"""Lines of the process that listens for writers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.problems import ParseProblem
from seawall.readings.device_writers import LINE_BYTES_MOST, DeviceWriter, LostWrites, Write, parse

LINE = {
    "path": "/sys/fs/cgroup/devices/a:b/devices.deny", "unix": 1.7e9, "monotonic": 12.5,
    "pid": 4711, "comm": "ru\udcffnc\n", "exe": "runc", "start_ticks": 99, "cgroup": "/x",
    "parent_pid": 1, "parent_comm": "systemd",
}  # fmt: skip


def line(**changed: Any) -> bytes:
    return json.dumps({**LINE, **changed}).encode()


def test_a_whole_line() -> None:
    writer = DeviceWriter(4711, "ru\udcffnc\n", "runc", 99, "/x", 1, "systemd")
    folder = "/sys/fs/cgroup/devices/a:b"
    assert parse(line()) == Write(folder, "devices.deny", 1.7e9, 12.5, writer)


def test_a_process_that_was_gone() -> None:
    told = {name: LINE[name] for name in ("path", "unix", "monotonic", "pid")}
    found = parse(json.dumps(told).encode())
    assert isinstance(found, Write)
    assert found.writer == DeviceWriter(4711)


def test_lost_ones() -> None:
    assert parse(b'{"is_lost": true, "unix": 2.0, "monotonic": 1.5}') == LostWrites(1.5)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"[" * 100_000, b" " * (LINE_BYTES_MOST + 1), line(path="devices.deny"),
     line(path=None), line(pid=-1), line(pid=True), line(pid="4711"), line(unix="now"),
     line(monotonic=float("nan")), line(monotonic=float("inf")), line(unix=True), b"\xff{}"],
)  # fmt: skip
def test_anything_else(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(LINE)), JSONS)
def test_only_a_parse_problem_comes_out(name: str, value: Any) -> None:
    try:
        found = parse(line(**{name: value}))
    except ParseProblem:
        return
    assert isinstance(found, Write)
    assert isinstance(found.writer.pid, int)
    assert all(one is None or isinstance(one, str | int) for one in found.writer)


@given(st.binary(max_size=200))
def test_no_bytes_get_through(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)
