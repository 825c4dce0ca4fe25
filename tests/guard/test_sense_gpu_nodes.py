# SPDX-License-Identifier: Apache-2.0
"""On machines whose GPU memory is NUMA nodes the GPU's work is no shortage of the host, and what is
free there no headroom.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.accounts.numactl_machines import GH200, machine
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree
from tests.guard.test_sense_movable import LOW, zone

from seawall.actions.orders import Mounts
from seawall.guard.judge.shortage import judge_shortage
from seawall.guard.sense.sense import Sense
from seawall.guard.sense.tick_gpu_nodes import NODES_MOST, TickGpuNodes
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Node
from seawall.quick_residual import quick_residual

MIB = 1 << 20
HOST_MIB, HOST_FREE_MIB = 490_037, 484_432
GPU_MIB = 97_280
HOST_LOW_MIB = LOW


class Machine:
    """A GH200 as numactl prints it; ``gpu_mib``: what a model took on the GPU, which no counter
    shows; ``host_mib``: what programs of the host took besides.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write()
        fake = FakeTree(folder / "tree", 2)
        self.sense = Sense(
            Settings(), Mounts(str(fake.mount), 2), "/",
            proc=str(folder / "proc"), sys=str(folder / "sys"),
        )  # fmt: skip
        self.sense.open()
        self.now = 1000.0

    def write(self, gpu_mib: int = 0, host_mib: int = 0) -> None:
        free = HOST_FREE_MIB + GPU_MIB - 1 - gpu_mib - host_mib
        anon = HOST_MIB - HOST_FREE_MIB + host_mib + 1
        more = {"MemFree": free, "MemAvailable": free, "AnonPages": anon, "Active": anon}
        for path, data in machine(GH200, (1,), gpu_mib, **more):
            place = self.folder / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data + b"\n")
        (self.folder / "proc/zoneinfo").write_text(
            zone(0, "Normal", HOST_FREE_MIB - host_mib, size=HOST_MIB)
            + zone(1, "Movable", max(GPU_MIB - gpu_mib - 1, 0), size=GPU_MIB)
        )

    def tell(self, gpu_mib: int = 0) -> None:
        """As the watcher does: its ledger leaves the GPU's memory out."""
        assert self.sense.memory.read()
        quick = quick_residual(self.sense.memory)
        self.sense.hear({"t": "ledger", "seconds": self.now, "residual": 0, "error": MIB,
                         "quick": quick, "armed": False, "blind": "", "gpu_nodes": [1],
                         "grown": 0, "unexplained": 0})  # fmt: skip

    def look(self) -> Node:
        self.now += 0.5
        return self.sense.look(self.now)


@pytest.fixture
def gh200(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.sense.close()


def test_what_is_free_on_a_gpu_is_no_headroom(gh200: Machine) -> None:
    before = gh200.look()
    gh200.tell()
    after = gh200.look()
    assert before.headroom_bytes - after.headroom_bytes == (GPU_MIB - 1 - LOW) * MIB
    assert after.headroom_bytes == (HOST_FREE_MIB - HOST_LOW_MIB) * MIB
    assert after.total_bytes == HOST_MIB * MIB
    assert after.free_bytes == HOST_FREE_MIB * MIB
    # Nobody took what lies between the two.
    assert after.comparable_bytes == before.comparable_bytes
    assert after.slope_bytes_per_second == 0.0


@pytest.mark.parametrize("model_mib", [40_000, GPU_MIB - 10])
def test_a_model_on_the_gpu_takes_nothing_of_the_host(gh200: Machine, model_mib: int) -> None:
    gh200.tell()
    gh200.look()
    before = gh200.look()
    gh200.write(gpu_mib=model_mib)
    after = gh200.look()
    assert after.headroom_bytes == before.headroom_bytes
    assert after.comparable_bytes == before.comparable_bytes
    assert after.slope_bytes_per_second == 0.0
    assert abs(after.residual_bytes or 0) <= MIB
    assert after.residual_grown_bytes <= MIB
    assert after.unexplained_growth_bytes <= MIB
    # The GPU's zone is under its watermarks when the model fills it.
    assert not after.is_low
    assert not after.is_min
    gh200.tell()
    assert abs(gh200.look().residual_bytes or 0) <= MIB


def test_a_model_that_was_there_before_the_watcher_spoke(gh200: Machine) -> None:
    gh200.write(gpu_mib=40_000)
    gh200.look()
    gh200.tell()
    told = gh200.look()
    assert abs(told.residual_bytes or 0) <= MIB
    gh200.write(gpu_mib=90_000)
    assert abs(gh200.look().residual_bytes or 0) <= MIB


def test_what_the_host_takes_still_counts(gh200: Machine) -> None:
    """Nearly all of its own memory, with 95 GiB free on the GPU."""
    gh200.tell()
    before = gh200.look()
    gh200.write(host_mib=HOST_FREE_MIB - 10)
    after = gh200.look()
    assert before.headroom_bytes - after.headroom_bytes == before.headroom_bytes
    assert before.comparable_bytes - after.comparable_bytes == (HOST_FREE_MIB - 10) * MIB
    gh200.look()
    short = gh200.look()
    assert short.is_low
    assert judge_shortage(short, Settings()).is_short


def test_a_driver_that_goes_takes_its_memory_with_it(gh200: Machine) -> None:
    gh200.tell()
    before = gh200.look()
    free = HOST_FREE_MIB << 10
    text = (gh200.folder / "proc/meminfo").read_text()
    lines = dict(line.split(": ") for line in text.splitlines())
    lines |= {"MemTotal": f"{HOST_MIB << 10} kB", "MemFree": f"{free} kB"}
    lines |= {"AnonPages": f"{HOST_MIB - HOST_FREE_MIB << 10} kB"}
    lines |= {"Active": lines["AnonPages"]}
    text = "".join(f"{name}: {value}\n" for name, value in lines.items())
    (gh200.folder / "proc/meminfo").write_text(text)
    node = gh200.folder / "sys/devices/system/node/node1/meminfo"
    node.unlink()
    gh200.sense.headroom.gpu._files[0].close()  # sysfs answers ENODEV
    after = gh200.look()
    assert after.headroom_bytes == before.headroom_bytes
    assert after.comparable_bytes == before.comparable_bytes
    assert after.total_bytes == HOST_MIB * MIB


@pytest.mark.parametrize(
    "told", [[-1], ["1"], [1 << 70], [True], [None, {}], list(range(5000)), [1.5]]
)
def test_hostile_numbers(tmp_path: Path, told: list[object]) -> None:
    nodes = TickGpuNodes(str(tmp_path))
    nodes.use(told)
    assert len(nodes.numbers) <= NODES_MOST
    assert all(type(number) is int for number in nodes.numbers)
    nodes.read()
    assert nodes.total_bytes == nodes.free_bytes == nodes.uncounted_bytes == 0
    nodes.close()
