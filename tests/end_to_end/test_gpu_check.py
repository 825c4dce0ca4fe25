"""``seawall gpu check`` as a workload's first act: its own /dev, and a device cgroup that refuses.

Nodes of the kernel's memory devices (1:3, 1:5) stand in for a GPU's: what opens them and what
refuses is the real kernel.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.verbs import Ran, run

DEVICES = Path("/sys/fs/cgroup/devices")
USUAL = """
mount -t tmpfs tmpfs /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/urandom c 1 9
"""
NODES = "mknod -m 666 /dev/nvidiactl c 1 3; mknod -m 666 /dev/nvidia0 c 1 3;"
UVM = "mknod -m 666 /dev/nvidia-uvm c 1 5;"


def missing() -> str | None:
    if os.geteuid():
        return "mount namespaces and mknod need root: sudo make test-system"
    if os.path.exists("/dev/nvidiactl"):
        return "this machine has an NVIDIA driver, whose majors are others"
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return f"unshare -m: {done.stderr.decode().strip()}" if done.returncode else None


REASON = missing()
pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]


def check(made: str, *words: str, visible: str = "0") -> Ran:
    """In a mount namespace with a /dev of its own, after ``made``."""
    asked = [sys.executable, "-m", "seawall", "gpu", "check", *words]
    script = f'set -e; {USUAL}{made} exec "$@"'
    variable = f"NVIDIA_VISIBLE_DEVICES={visible}"
    return run(["unshare", "-m", "env", variable, "sh", "-c", script, "sh", *asked])


@pytest.fixture
def group() -> Iterator[str]:
    """Shell words that go into a device cgroup which refuses 1:5, as one without nvidia-uvm."""
    if not (DEVICES / "devices.deny").exists():
        pytest.skip("no device cgroup of version 1: boot with systemd.unified_cgroup_hierarchy=0")
    place = DEVICES / f"seawall-check-{os.getpid()}"
    place.mkdir()
    (place / "devices.deny").write_text("c 1:5 rw")
    yield f"echo $$ > {place}/cgroup.procs;"
    for _ in range(100):  # the verb's children are killed with it, and die a moment later
        with contextlib.suppress(OSError):
            place.rmdir()
            return
        time.sleep(0.05)
    raise AssertionError(f"{place} is still in use: {(place / 'cgroup.procs').read_text()}")


def test_what_opens_is_enough() -> None:
    done = check(NODES + UVM)
    assert (done.status, done.text) == (0, "nvidia: 3 of 3 devices opened.\n")
    by_its_nodes = check(NODES + UVM, visible="void")
    assert by_its_nodes.status == 0


def test_a_device_cgroup_that_refuses_one_is_f1(group: str) -> None:
    done = check(NODES + UVM + group)
    assert done.status == 10
    assert done.text.startswith(
        "/dev/nvidia-uvm: Operation not permitted (EPERM), promised by NVIDIA_VISIBLE_DEVICES=0: "
        "the device cgroup of this container refuses it, and not its other devices"
    )
    assert "[F1]" in done.text
    assert done.text.count("\n") == 1


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (NODES, ("/dev/nvidia-uvm: No such file", "is not loaded on this host", "[F2]")),
        (NODES + "mkfifo /dev/nvidia-uvm;", ("/dev/nvidia-uvm: No such device", "no device node")),
        (NODES + "mknod -m 666 /dev/nvidia-uvm c 4095 0;", ("(ENXIO)", "c 4095:0", "[F10]")),
        (UVM + "mknod /dev/nvidiactl c 1 3;", ("/dev/nvidiaN: No such", "NVIDIA_VISIBLE_DEVICES=")),
    ],
)
def test_each_refusal_is_one_sentence(made: str, expected: tuple[str, ...]) -> None:
    done = check(made)
    assert done.status == 10
    assert done.text.count("\n") == 1
    for words in expected:
        assert words in done.text


def test_a_mig_capability_is_read_and_judged(group: str) -> None:
    """Of mode 444: nobody but root could open it for writing."""
    place = "/dev/nvidia-caps"
    caps = f"mkdir {place}; mknod -m 444 {place}/nvidia-cap21 c 1 9;"
    mig = {"visible": "MIG-6e0b4ad5-e5cc-5c5a-b0a4-0e2a7f0e9b11"}
    nobody = 'set -- setpriv --reuid=65534 --clear-groups "$@";'
    good = f"{NODES} mknod -m 666 /dev/nvidia-uvm c 1 3; {caps}"
    done = check(good + nobody, **mig)
    assert (done.status, done.text) == (0, "nvidia: 4 of 4 devices opened.\n")
    done = check(f"{good} mknod -m 444 {place}/nvidia-cap22 c 1 5; {group}", **mig)
    assert (done.status, done.text[:45]) == (10, "/dev/nvidia-caps/nvidia-cap22: Operation not ")
    assert "[F1]" in done.text


def test_a_class_that_must_be_there_is_missed() -> None:
    assert check("", visible="none").status == 0
    needed = check("", "--need", "nvidia", visible="none")
    assert needed.status == 10
    assert "promised by --need" in needed.text
