"""The kernel's messages through real programs and the real device."""

import os
import time

import pytest

from seawall.host.kernel_messages import journal_lines, kmsg_lines


def test_lines_of_a_program_that_ends() -> None:
    command = ("sh", "-c", "printf 'one\\ntwo\\nrest'")
    assert list(journal_lines(10, command)) == [b"one\n", b"two\n", b"rest"]


def test_program_that_hangs_is_left_behind_at_the_deadline() -> None:
    lines = journal_lines(0.3, ("sh", "-c", "echo one; exec sleep 60"))
    began = time.monotonic()
    assert next(lines) == b"one\n"
    with pytest.raises(TimeoutError):
        next(lines)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("command", [("/nowhere/journalctl",), ("false",)])
def test_program_that_cannot_answer(command: tuple[str, ...]) -> None:
    with pytest.raises(OSError, match=r"No such file|status 1"):
        list(journal_lines(10, command))


@pytest.mark.system
def test_device_gives_whole_records_and_ends() -> None:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}: run as root, with the device")
    records = [line for line in kmsg_lines() if not line.startswith(b" ")]
    assert records
    for record in records:
        head, semicolon, _ = record.partition(b";")
        assert semicolon
        assert all(part.isdigit() for part in head.split(b",")[:3])
        assert record.endswith(b"\n")
