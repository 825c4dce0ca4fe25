"""Why no OOM kill comes: each reason alone, and none where there is none."""

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.kubelet_view import KubeletView
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.no_kill import reasons
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.vmstat import Vmstat

GIB = 1 << 30
MIB = 1 << 20
NONE = Unread("/proc/none", "absent")
PLAIN = Meminfo(mem_total=64 * GIB, mem_free=100 * MIB)


def headroom(
    free: int = 0, lowest: int | None = 90 * MIB, swap: int = 0, below_min: tuple[str, ...] = ()
) -> Headroom:
    return Headroom(
        total_bytes=64 * GIB, available_bytes=16 * MIB, available_source="/proc/meminfo",
        unwritten_bytes=0, free_bytes=free, swap_free_bytes=swap, watermark_min_bytes=lowest,
        watermark_low_bytes=lowest, zones_below_low=(), zones_below_min=below_min,
        zones_source="/proc/zoneinfo",
    )  # fmt: skip


def ledger(residual: int, error: int) -> Ledger:
    return Ledger(total_bytes=64 * GIB, lines=(), residual_bytes=residual,
                  residual_error_bytes=error, unknown=(), nodes=(), notes=())  # fmt: skip


def vmstat(**gains: int) -> TopicWindow[Vmstat]:
    return TopicWindow(
        Vmstat(dict.fromkeys(gains, 7)), Vmstat({k: 7 + v for k, v in gains.items()}), 2.0
    )


def shorts(*arguments: object) -> list[str]:
    return [reason.short for reason in reasons(*arguments)]  # type: ignore[arg-type]


def test_nothing_to_tell_is_no_reason() -> None:
    assert shorts(headroom(), PLAIN, NONE, NONE, NONE) == []


def test_memory_of_no_process_needs_to_exceed_its_error() -> None:
    assert (
        "30.0 GiB count for no process"
        in shorts(headroom(), PLAIN, ledger(30 * GIB, GIB), NONE, NONE)[0]
    )
    assert shorts(headroom(), PLAIN, ledger(30 * GIB, 29 * GIB), NONE, NONE) == []


def test_free_pages_above_the_min_watermark() -> None:
    (reason,) = reasons(headroom(free=400 * MIB), PLAIN, NONE, NONE, NONE)
    assert reason.short == "the min watermark is not reached"
    assert reason.value == 310 * MIB
    zones = ("node 0 Normal",)
    assert shorts(headroom(free=400 * MIB, below_min=zones), PLAIN, NONE, NONE, NONE) == []


def test_unknown_watermarks_make_it_a_maybe() -> None:
    assert shorts(headroom(free=400 * MIB, lowest=None), PLAIN, NONE, NONE, NONE) == [
        "its watermark may not be reached"
    ]


def test_code_pages_are_certain_with_a_window_and_a_maybe_without() -> None:
    assert shorts(headroom(), PLAIN, NONE, NONE, vmstat(pgmajfault=20)) == [
        "dropped code pages count as progress"
    ]
    assert shorts(headroom(), PLAIN, NONE, NONE, vmstat(pgmajfault=2)) == []
    few = Meminfo(
        mem_total=64 * GIB,
        mem_free=0,
        active_file=12 * MIB,
        inactive_file=9 * MIB,
        mapped=103 * MIB,
    )
    assert shorts(headroom(), few, NONE, NONE, NONE) == ["dropped code pages may count as progress"]


def test_free_swap_and_a_kubelet_that_does_not_see() -> None:
    view = KubeletView(
        available_bytes=34 * GIB, source="/proc/meminfo", formula="x", older_available_bytes=None
    )
    assert shorts(headroom(swap=GIB), PLAIN, NONE, view, NONE) == [
        "swap is still free", "the kubelet does not see it",
    ]  # fmt: skip
    sees = KubeletView(available_bytes=90 * MIB, source="", formula="", older_available_bytes=None)
    assert shorts(headroom(), PLAIN, NONE, sees, NONE) == []
