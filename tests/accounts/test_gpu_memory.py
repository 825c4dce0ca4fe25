# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs that are NUMA nodes is a line of its own; a CXL expander's is ordinary."""

import pytest
from tests.accounts.numactl_machines import CXL, GB200, GH200, case, machine
from tests.accounts.test_ledger import ledger_of, size_of
from tests.case_host import parse_case

from seawall.accounts.node_memory.gpu_memory import GpuMemory
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.readings.gpu_memory_nodes import FOLDER, GpuMemoryNodes
from seawall.readings.snapshot import Snapshot

MIB = 1 << 20
GPU_WORK_MIB = 80_000
"""What a model's weights take on one GPU, without any counter."""


def headroom_of(*sections: tuple[str, bytes]) -> Headroom:
    found = Snapshot(parse_case(case(*sections)).rounds[0]).get(Headroom)
    assert isinstance(found, Headroom), found
    return found


@pytest.mark.parametrize("used_mib", [0, GPU_WORK_MIB])
@pytest.mark.parametrize(
    ("numactl", "gpus", "gpu_mib", "host_mib", "free_mib"),
    [
        (GH200, (1,), 97_280, 490_037, 484_432),
        (GB200, (2, 10, 18, 26), 4 * 188_416, 489_935 + 489_795, 370_318 + 465_004),
    ],
)
def test_gpu_memory_is_neither_headroom_nor_uncounted(
    numactl: str, gpus: tuple[int, ...], gpu_mib: int, host_mib: int, free_mib: int, used_mib: int
) -> None:
    """Whether a model is in it or not."""
    files = machine(numactl, gpus, used_mib)
    ledger = ledger_of(*files)
    assert size_of(ledger, "gpu memory") == gpu_mib * MIB
    assert size_of(ledger, "free") == free_mib * MIB
    assert size_of(ledger, "anonymous") == (host_mib - free_mib) * MIB
    assert ledger.residual_bytes == 0
    assert [node.node for node in ledger.nodes if node.is_gpu] == list(gpus)
    assert not any("without CPUs" in note for note in ledger.notes)
    headroom = headroom_of(*files)
    assert headroom.total_bytes == host_mib * MIB
    assert headroom.available_bytes == headroom.free_bytes == free_mib * MIB
    assert headroom.gpu_bytes == gpu_mib * MIB


def test_what_the_hosts_own_drivers_take_stays_uncounted() -> None:
    """Also where GPU memory hides nothing of it."""
    files = machine(GH200, (1,), GPU_WORK_MIB, MemFree=484_432 + 97_279 - GPU_WORK_MIB - 9_000)
    assert ledger_of(*files).residual_bytes == 9_000 * MIB


@pytest.mark.parametrize("used_mib", [0, 9_000])
def test_an_expander_is_ordinary_memory(used_mib: int) -> None:
    """No driver of a GPU is there: what no counter shows on its node is uncounted."""
    files = [f for f in machine(CXL, (1,), used_mib) if "nvidia" not in f[0]]
    ledger = ledger_of(*files)
    assert size_of(ledger, "gpu memory") is None
    assert size_of(ledger, "free") == (59_542 + 15_627 - used_mib) * MIB
    assert ledger.residual_bytes == used_mib * MIB
    assert headroom_of(*files).total_bytes == (63_678 + 16_122) * MIB
    [note] = [note for note in ledger.notes if "without CPUs" in note]
    assert "NUMA nodes without CPUs: 1; no GPU's driver names them" in note


def test_an_expander_beside_a_gpu_of_its_own_memory() -> None:
    """An x86 node with an H100, whose driver has no such file."""
    other = (f"{FOLDER}/0000:41:00.0/information", b"Model: NVIDIA H100 80GB HBM3")
    ledger = ledger_of(*machine(CXL), other)
    assert size_of(ledger, "gpu memory") is None
    assert headroom_of(*machine(CXL), other).gpu_bytes == 0


def test_what_cannot_be_told_apart_is_not_subtracted() -> None:
    status = f"{FOLDER}/0000:01:00.0/numa_status"
    files = [f for f in machine(GH200, (1,)) if "nvidia" not in f[0]]
    for text in (b"=== %s !refused\n" % status.encode(), b"=== %s\nNode: x\n" % status.encode()):
        snapshot = Snapshot(parse_case(case(*files) + text).rounds[0])
        told, headroom = snapshot.get(GpuMemoryNodes), snapshot.get(Headroom)
        assert isinstance(told, GpuMemoryNodes)
        assert (told.numbers, told.others) == ((), (1,))
        assert [one.path for one in told.unread] == [status]
        assert isinstance(headroom, Headroom)
        assert headroom.total_bytes == (490_037 + 97_280) * MIB
        assert headroom.gpu_bytes is None
        gpu = snapshot.get(GpuMemory)
        assert isinstance(gpu, GpuMemory)
        assert not gpu.is_told


def test_what_cannot_be_told_apart_accuses_nobody() -> None:
    """What a model took on such a node may be a GPU's: the residual is that much less certain."""
    files = [f for f in machine(GH200, (1,), GPU_WORK_MIB) if "nvidia" not in f[0]]
    refused = b"=== %s/0000:01:00.0/numa_status !refused\n" % FOLDER.encode()
    ledger = Snapshot(parse_case(case(*files) + refused).rounds[0]).get(Ledger)
    assert isinstance(ledger, Ledger)
    assert ledger.residual_bytes == GPU_WORK_MIB * MIB
    assert ledger.residual_error_bytes >= ledger.residual_bytes
    [note] = [note for note in ledger.notes if "without CPUs" in note]
    assert "whether it is a GPU's was not told" in note
    assert "may be a GPU's" in note


@pytest.mark.parametrize("named", [b"1", b"8"])
@pytest.mark.parametrize("used_mib", [0, 20_000])
def test_parts_of_a_split_gpu_are_its_memory_though_no_file_names_them(
    named: bytes, used_mib: int
) -> None:
    """MIG: nodes 2 and 3 are parts, and the driver's file names the GPU's own node, or one that is
    empty.
    """
    split = GH200
    for part, mib in ((2, 24_000), (3, 48_000)):
        empty = f"node {part} size: 0 MB\nnode {part} free: 0 MB"
        assert empty in split
        split = split.replace(empty, f"node {part} size: {mib} MB\nnode {part} free: {mib} MB")
    files = [f for f in machine(split, (1, 2, 3), used_mib) if "nvidia" not in f[0]]
    status = (f"{FOLDER}/0009:01:00.0/numa_status", b"Node: %s\nStatus: online" % named)
    ledger, headroom = ledger_of(*files, status), headroom_of(*files, status)
    assert size_of(ledger, "gpu memory") == (97_280 + 24_000 + 48_000) * MIB
    assert ledger.residual_bytes == 0
    assert headroom.total_bytes == 490_037 * MIB
    assert headroom.available_bytes == 484_432 * MIB
    [note] = [note for note in ledger.notes if "without CPUs" in note]
    assert "taken for parts of these (MIG)" in note
    assert "ordinary" not in note


@pytest.mark.parametrize("node", [b"0", b"-1", b"99"])
def test_a_gpu_takes_no_node_with_cpus_nor_one_without_memory(node: bytes) -> None:
    files = [f for f in machine(GH200) if "nvidia" not in f[0]]
    status = (f"{FOLDER}/0000:01:00.0/numa_status", b"Node: %s\nStatus: offline" % node)
    assert size_of(ledger_of(*files, status), "gpu memory") is None


def test_no_driver_is_asked_where_every_node_has_cpus() -> None:
    files = [f for f in machine(CXL) if "node1" not in f[0]]
    refused = b"=== %s/0000:01:00.0/numa_status !refused\n" % FOLDER.encode()
    told = Snapshot(parse_case(case(*files) + refused).rounds[0]).get(GpuMemoryNodes)
    assert told == GpuMemoryNodes((), ())
