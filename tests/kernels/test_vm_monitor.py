"""What QEMU's monitor says of a VM that stands still, and of a monitor that is none."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.kernels import vm_monitor


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_monitor, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(vm_monitor, "_WAIT_SECONDS", 10.0)


@pytest.mark.system
@pytest.mark.skipif(
    shutil.which("qemu-system-x86_64") is None, reason="needs QEMU: apt-get install qemu-system-x86"
)
@pytest.mark.usefixtures("quick")
def test_processors_that_have_not_begun(tmp_path: Path) -> None:
    monitor = tmp_path / "monitor"
    words = ("-S", "-smp", "2", "-m", "16", "-nodefaults", "-display", "none")
    command = ["qemu-system-x86_64", *words, "-qmp", f"unix:{monitor},server=on,wait=off"]
    with subprocess.Popen(command) as vm:
        try:
            until = time.monotonic() + 30
            while not monitor.exists():
                assert time.monotonic() < until
                assert vm.poll() is None
                time.sleep(0.05)
            lines = vm_monitor.places(monitor)
        finally:
            vm.kill()
    first = "CPU 0 at 0000fff0 ring 0 halted 0"
    assert len(lines) == 6
    assert all(line.startswith(f"silent: {first}, CPU 1 at ") for line in lines)


@pytest.mark.usefixtures("quick")
def test_a_monitor_that_is_gone_or_mute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = vm_monitor.places(tmp_path / "nowhere")
    assert line.startswith("QEMU's monitor: ")
    monkeypatch.setattr(vm_monitor, "_WAIT_SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "mute"))
        mute.listen()
        assert vm_monitor.places(tmp_path / "mute") == ["QEMU's monitor: no answer"]
