"""A system call that does not come back holds up its thread, never who gave it."""

import os
import time

from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.mrelease_effects import Releases


def test_it_hangs_and_the_giver_does_not() -> None:
    ours, theirs = os.pipe()
    background = Background()
    background.start()
    assert background.hand(lambda: os.read(ours, 1) and None)
    time.sleep(0.05)
    assert background.is_busy
    assert not background.hand(lambda: None)
    releases = Releases(background)
    began = time.monotonic()
    fd = os.open("/sys/fs/cgroup", os.O_PATH)
    releases.take(fd, 2, CgroupMembers())
    releases.tend(time.monotonic())
    os.close(fd)
    assert time.monotonic() - began < 0.5
    os.write(theirs, b"x")
    until = time.monotonic() + 5
    while background.is_busy and time.monotonic() < until:
        time.sleep(0.01)
    assert not background.is_busy
    os.close(ours)
    os.close(theirs)


def test_without_a_thread_nothing_is_taken() -> None:
    assert not Background().hand(lambda: None)
