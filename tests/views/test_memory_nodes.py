# SPDX-License-Identifier: Apache-2.0
"""``seawall memory`` on machines of several NUMA nodes, some of which are a GPU's memory."""

import pytest
from tests.accounts.numactl_machines import CXL, GB200, GH200, case, machine
from tests.case_host import parse_case

from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.headroom import Headroom
from seawall.host.host import Unread
from seawall.readings.snapshot import Snapshot
from seawall.views.documents.memory_document import MEMORY
from seawall.views.memory_page import MemoryPage
from seawall.views.memory_text import lines
from seawall.views.terminal import Console

NOTHING = Unread("claims", "not_captured")


def page_of(files: list[tuple[str, bytes]]) -> MemoryPage:
    snapshot = Snapshot(parse_case(case(*files)).rounds[0])
    full = snapshot.get(FullLedger)
    assert isinstance(full, FullLedger)
    return MemoryPage(
        ledger=full.ledger, headroom=snapshot.get(Headroom), base=Unread("base", "absent"),
        base_is_new=False, claimed=NOTHING, shadow=NOTHING, unseen=(), bundle_notes=(),
    )  # fmt: skip


def text_of(files: list[tuple[str, bytes]]) -> str:
    told = list(lines(page_of(files), Console(width=80, colour=False)))
    assert all(len(line) <= 80 for line in told if "/sys/" not in line)  # paths stay whole
    return " ".join(" ".join(told).split())


@pytest.mark.parametrize(
    ("numactl", "gpus", "words"),
    [
        (GH200, (1,), "95.0 GiB of the 574 GiB is the memory of GPUs (NUMA node 1): neither free"),
        (GB200, (2, 10, 18, 26), "is the memory of GPUs (NUMA nodes 2, 10, 18, 26): neither free"),
    ],
)
def test_gpu_memory_is_told_as_that(numactl: str, gpus: tuple[int, ...], words: str) -> None:
    text = text_of(machine(numactl, gpus, used_mib=80_000))
    assert words in text
    assert "node 3" not in text  # one of those without memory, for MIG
    assert "78.1 GiB its driver's" in text
    assert "78.1 GiB uncounted" not in text
    assert "gpu memory" in text


def test_an_expander_is_not() -> None:
    text = text_of(machine(CXL))
    assert "GPUs" not in text
    assert "node 1, without CPUs: 15.7 GiB" in text
    assert "counted as ordinary memory" in text


def test_json_says_which_nodes() -> None:
    head = {"unread": []}
    values = MEMORY.of(head, page_of(machine(GH200, (1,))))
    assert values["gpu_bytes"] == 97_280 << 20
    assert [node["is_gpu_memory"] for node in values["nodes"]][:3] == [False, True, False]
    unseen = MEMORY.of(head, page_of([f for f in machine(GH200) if "/sys/" not in f[0]]))
    assert unseen["gpu_bytes"] == 0  # a kernel without NUMA nodes


def two_nodes(first_free_mib: int, first_cache_mib: int, second_free_mib: int) -> str:
    """A machine of two nodes of 64 GiB, written down by hand."""
    files = machine(
        f"node 0 cpus: 0 1\nnode 0 size: 65536 MB\nnode 0 free: {first_free_mib} MB\n"
        f"node 1 cpus: 2 3\nnode 1 size: 65536 MB\nnode 1 free: {second_free_mib} MB\n"
    )
    cache = b"Inactive(file): %d kB" % (first_cache_mib << 10)
    return text_of(
        [(path, data.replace(b"Inactive(file): 0 kB", cache) if "node0/" in path else data)
         for path, data in files]
    )  # fmt: skip


def test_one_node_of_two_without_memory_is_said() -> None:
    text = two_nodes(321, 0, 40_000)
    assert "node 0 has 321 MiB left while node 1 has 39.1 GiB: what is bound to it" in text
    assert "meets reclaim and OOM kills though the machine has memory" in text


@pytest.mark.parametrize(
    ("first", "cache", "second"),
    [
        (321, 30_000, 40_000),  # full of page cache, which can be dropped
        (321, 0, 700),  # both are short: SW110's matter
        (9_000, 0, 40_000),
    ],
)
def test_what_is_no_imbalance(first: int, cache: int, second: int) -> None:
    assert "while node" not in two_nodes(first, cache, second)


def test_a_full_gpu_is_no_short_node() -> None:
    assert "while node" not in text_of(machine(GH200, (1,), used_mib=97_000))


def test_a_host_without_memory_is_not_told_to_use_the_gpu() -> None:
    short = GH200.replace("node 0 free: 484432", "node 0 free: 400")
    assert "while node" not in text_of(machine(short, (1,)))
