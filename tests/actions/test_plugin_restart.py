"""Ending a plugin's container: who is asked, and what it means that its process is gone."""

import time
from typing import Any

import pytest
from tests.accounts.device_worlds import process
from tests.accounts.test_gpu_repair_plans import ITS, LACKING, OWN

from seawall.accounts.devices.repairs.plugin_proof import proof
from seawall.actions.device_repairs import plugin_restart
from seawall.actions.device_repairs.plugin_restart import restart
from seawall.actions.device_repairs.repair_run import RepairRun, RepairStepOutcome
from seawall.host.own_commands import Ran
from seawall.host.process_ending import Stranger
from seawall.readings.process import Processes


class Now(dict[type, Any]):
    """A snapshot with two files of mounts."""

    def __init__(self, comm: str = "nvidia-device-p", own: bytes = OWN) -> None:
        seen = process(LACKING.pid)._replace(comm=comm)
        super().__init__({Processes: Processes({LACKING.pid: seen}, ())})
        self.host = self
        self._files = {"/proc/self/mountinfo": own}

    def read(self, path: str, _: int | None = None) -> bytes:
        return self._files.get(path, ITS % (b"/device-plugins", b"/x"))


@pytest.mark.parametrize(
    ("comm", "expected"),
    [("nvidia-device-p", "proven"), ("runc:[2:INIT]", "unseen"), ("crun", "unseen")],
)
def test_a_container_that_is_still_starting_proves_nothing(comm: str, expected: str) -> None:
    """Its mounts may be the host's still."""
    assert proof(Now(comm), LACKING.pid) == expected  # type: ignore[arg-type]


def test_the_hosts_own_mounts_prove_nothing() -> None:
    same = ITS % (b"/device-plugins", b"/x")
    assert proof(Now(own=same), LACKING.pid) == "unseen"  # type: ignore[arg-type]


@pytest.fixture
def repair(monkeypatch: pytest.MonkeyPatch) -> RepairRun:
    """Its process ended before a signal could be sent."""

    def gone(*_: object) -> str:
        raise Stranger("process 815 is gone")

    monkeypatch.setattr(plugin_restart, "end", gone)
    monkeypatch.setattr(plugin_restart, "find", lambda _: "/bin/crictl")
    monkeypatch.setattr(plugin_restart, "run", lambda *_: Ran(None, "", "crictl did not end"))
    waited = RepairStepOutcome("done", "waited", is_verified=True)
    monkeypatch.setattr(plugin_restart, "_wait", lambda *_: waited)
    return RepairRun(None, time.monotonic() + 9, None, print, Now())  # type: ignore[arg-type]


def test_what_crictl_stopped_without_saying_so_is_waited_for(
    repair: RepairRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTAINER_RUNTIME_ENDPOINT", "x")
    assert restart(repair, LACKING).words == "waited"


def test_without_crictl_nothing_was_sent(
    repair: RepairRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_restart, "find", lambda _: None)
    found = restart(repair, LACKING)
    assert (found.state, found.words) == ("failed", "nothing was sent: process 815 is gone")
