"""What is not there yet when the guard starts, or changes under it: network, name, clock, room."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.guard.telling import CGROUP, POD_UID

from seawall.guard.tell.termination import MessagePlaces, write

SOURCES = Path(__file__).parents[2]


def apart(namespaces: str, program: str, *arguments: str) -> list[str]:
    """The lines that ``program`` prints in namespaces of its own."""
    if subprocess.run(["unshare", namespaces, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces here: needs root or user namespaces")
    done = subprocess.run(
        ["unshare", namespaces, sys.executable, "-c", program, *arguments], cwd=SOURCES,
        env={"PYTHONPATH": "src:.", "PATH": os.environ["PATH"]}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


NETWORK = """
import socket, subprocess
from seawall.guard.tell.datagram import Datagram
datagram = Datagram("10.9.9.9:5140")
datagram.open()
datagram.prepare({"node": "n", "top": []})
print(datagram.problem)
print(datagram.send({"id": "1", "sentence": "x"}), datagram.problem)
def ip(*words):
    subprocess.run(["ip", *words], check=True)
ip("link", "set", "lo", "up")
ip("addr", "add", "10.9.9.9/32", "dev", "lo")
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.bind(("10.9.9.9", 5140))
ear.settimeout(5)
datagram.prepare({"node": "n", "top": []})
print(datagram.problem)
print(datagram.send({"id": "2", "sentence": "x"}), b'"id":"2"' in ear.recv(2000))
"""


def test_datagrams_go_out_as_soon_as_the_network_has_come() -> None:
    """The unit starts before it at every boot."""
    if shutil.which("ip") is None:
        pytest.skip("no ip: apt-get install iproute2")
    unreached = "datagram_to 10.9.9.9:5140: Network is unreachable"
    assert apart("-rn", NETWORK) == [unreached, f"False {unreached}", "", "True True"]


NAME = """
import json, socket, sys
from tests.guard.telling import BOOT, node, verdict
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
folder = sys.argv[1]
socket.sethostname("localhost")
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.bind(("127.0.0.1", 0))
ear.settimeout(5)
settings = Settings(datagram_to=f"127.0.0.1:{ear.getsockname()[1]}")
teller = Teller(settings, Paths(folder, kmsg="/none", pmsg="/none"), BOOT, None)
teller.open()
socket.sethostname("node-17")
teller.status(node(), {}, "near", {})
teller.verdict(verdict())
print(json.load(open(folder + "/status.json"))["host"]["node"])
print(json.loads(ear.recv(2000))["node"])
"""


def test_the_name_of_the_node_may_come_later(tmp_path: Path) -> None:
    assert apart("-ru", NAME, str(tmp_path)) == ["node-17", "node-17"]


FULL = """
import subprocess, sys
from pathlib import Path
from seawall.guard.tell.termination import append
top = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", top], check=True)
(top / "message").write_bytes(b"x" * 4000)
with open(top / "filler", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
print(append(str(top), "message", "Killed by seawall guard: " + "y" * 500))
print((top / "message").stat().st_size)
"""


def test_half_a_sentence_on_a_full_disk_is_not_told_as_whole(tmp_path: Path) -> None:
    assert apart("-rm", FULL, str(tmp_path)) == ["message: No space left on device", "4096"]


def test_a_clock_that_was_set_back_hides_no_termination_message(tmp_path: Path) -> None:
    folder = tmp_path / f"kubelet/pods/{POD_UID}/containers/worker"
    folder.mkdir(parents=True)
    first, second = folder / "00000002", folder / "00000001"
    first.touch()
    second.touch()
    while second.stat().st_ctime <= first.stat().st_ctime:
        second.touch()
    killed = first.stat().st_ctime - 3600
    places = MessagePlaces((f"{tmp_path}/kubelet",), (), ("",), "/nowhere")
    request = {"cgroup": CGROUP, "words": "Killed by seawall guard", "unix_seconds": killed}
    assert write(request, places) == {"path": str(second), "problem": ""}
    assert first.read_text() == ""
