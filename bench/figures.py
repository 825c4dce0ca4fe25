"""What every figure of the table is, and how it is measured: one function each.

Times are those of whole processes, interpreter included, the best of ROUNDS: the machines
are shared, and what others do there is no property of ours.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import (
    cache,
    gpu,
    guard_ranking,
    guard_reaction,
    guard_tick,
    oom_log,
    page_trace,
    scan_processes,
)

SOURCES = Path(__file__).resolve().parents[1] / "src"
ORDINARY_PROCESSES = 500
EXTRA_PROCESSES = 5_000
EXTRA_CGROUPS = 250
ROUNDS = 3

# `why` as it is, with the moments written down at which its phases end.
_WATCHED = """
import os, sys, time
from seawall.findings import rule_schedule
from seawall.sources import source
def note(word):
    os.write({fd}, b"%s %.6f\\n" % (word, time.monotonic()))
judge, later = rule_schedule.judge, source.Source.later_scene
def noted_judge(*arguments):
    for item in judge(*arguments):
        note(b"verdict")
        yield item
def noted_later(*arguments):
    note(b"waits")
    scene = later(*arguments)
    note(b"waited")
    return scene
# Not getrusage's maximum: that begins with what the process held that forked this one.
leave = os._exit
def noted_exit(status):
    with open("/proc/self/status", "rb") as own:
        peak = next(int(line.split()[1]) for line in own if line.startswith(b"VmHWM"))
    try:
        os.write({fd}, b"kib %d\\n" % peak)
    finally:
        leave(status)
rule_schedule.judge, source.Source.later_scene, os._exit = noted_judge, noted_later, noted_exit
from seawall.cli.main import console
sys.argv = ["seawall", "why", "--color=never"]
console()
"""


@dataclass(frozen=True)
class Figure:
    """One row of the table: ``value`` must not pass ``mark`` (or reach it, ``at_least``)."""

    name: str
    value: float
    unit: str
    mark: float
    peer: float | None = None
    at_least: bool = False
    peer_name: str = "psutil"

    @property
    def met(self) -> bool:
        return self.value >= self.mark if self.at_least else self.value <= self.mark


@dataclass(frozen=True)
class Run:
    """One `why`: seconds from its start, and the most memory that a process of it held."""

    first_line: float
    first_verdict: float
    before_rates: float
    whole: float
    rss_bytes: int


@contextmanager
def processes(count: int, cgroups: int = 0) -> Iterator[None]:
    """That many processes more, idle, spread over ``cgroups`` of our own."""
    with scan_processes.processes_in_cgroups(count, cgroups):
        yield


def run_why() -> Run:
    """One run, watched."""
    notes_out, notes_in = os.pipe()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", _WATCHED.format(fd=notes_in)],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCES)},
        pass_fds=(notes_in,),
    )  # fmt: skip
    os.close(notes_in)
    with process, open(notes_out, encoding="ascii") as notes:
        assert process.stdout
        process.stdout.readline()
        first_line = time.monotonic() - began
        process.stdout.read()
        process.wait()
        ended = time.monotonic()
        moments: dict[str, float] = {}
        peak_kib = 0
        for line in notes:
            word, number = line.split()
            if word == "kib":
                peak_kib = max(peak_kib, int(number))
            moments.setdefault(word, float(number))
    if process.returncode:
        raise RuntimeError(f"seawall why ended with {process.returncode}")
    return Run(
        first_line=first_line,
        first_verdict=moments["verdict"] - began,
        before_rates=moments["waits"] - began,
        whole=ended - began,
        rss_bytes=peak_kib << 10,
    )


def best_why() -> Run:
    """The best of ROUNDS, each number by itself; the largest memory."""
    runs = [run_why() for _ in range(ROUNDS)]
    return Run(
        first_line=min(run.first_line for run in runs),
        first_verdict=min(run.first_verdict for run in runs),
        before_rates=min(run.before_rates for run in runs),
        whole=min(run.whole for run in runs),
        rss_bytes=max(run.rss_bytes for run in runs),
    )


def why_figures() -> list[Figure]:
    """`seawall why` on a machine with 500 processes, and what 5,000 more cost."""
    with processes(ORDINARY_PROCESSES):
        few = best_why()
    with processes(ORDINARY_PROCESSES + EXTRA_PROCESSES, EXTRA_CGROUPS):
        many = best_why()
    rss = few.rss_bytes / 1e6
    return [
        Figure("why: first line", few.first_line, "s", 0.5),
        Figure("why: first finding", few.first_verdict, "s", 0.5),
        Figure("why: all but the rate rules", few.before_rates, "s", 1.0),
        Figure("why: most memory of a process", rss, "MB", 60),
        Figure("5,000 processes and 250 cgroups more: whole", many.whole - few.whole, "s", 1.0),
        Figure("the same: all but the rate rules", many.before_rates - few.before_rates, "s", 1.0),
    ]


def capture_figures() -> list[Figure]:
    """A bundle of a machine with 500 processes: its size and its time beyond the window."""
    window = 2.0
    with processes(ORDINARY_PROCESSES), tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "node.bundle"
        seconds = _timed(["capture", f"--for={window}", f"-o{bundle}"]) - window
        size = bundle.stat().st_size / 1e6
        explained = _timed(["why", f"--from={bundle}"])
    return [
        Figure("capture of 500 processes: bundle", size, "MB", 5),
        # No mark is given; three seconds is what a person waits without wondering.
        Figure("capture of 500 processes: beyond its window", seconds, "s", 3.0),
        Figure("why --from that bundle", explained, "s", 3.0),
    ]


def _timed(words: Sequence[str]) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "seawall", *words],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        check=True, capture_output=True,
    )  # fmt: skip
    return time.monotonic() - began


def scan_figures() -> list[Figure]:
    """State, memory and cgroup of 5,000 processes; psutil gives state and memory alone."""
    found = scan_processes.measure()
    return [
        Figure(
            "scan of 5,000 processes: times faster than psutil", found["times_faster"], "x",
            found["mark"], at_least=True, peer=1.0,
        ),
        Figure(
            "scan of 5,000 processes", found["seawall_seconds"], "s",
            found["psutil_seconds"] / found["mark"], peer=found["psutil_seconds"],
        ),
    ]  # fmt: skip


def log_figures() -> list[Figure]:
    """A journal of 200 MB with 1,000 OOM reports; the peer only where OOMANALYSER names it."""
    found = oom_log.measure()
    rows = [
        # No mark is given for either: linear time, bounded memory.
        Figure("oom explain: 200 MB of journal, CPU", found["seconds"], "s", 10.0),
        Figure("oom explain: most memory", found["rss_bytes"] / 1e6, "MB", 60),
    ]
    if "times_faster" in found:
        rows.append(
            Figure(
                "OOM report: times faster than OOMAnalyser", found["times_faster"], "x", 1.0,
                at_least=True, peer=1.0, peer_name="OOMAnalyser",
            )
        )  # fmt: skip
    return rows


def cache_figures() -> list[Figure]:
    """Residency of many small files and of one large one; nothing without vmtouch."""
    if cache.missing():
        return []
    small = cache.measure_small()
    large = cache.measure_large()
    return [
        Figure(
            "cache of 60,000 small files", small["seawall"], "s",
            small["vmtouch"] * small["mark"], peer=small["vmtouch"], peer_name="vmtouch",
        ),
        Figure(
            f"cache of one file of {cache.GIB} GiB: times faster scan", large["times_faster"], "x",
            large["mark"], at_least=True, peer=1.0, peer_name="vmtouch",
        ),
    ]  # fmt: skip


def trace_figures() -> list[Figure]:
    """What tracing costs loads that do nothing but take pages; nothing where none can trace."""
    if page_trace.missing():
        return []
    found = page_trace.measure()
    rows = []
    for load in page_trace.LOADS:
        by_hand = found[f"{load}_by_hand_percent"]
        for how, key, mark, peer in (
            ("tracer paused", "paused", page_trace.MARK_PAUSED, None),
            ("watching a leak", "spare", by_hand + page_trace.NOISE, by_hand),
            ("tracer armed", "armed", by_hand + page_trace.NOISE, by_hand),
        ):
            slower = found[f"{load}_{key}_percent"]
            name = f"memory --who: {load} slower, {how}"
            rows.append(Figure(name, slower, "%", mark, peer, peer_name="by hand"))
    return [
        *rows,
        Figure(
            "memory --watch: CPU while nothing grows", found["watcher_percent"], "%",
            page_trace.MARK_WATCHER,
        ),
        Figure(
            "memory --who: events followed each second", found["events_a_second"], "", 50_000,
            at_least=True,
        ),
    ]  # fmt: skip


def gpu_figures() -> list[Figure]:
    """All five layers of 800 devices of 100 containers; nothing where none can be made."""
    if gpu.missing():
        return []
    found = gpu.measure()
    name = f"gpu: {gpu.CONTAINERS} containers, {found['devices']:.0f} devices"
    return [Figure(name, found["seconds"], "s", found["mark"])]


def guard_figures() -> list[Figure]:
    """What stands between a look and the first action; none where no cgroups can be made."""
    tick, ranked, acted = (
        guard_tick.measure_tick(), guard_ranking.measure_real(), guard_reaction.measure(),
    )  # fmt: skip
    if ranked is None or acted is None:
        return []
    return [
        Figure("guard: one tick with 250 pods, p99", tick["hot"][1], "s", 0.005),
        Figure("guard: once a second, p99", tick["cold"][1], "s", 0.005),
        Figure("guard: look to verdict, 250 cgroups", ranked["median"], "s", 0.050),
        Figure("guard: decision to action", acted["decision_to_action_ms"] / 1000, "s", 0.020),
    ]


def all_figures() -> list[Figure]:
    return [
        *why_figures(),
        *capture_figures(),
        *scan_figures(),
        *log_figures(),
        *cache_figures(),
        *trace_figures(),
        *gpu_figures(),
        *guard_figures(),
    ]


def left_out() -> list[str]:
    """Peers that are not here, and what would provide them."""
    missing = [cache.missing(), page_trace.missing(), gpu.missing()]
    if not os.environ.get("OOMANALYSER"):
        missing.append("OOMAnalyser is not named: OOMANALYSER=/path/to/OOMAnalyser.py")
    return [why for why in missing if why]
