"""A guard has a descriptor for each file of each cgroup: more than select(2) can count."""

import os
import resource
import signal
import subprocess

import pytest

from seawall.guard.pulse import Pulse


def test_a_pidfd_over_1023_is_waited_for() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"only {hard} descriptors are allowed: ulimit -n 4096")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1024)]
    try:
        with subprocess.Popen(["sleep", "60"]) as process:
            pulse = Pulse(process.pid, {os.getpid()})
            assert not pulse.wait(0.01)
            process.kill()
            assert pulse.wait(5)
            pulse.close()
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_python_that_knows_no_pidfd_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with subprocess.Popen(["sleep", "60"]) as process:
        pulse = Pulse(process.pid, {os.getpid()})
        assert pulse.end()
        pulse.close()
        assert process.wait(5) == -signal.SIGKILL
