# SPDX-License-Identifier: Apache-2.0
"""The first line of ``why``: how much memory is left, and how that is known."""

from pathlib import Path

import pytest
from tests.accounts.numactl_machines import CXL, GH200, case, machine
from tests.case_host import parse_case
from tests.end_to_end.verbs import seawall
from tests.readings.kernel_files import DEBIAN_6_1, EL8, FILES, UBUNTU_3_2, VM_6_18, content, tree

from seawall.accounts.node_memory.gpu_memory import without_cpus
from seawall.accounts.node_memory.headroom import Headroom
from seawall.host import vitals
from seawall.readings.numa import NumaNodes
from seawall.readings.snapshot import Snapshot

KIB = 1 << 10


@pytest.mark.parametrize("kernel", [EL8, DEBIAN_6_1, VM_6_18])
def test_the_estimate_is_what_the_kernel_prints(kernel: str) -> None:
    fields = vitals._meminfo(content(kernel, "/proc/meminfo").decode())
    found = vitals._estimate(fields, content(kernel, "/proc/zoneinfo").decode())
    assert found == pytest.approx(fields["MemAvailable"], abs=0.001 * fields["MemTotal"])


def test_before_3_14_it_is_what_the_rules_judge_by() -> None:
    with tree(UBUNTU_3_2) as host:
        headroom = Snapshot(host).get(Headroom)
    assert isinstance(headroom, Headroom)
    assert headroom.is_estimate
    fields = vitals._meminfo(content(UBUNTU_3_2, "/proc/meminfo").decode())
    found = vitals._estimate(fields, content(UBUNTU_3_2, "/proc/zoneinfo").decode())
    assert found is not None
    assert found * KIB == headroom.available_bytes


def test_nothing_is_estimated_from_what_was_not_printed() -> None:
    assert vitals._estimate({"MemTotal": 9, "MemFree": 4, "SReclaimable": 1}, "") is None


@pytest.mark.parametrize(
    ("how", "words"),
    [("left", "2.0 GiB, 1.0 GiB left"), ("about", "2.0 GiB, about 1.0 GiB left"),
     ("free", "2.0 GiB, 1.0 GiB free")],
)  # fmt: skip
def test_words(how: str, words: str) -> None:
    line = vitals.line_of("n", "2.6.32-754.el6", "", 2 << 30, 1 << 30, {}, how)
    assert line == f"n  Linux 2.6.32  {words}"


@pytest.mark.parametrize(
    ("numactl", "apart_mib", "more_mib"), [(GH200, 97_280, 97_279), (CXL, 16_122, 15_627)]
)
def test_what_is_left_on_nodes_without_cpus_is_told_apart(
    tmp_path: Path, numactl: str, apart_mib: int, more_mib: int
) -> None:
    """Of the machine itself and of a record of it; nobody asks a driver for it."""
    files = machine(numactl)
    cpus = []
    for path, data in files:
        if path.startswith("/sys"):
            place = tmp_path / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data + b"\n")
            if place.name == "cpulist" and data:
                cpus.append(place.parent.name.removeprefix("node"))
    folder = tmp_path / "sys/devices/system/node"
    (folder / "has_cpu").write_text(f"{','.join(cpus)}\n")
    (folder / "has_memory").write_text("0-1\n")
    assert vitals._without_cpus(str(folder)) == (apart_mib << 10, more_mib << 10)
    numa = Snapshot(parse_case(case(*files)).rounds[0]).get(NumaNodes)
    assert isinstance(numa, NumaNodes)
    assert without_cpus(numa) == (apart_mib << 20, more_mib << 20)
    line = vitals.line_of("n", "6.8.0", "", 479 << 30, 473 << 30, {}, "left", more_mib << 20)
    assert line.endswith(f"479 GiB, 473 GiB left, +{more_mib / 1024:.1f} GiB on CPU-less nodes")


def test_a_record_of_a_gh200_has_the_hosts_own_memory_as_its_total(tmp_path: Path) -> None:
    """490,037 MiB are the host's, 97,280 the GPU's: also where a model fills it."""
    for used_mib in (0, 97_000):
        for path, data in machine(GH200, (1,), used_mib):
            place = tmp_path / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data + b"\n")
        first = seawall("why", "--root", str(tmp_path)).text.splitlines()[0]
        assert "479 GiB, 473 GiB left, +" in first
        assert first.endswith(" on CPU-less nodes")
        assert len(first) <= 80
        assert "574 GiB" not in first


@pytest.mark.parametrize("name", ["n", "gpu-17", "ip-10-0-12-34.eu-west-1.compute.internal"])
@pytest.mark.parametrize("release", ["6.8.0-1021-nvidia-64k", "5.14.0", ""])
@pytest.mark.parametrize("taken_at", ["", "2026-11-23T10:00:31Z"])
@pytest.mark.parametrize("beside", [0, 4 * 188_416 << 20])
def test_it_is_never_wider_than_a_terminal(
    name: str, release: str, taken_at: str, beside: int
) -> None:
    stalls = {"memory": 100.0, "io": 100.0}
    line = vitals.line_of(
        name, release, taken_at, 956 << 30, 815 << 30, stalls, "left", beside
    )  # fmt: skip
    assert len(line) <= vitals.WIDTH
    assert line.startswith(name[:10])
    assert "956 GiB, 815 GiB left" in line
    assert ("+736 GiB on CPU-less nodes" in line) == bool(beside)
    assert "memory stalls 100 %" in line or beside
    whole = vitals.line_of(
        name, release, taken_at, 956 << 30, 815 << 30, stalls, "left", beside, is_whole=True
    )  # fmt: skip
    assert whole.endswith(taken_at or "io stalls 100 %")
    assert release in whole


@pytest.mark.parametrize("text", ["", "0\n", "0-1,4\n", "x,1-y,2\n", "0-99999999999\n"])
def test_lists_of_nodes(text: str) -> None:
    assert len(vitals._numbers(text)) <= 1024


def test_a_report_of_an_old_kernel_begins_with_about() -> None:
    first = seawall("why", "--root", str(FILES / UBUNTU_3_2)).text.splitlines()[0]
    assert ", about " in first
    assert " left" in first
