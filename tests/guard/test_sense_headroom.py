"""True headroom by hand; the quick residual against the ledger."""

import os
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.readings.kernel_files import KERNELS, content, this_machine, tree

from seawall.accounts.node_memory.full_ledger import FullLedger
from seawall.accounts.node_memory.ledger import Ledger
from seawall.guard.sense.files import KernelFile
from seawall.guard.sense.residual import TickResidual
from seawall.guard.sense.swap import Swap, gain_bytes
from seawall.guard.sense.tick_headroom import TickHeadroom
from seawall.guard.sense.tick_meminfo import TickMeminfo
from seawall.host.host import Host
from seawall.quick_residual import quick_residual
from seawall.readings import meminfo as meminfo_reading
from seawall.readings.snapshot import Snapshot

MIB = 1 << 20
KIB_LINES = {
    "MemTotal": 1000, "MemFree": 300, "Buffers": 10, "Cached": 400, "SwapCached": 0,
    "Active": 250, "Inactive": 200, "Active(file)": 150, "Inactive(file)": 160,
    "Unevictable": 0, "SwapTotal": 0, "SwapFree": 0, "Dirty": 10, "Writeback": 0,
    "AnonPages": 40, "Mapped": 60, "Shmem": 100, "KReclaimable": 80, "Slab": 100,
    "SReclaimable": 70, "KernelStack": 5, "PageTables": 6, "VmallocUsed": 8, "Percpu": 2,
    "Hugetlb": 50,
}  # fmt: skip


def proc(folder: Path, **changed: int) -> str:
    """A /proc whose meminfo is in MiB."""
    lines = KIB_LINES | {name.replace("_file", "(file)"): size for name, size in changed.items()}
    text = "".join(f"{name}: {size * 1024} kB\n" for name, size in lines.items())
    (folder / "meminfo").write_text(text)
    zone = (
        "Node 0, zone   Normal\n  pages free     76800\n        min      1280\n"
        "        low      2560\n"
        "        high     3840\n        spanned  256000\n        present  256000\n"
        "        managed  256000\n        protection: (0, 0)\n"
    )
    (folder / "zoneinfo").write_text(zone)
    return str(folder)


def looked(folder: Path, unswappable: int = 0, **changed: int) -> tuple[TickHeadroom, TickMeminfo]:
    root = proc(folder, **changed)
    memory, head = TickMeminfo(root), TickHeadroom(root, str(folder / "sys"), 4096)
    assert memory.read()
    head.read_rarely(memory, 0.0)
    head.look(memory, unswappable)
    return head, memory


def test_by_hand(tmp_path: Path) -> None:
    head, _ = looked(tmp_path)
    # 60 mapped are taken for shared memory's (100), so no cache is mapped: 310 - 10 dirty,
    # less the low watermark (10); half of 80 slab; nothing of the 100 shared.
    assert head.free_bytes == (300 - 10) * MIB
    assert head.cache_bytes == (310 - 10 - 10) * MIB
    assert head.slab_bytes == 40 * MIB
    assert head.bytes == (290 + 290 + 40) * MIB
    assert head.total_bytes == 950 * MIB


def test_mapped_files_are_not_headroom(tmp_path: Path) -> None:
    head, _ = looked(tmp_path, Shmem=0)
    assert head.cache_bytes == (310 - 60 - 10 - 10) * MIB


def test_shared_memory_that_is_not_mapped_does_not_hide_mapped_code(tmp_path: Path) -> None:
    head, memory = looked(tmp_path, Shmem=0)
    was = head.cache_bytes
    proc(tmp_path, Shmem=200, Cached=600, MemFree=100)  # a tmpfs fills; nothing was mapped
    assert memory.read()
    head.look(memory, 0)
    assert head.cache_bytes == was
    proc(tmp_path, Shmem=300, Cached=700, MemFree=0, Mapped=160)  # a database maps what it takes
    assert memory.read()
    head.look(memory, 0)
    assert head.cache_bytes == was


def test_a_tmpfs_takes_headroom_one_to_one(tmp_path: Path) -> None:
    before, _ = looked(tmp_path)
    after, _ = looked(tmp_path, Shmem=200, Cached=500, MemFree=200)
    assert before.bytes - after.bytes == 100 * MIB


def test_below_the_watermark_there_is_less_than_the_cache(tmp_path: Path) -> None:
    head, _ = looked(tmp_path, MemFree=4)
    assert head.free_bytes == -6 * MIB
    assert head.bytes == (290 + 40 - 6) * MIB


SWAPS = "Filename\tType\tSize\tUsed\tPriority\n"


def test_disk_swap_is_bounded_by_what_could_go(tmp_path: Path) -> None:
    (tmp_path / "swaps").write_text(f"{SWAPS}/dev/sda2 partition {2000 * 1024} 0 -2\n")
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=2000)
    assert head.swap_bytes == (40 + 100) * MIB
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=2000, unswappable=30 * MIB)
    assert head.swap_bytes == (140 - 30) * MIB
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=50)
    assert head.swap_bytes == 50 * MIB


def test_zram_costs_what_it_says(tmp_path: Path) -> None:
    used = 1000 * 1024
    (tmp_path / "swaps").write_text(f"{SWAPS}/dev/zram0 partition {2000 * 1024} {used} 100\n")
    block = tmp_path / "sys/block/zram0"
    block.mkdir(parents=True)
    # 1000 MiB stored take 400: a byte more gives back 0.6.
    (block / "mm_stat").write_text(f"{1000 * MIB} {380 * MIB} {400 * MIB} 0 {400 * MIB} 0 0 0\n")
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=1000)
    assert head.swap_bytes == int(140 * MIB * 0.6)
    # With a limit of 440 only 100 more go in.
    (block / "mm_stat").write_text(f"{1000 * MIB} 0 {400 * MIB} {440 * MIB} 0 0 0 0\n")
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=1000)
    assert head.swap_bytes == int(100 * MIB * 0.6)
    (block / "mm_stat").write_text("what\n")
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=1000)
    assert "mm_stat" in head.problem
    assert head.swap_bytes == 70 * MIB  # unknown: half


def test_zram_that_stores_nothing_well_gives_nothing(tmp_path: Path) -> None:
    swap = Swap(str(tmp_path), str(tmp_path))
    swap.zram_free, swap.zram_cost = 100 * MIB, 1.0
    _, memory = looked(tmp_path)
    assert gain_bytes(swap.rooms(50 * MIB), swap.gains(memory, is_zswap=False)) == 0


def test_a_new_price_is_told_apart_from_what_was_taken(tmp_path: Path) -> None:
    (tmp_path / "swaps").write_text(f"{SWAPS}/dev/zram0 partition {2000 * 1024} 0 100\n")
    block = tmp_path / "sys/block/zram0"
    block.mkdir(parents=True)
    (block / "mm_stat").write_text("0 0 0 0 0 0 0 0\n")
    head, memory = looked(tmp_path, SwapTotal=2000, SwapFree=2000)
    before, comparable = head.bytes, head.comparable_bytes
    assert head.swap_bytes == 70 * MIB
    (block / "mm_stat").write_text(f"{100 * MIB} 0 {90 * MIB} 0 0 0 0 0\n")
    head.read_rarely(memory, 1.0)
    head.look(memory, 0)
    assert head.swap_bytes == pytest.approx(14 * MIB, abs=1)
    assert head.bytes == pytest.approx(before - 56 * MIB, abs=1)
    assert head.comparable_bytes == comparable
    head.look(memory, 40 * MIB)  # room that is gone is no price
    assert head.comparable_bytes == pytest.approx(comparable - 4 * MIB, abs=1)


def test_pages_of_files_are_nothing_that_somebody_took(tmp_path: Path) -> None:
    head, _ = looked(tmp_path)
    before, comparable = head.bytes, head.comparable_bytes
    head, _ = looked(tmp_path, Mapped=200, Dirty=50)
    assert head.bytes < before - 50 * MIB
    assert head.comparable_bytes == comparable
    head, _ = looked(tmp_path, MemFree=400)
    was, _ = looked(tmp_path, MemFree=500)
    assert was.comparable_bytes - head.comparable_bytes == 100 * MIB


def test_zswap_keeps_what_it_compressed(tmp_path: Path) -> None:
    (tmp_path / "swaps").write_text(f"{SWAPS}/dev/sda2 partition {2000 * 1024} 0 -2\n")
    enabled = tmp_path / "sys/module/zswap/parameters"
    enabled.mkdir(parents=True)
    (enabled / "enabled").write_text("Y\n")
    head, _ = looked(tmp_path, SwapTotal=2000, SwapFree=2000, Zswap=10, Zswapped=40)
    assert head.swap_bytes == int(140 * MIB * 0.75)


ARCSTATS = "13 1 0x01 147 39984 1 2\nname type data\nc_min 4 {}\nc_max 4 9\nsize 4 {}\n"


def arc_of(head: TickHeadroom, memory: TickMeminfo, now: float) -> int:
    """MiB of it that count, in the sum too."""
    head.read_rarely(memory, now)
    head.look(memory, 0)
    beside = head.free_bytes + head.cache_bytes + head.slab_bytes + head.swap_bytes
    assert head.bytes - beside == head.arc_bytes
    return head.arc_bytes // MIB


def test_an_arc_that_comes_later_goes_and_comes_again_is_found(tmp_path: Path) -> None:
    """Gone as a module goes: the descriptor that was open answers EIO for good."""
    head, memory = looked(tmp_path)
    assert arc_of(head, memory, 30.0) == 0
    path = tmp_path / "spl/kstat/zfs/arcstats"
    path.parent.mkdir(parents=True)
    path.write_text(ARCSTATS.format(20 * MIB, 220 * MIB))
    assert arc_of(head, memory, 59.0) == 0, "once a minute is often enough"
    assert arc_of(head, memory, 60.0) == 100
    path.write_text(ARCSTATS.format(20 * MIB, 120 * MIB))
    assert arc_of(head, memory, 60.1) == 50, "once it is found it is read each time"
    path.unlink()
    break_off(head)
    assert arc_of(head, memory, 61.0) == 0
    assert head._arcstats.fd < 0
    path.write_text(ARCSTATS.format(20 * MIB, 60 * MIB))
    assert arc_of(head, memory, 121.0) == 20
    break_off(head)  # and is back before anybody looked
    assert arc_of(head, memory, 122.0) == 20
    head._arcstats.close()


def break_off(head: TickHeadroom) -> None:
    """Reading at 0 is EIO from now on, as with a file of /proc whose module has gone."""
    assert head._arcstats.fd >= 0
    nowhere = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nowhere, head._arcstats.fd, inheritable=False)
    os.close(nowhere)
    with pytest.raises(OSError, match="Input/output"):
        os.pread(head._arcstats.fd, 1, 0)


def test_an_arc_that_is_not_there_is_looked_for_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the slow files are read: near the end that is each tick."""
    head, memory = looked(tmp_path)
    tried: list[str] = []
    real = KernelFile.open

    def opened(file: KernelFile, *flags: int) -> bool:
        tried.append(file.path)
        return real(file, *flags)

    monkeypatch.setattr(KernelFile, "open", opened)
    for tick in range(1, 3001):
        head.read_rarely(memory, tick / 10)
    assert tried.count(head._arcstats.path) == 5


# --- the residual -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_lean_and_the_full_meminfo_give_the_same(tmp_path: Path, kernel: str) -> None:
    (tmp_path / "meminfo").write_bytes(content(kernel, "/proc/meminfo"))
    lean = TickMeminfo(str(tmp_path))
    assert lean.read()
    assert quick_residual(lean) == quick_residual(
        meminfo_reading.parse(content(kernel, "/proc/meminfo"))
    )


def ledger_of(host: Host) -> tuple[Ledger, meminfo_reading.Meminfo]:
    """Both of one moment."""
    snapshot = Snapshot(host)
    full, meminfo = snapshot.get(FullLedger), snapshot.get(meminfo_reading.Meminfo)
    assert isinstance(full, FullLedger)
    assert isinstance(meminfo, meminfo_reading.Meminfo)
    return full.ledger, meminfo


BEYOND_MEMINFO = {
    # What the ledger takes from other files; vmalloc too where meminfo prints it as 0.
    "per-cpu lists", "zspages", "memmap", "charged kernel pages", "zfs arc", "balloon", "pipes",
    "gpu memory", "zswap",
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_the_ledgers_but_for_lines_of_other_files(kernel: str) -> None:
    with tree(kernel) as host:
        ledger, meminfo = ledger_of(host)
    names = BEYOND_MEMINFO if meminfo.vmalloc_used else BEYOND_MEMINFO | {"vmalloc"}
    beyond = sum(line.bytes for line in ledger.lines if line.name in names)
    assert quick_residual(meminfo) == ledger.residual_bytes + beyond


def hand_ledger(seconds: float, **told: object) -> dict[str, object]:
    return {"t": "ledger", "seconds": seconds, "error": 0, "armed": True, "blind": [], **told}


def test_the_correction_comes_from_one_moment_and_lasts(tmp_path: Path) -> None:
    _, memory = looked(tmp_path)
    residual = TickResidual()
    residual.look(1.0, memory, 0, 0)
    quick = quick_residual(memory)
    # 1000 - 300 - (40 + 400 + 10) - 100 - (80 - 70) - 6 - 2 - 8 - 50
    assert quick == residual.bytes == 74 * MIB
    told = hand_ledger(1.0, residual=44 * MIB, quick=quick, grown=4 * MIB, unexplained=MIB)
    assert residual.hear(told, 1.1, 0)
    proc(tmp_path, MemFree=200)
    assert memory.read()
    residual.look(2.0, memory, 0, 0)
    assert residual.bytes == 144 * MIB
    assert residual.grown_bytes == 104 * MIB
    assert residual.unexplained_bytes == 101 * MIB
    # Certain claims that came since explain it.
    residual.look(3.0, memory, 0, 60 * MIB)
    assert residual.unexplained_bytes == 41 * MIB


def test_a_zram_that_fills_is_no_residual(tmp_path: Path) -> None:
    _, memory = looked(tmp_path)
    residual = TickResidual()
    residual.look(1.0, memory, 5 * MIB, 0)
    quick = quick_residual(memory)
    assert residual.bytes == quick - 5 * MIB
    residual.hear(hand_ledger(1.0, residual=quick - 5 * MIB, quick=quick), 1.0, 0)
    proc(tmp_path, MemFree=250)
    assert memory.read()
    residual.look(2.0, memory, 55 * MIB, 0)
    assert residual.bytes == quick - 5 * MIB
    assert residual.grown_bytes == 0
    # Between two whole ledgers the watcher tells its meminfo's part only: the same correction.
    between = hand_ledger(2.0, residual=quick + 45 * MIB, quick=quick + 50 * MIB, grown=50 * MIB)
    assert residual.hear(between, 2.0, 0)
    residual.look(3.0, memory, 55 * MIB, 0)
    assert residual.bytes == quick - 5 * MIB
    assert residual.grown_bytes == 0


def test_growth_over_its_own_base_without_a_watcher(tmp_path: Path) -> None:
    _, memory = looked(tmp_path)
    residual = TickResidual()
    for tick in range(10):
        residual.look(float(tick), memory, 0, 0)
    assert residual.grown_bytes == 0
    proc(tmp_path, MemFree=280)
    assert memory.read()
    for tick in range(10, 300):
        residual.look(float(tick), memory, 0, 0)
    # 20 MiB in 1000 are no noise, so the base does not follow them however long they last.
    assert residual.grown_bytes == residual.unexplained_bytes == 20 * MIB
    proc(tmp_path, MemFree=299)
    assert memory.read()
    residual.look(300.0, memory, 0, 0)
    assert residual.grown_bytes == MIB
    for tick in range(301, 400):
        residual.look(float(tick), memory, 0, 0)
    assert residual.grown_bytes == 0


def test_old_foreign_and_future_ledgers_are_not_believed(tmp_path: Path) -> None:
    _, memory = looked(tmp_path)
    residual = TickResidual()
    residual.look(100.0, memory, 0, 0)
    before = residual.bytes
    good = hand_ledger(100.0, residual=0, quick=0)
    for wrong in (
        {**good, "seconds": 200.0}, {**good, "seconds": "now"}, {**good, "residual": 1.5},
        {**good, "quick": None}, {**good, "seconds": float("nan")}, {"t": "ledger"},
        {**good, "residual": True},
    ):  # fmt: skip
        assert not residual.hear(wrong, 100.0, 0), wrong
    residual.look(100.0, memory, 0, 0)
    assert residual.bytes == before
    assert residual.hear(good, 100.0, 0)
    assert not residual.hear({**good, "seconds": 99.0}, 100.5, 0)


def test_on_this_machine_it_agrees_with_the_ledger() -> None:
    lean = TickMeminfo("/proc")
    residual = TickResidual()
    with this_machine() as host:
        ledger, meminfo = ledger_of(host)
        told = hand_ledger(1.0, residual=ledger.residual_bytes, quick=quick_residual(meminfo))
        residual.hear(told, 1.0, 0)
        assert lean.read()
        residual.look(2.0, lean, 0, 0)
        again, _ = ledger_of(host)
    assert residual.bytes == pytest.approx(
        again.residual_bytes, abs=again.residual_error_bytes + (64 << 20)
    )
