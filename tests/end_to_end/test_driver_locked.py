"""Holders of driver files that cannot be looked into: a dead file server, a locked mm."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import held_process
from tests.end_to_end.test_safety import answers_in_half_a_second, needs_fuse, silent_files

from seawall.host.live import LiveHost
from seawall.host.slow_probes import SLOW_PROBES
from seawall.readings import driver_files, driver_mappings
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_mappings import DriverMappings

pytestmark = pytest.mark.system
KVM = "/dev/kvm"


@pytest.fixture
def locked_holder(tmp_path: Path) -> Iterator[int]:
    """It has /dev/kvm open, and a file of a server that never answers; its mm is locked."""
    needs_fuse()
    if not os.access(KVM, os.R_OK | os.W_OK):
        pytest.skip(f"no {KVM} that may be opened: run as root on a machine with KVM")
    device = os.open(KVM, os.O_RDWR)
    with silent_files(tmp_path, "stuck") as mountpoint:
        held = subprocess.Popen(
            [sys.executable, held_process.__file__, str(mountpoint / "stuck")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[device],
        )  # fmt: skip
        try:
            assert held.stdout
            assert held.stdout.readline() == b"held\n"
            until = time.monotonic() + 10
            while answers_in_half_a_second(f"/proc/{held.pid}/cmdline"):
                assert time.monotonic() < until, "its address space never locked: no proof"
            yield held.pid
        finally:
            held.kill()
            os.close(device)
    held.communicate()


def test_its_files_are_seen_and_its_mappings_named_as_missing(locked_holder: int) -> None:
    """Beside it an innocent holder, whose address space is read all the same."""
    host = LiveHost()
    try:
        began = time.monotonic()
        files = driver_files.read(host)
        assert time.monotonic() - began < SLOW_PROBES["driver_files"].deadline_seconds
        assert isinstance(files, DriverFiles), "a dead file server held the probe up"
        locked = {pid for pid in files.by_pid if not answers_in_half_a_second(f"/proc/{pid}/maps")}
        assert locked_holder in files.by_pid
        assert os.getpid() in files.by_pid, "the test itself holds it too"
        found = driver_mappings.read(host, files)
    finally:
        host.close()
    assert isinstance(found, DriverMappings)
    # Since 6.17 maps is read without mmap_lock: then it is known that nothing is mapped.
    assert set(found.left_out) == locked
    assert {unread.path for unread in found.unread} == {f"/proc/{pid}/smaps" for pid in locked}
    assert {unread.why for unread in found.unread} <= {"no_answer"}
