"""``seawall gpu --watch`` against a real container: seed 2's repair by hand, and what undoes it.

What gives the device is a shell, what takes it away is runc itself, which writes the rules of
its config into a cgroup that it starts a container in.  What stands in for a GPU: see gpu_node.
"""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.containers.gpu_node import (
    NODES,
    WITHOUT_UVM,
    Container,
    GpuNode,
    Wanted,
    config_of,
    mknod,
    set_up,
)  # fmt: skip
from tests.containers.node import make_bundle, new_id, node
from tests.containers.test_gpu_runc import DEVICES, SOME, UVM, missing
from tests.end_to_end.verbs import ENVIRONMENT

from seawall.formats.iso_time import iso_datetime

pytestmark = [pytest.mark.system, pytest.mark.beside]
SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-event.json").read_text())
FUSE_RULE = "c 10:229 rwm"


class Watch:
    """One that runs, and what it said so far."""

    def __init__(self, home: GpuNode, *words: str) -> None:
        command = ["nsenter", "-t", str(home.node.pid), "-m", "--wd=/", "--", sys.executable, "-m",
                   "seawall", "gpu", "--watch", "--json", "--every", "0.5", *words]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT)
        self.events: list[dict[str, Any]] = []
        self._data = b""

    def until(self, is_it: Callable[[dict[str, Any]], bool], seconds: float = 5) -> dict[str, Any]:
        """The next event that is it; those before it are kept."""
        assert self.process.stdout
        end = time.monotonic() + seconds
        while True:
            while b"\n" in self._data:
                line, _, self._data = self._data.partition(b"\n")
                event = json.loads(line)
                jsonschema.validate(event, SCHEMA)
                self.events.append(event)
                if is_it(event):
                    return event
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            part = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            assert part, f"it did not come: {self.events[-3:]}"
            self._data += part

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def access(event: dict[str, Any]) -> bool:
    return event["event"] == "access"


def seconds_since(event: dict[str, Any], unix: float) -> float:
    return iso_datetime(event["at"]).timestamp() - unix


def shell_writes(container: Container, file: str, rule: str) -> "subprocess.Popen[bytes]":
    """A shell that stays a moment, as one that somebody types at does."""
    path = shlex.quote(str(DEVICES / container.cgroup.strip("/") / file))
    return subprocess.Popen(["sh", "-c", f"echo '{rule}' > {path}; sleep 0.5"])


def runc_starts_another_in(home: GpuNode, container: Container, folder: Path) -> str:
    """The id of a container in the same cgroup, whose config does not allow nvidia-uvm."""
    key = new_id()
    wanted = Wanted(name="second", nodes=SOME, promised=None)
    bundle = make_bundle(folder / "second", config_of(wanted, container.cgroup))
    home.node.start("runc", "run", "-d", "-b", str(bundle), key)
    return key


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuNode]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("gpu-watch")
    with node(folder) as plain:
        set_up(plain)
        made = GpuNode(plain, folder)
        try:
            made.start(Wanted(name="job", nodes=SOME, promised=WITHOUT_UVM))
            made.start(Wanted(name="other"))
            made.containers["job"].inside(plain, mknod(UVM, NODES[UVM]))
            yield made
        finally:
            made.end()


@pytest.fixture
def watch(home: GpuNode) -> Iterator[Watch]:
    made = Watch(home)
    started = made.until(lambda event: event["event"] == "started", 20)
    assert (started["containers"], started["devices"]) == (2, 7)
    yield made
    made.end()


def test_the_repair_by_hand_and_its_end(home: GpuNode, watch: Watch, tmp_path: Path) -> None:
    job = home.containers["job"]
    stands = watch.until(lambda event: event["device"] == UVM and event["workload"] == job.workload)
    assert (stands["event"], stands["to"]) == ("stands", "EPERM")

    gave_at = time.time()
    shell = shell_writes(job, "devices.allow", "c 510:0 rw")
    gave = watch.until(access)
    shell.wait()
    assert (gave["workload"], gave["device"]) == (job.workload, UVM)
    assert (gave["from"], gave["to"], gave["layer"]) == ("EPERM", "allowed", "kernel")
    assert gave["writer"]["pid"] == shell.pid
    assert gave["writer"]["comm"] == "sh"
    assert gave["writer"]["parent_pid"] == os.getpid()
    assert gave["why"] == "devices.list got c 510:0 rw"
    assert 0 <= seconds_since(gave, gave_at) < 1

    home.node.need("runc", "update", "--memory", str(65 << 20), job.key)
    took_at = time.time()
    second = runc_starts_another_in(home, job, tmp_path)
    took = watch.until(access)
    home.node.run("runc", "kill", second, "KILL")
    # What it is called depends on which of the two a table finds there.
    assert (took["cgroup"], took["device"]) == (gave["cgroup"], UVM)
    assert (took["from"], took["to"], took["errno_name"]) == ("allowed", "EPERM", "EPERM")
    assert took["is_back"]
    assert took["writer"]["comm"] == "runc"
    assert took["writer"]["program"] == "runc"
    assert took["undid_writer"]["pid"] == shell.pid
    lasted = iso_datetime(took["at"]) - iso_datetime(gave["at"])
    assert took["lasted_seconds"] == pytest.approx(lasted.total_seconds(), abs=0.01)
    assert -0.01 <= seconds_since(took, took_at) < 2
    why = f"the kernel's rule ({took['why']})"
    assert f"then refused again, EPERM; {why}; written over by runc (pid" in took["words"]
    home.node.run("runc", "delete", "-f", second)


def test_what_changes_no_access_and_what_is_not_a_rule(home: GpuNode, watch: Watch) -> None:
    """Another's rule, the host's node, a container that ends; then ^C."""
    job = home.containers["job"]
    shell = shell_writes(job, "devices.allow", FUSE_RULE)
    event = watch.until(lambda event: event["event"] in ("kernel", "written"))
    shell.wait()
    assert (event["event"], event["why"]) == ("kernel", f"devices.list got {FUSE_RULE}")
    assert event["writer"]["pid"] == shell.pid

    home.node.need("rm", UVM)
    event = watch.until(lambda event: event["event"] == "node")
    assert (event["device"], event["workload"], event["to"]) == (UVM, None, "missing")
    home.node.need("sh", "-c", mknod(UVM, NODES[UVM]))
    assert watch.until(lambda event: event["event"] == "node")["to"] == "there"

    job.inside(home.node, f"rm {UVM}")
    event = watch.until(lambda event: event["to"] == "ENOENT")
    assert (event["event"], event["layer"], event["writer"]) == ("access", "node", None)

    other = home.containers["other"]
    home.node.run("runc", "delete", "-f", other.key)
    event = watch.until(lambda event: event["event"] == "container")
    assert (event["workload"], event["from"], event["to"]) == (other.workload, "there", None)
    assert not [one for one in watch.events if one["workload"] == other.workload
                and one["event"] in ("kernel", "written")]  # fmt: skip

    watch.process.send_signal(signal.SIGINT)
    ended = watch.until(lambda event: event["event"] == "ended")
    assert ended["events"] >= 5
    assert watch.process.wait() == 0
