"""What of the kernel's log leaves the probe ``sysrq``: functions, tasks and CPUs, nothing else."""

import pytest
from tests.readings import sysrq_samples as samples

from seawall.host import sysrq
from seawall.readings.sysrq_backtraces import parse

ALL = {name: getattr(samples, name) for name in dir(samples) if name.isupper()}


def records(text: bytes) -> list[bytes]:
    """As /dev/kmsg gives them, with the key that a device adds."""
    return [b"4,%d,98765,-,caller=T7;%s\n SUBSYSTEM=pci\n" % (number, line)
            for number, line in enumerate(text.splitlines(), start=800)]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_the_backtraces_are_the_same_behind_the_sieve(name: str) -> None:
    kept = b"\n".join(sysrq._kept(records(ALL[name])))
    assert parse(kept) == parse(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_no_register_no_byte_of_a_stack_no_address(name: str) -> None:
    kept = b"\n".join(sysrq._kept(records(ALL[name])))
    for secret in ("RSP", "RAX", "Code:", "Hardware", "Modules", "x29:", "SUBSYSTEM", "ffff",
                   "7f51db009c27", "pstate"):  # fmt: skip
        assert secret.encode() not in kept


def test_other_messages_stay_in_the_log() -> None:
    others = [
        b'audit: type=1400 comm="mysqld" key="hunter2"', b"usb 1-1: SerialNumber: 12345",
        b"IPv4: martian source 10.0.0.1 from 10.0.0.2", b" secret", b"Call me", b"CPU hot",
    ]  # fmt: skip
    assert sysrq._kept(records(b"\n".join(others))) == []


def test_a_record_of_many_lines_is_taken_apart() -> None:
    record = b"4,1,2,-;NMI backtrace for cpu 1\\x0aRAX: 1\\x0aCall Trace:\\x0a f+0x1/0x2\n"
    assert sysrq._kept([record]) == [b"NMI backtrace for cpu 1", b"Call Trace:", b" f+0x1/0x2"]
    assert sysrq._kept([b"no record", b""]) == []


def test_only_two_commands_exist() -> None:
    for command in ("b", "c", "", "lw", "l\n"):
        with pytest.raises(OSError, match="Invalid argument"):
            sysrq.sysrq(command)
