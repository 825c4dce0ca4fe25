"""Read a journal of 200 MB with 1,000 OOM reports; and one report beside OOMAnalyser.

The journal is made of the published logs of the tests in journald's short form, with lines of
other programs between them, the same on every run.  It is read in one pass by a process of its
own, whose CPU time and largest memory are measured.

The peer reads one report at a time, in a web page.  Its own source runs in CPython as well: it
brings stand-ins for the page.  Name its OOMAnalyser.py in the variable OOMANALYSER, else it is
left out.  Both get the same logs, each of one report; the best of ROUNDS, CPU time of a process
that has imported what it needs; both end with every value of the report at hand.
"""

import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[1]
LOGS = REPOSITORY / "tests/readings/files/oom-logs"
JOURNAL_BYTES = 200_000_000
REPORTS = 1_000
ROUNDS = 5
TIMES = 50
# Whole reports that the peer takes too; it ends with a KeyError at the last one of IN_JOURNAL.
WHOLE = (
    "global-6.1.1-arch1-1-doxygen",
    "global-6.10.0-rc1-alloc-profiling",
    "memcg-v2-5.15.158-2-pve-php-fpm",
    "sysrq-5.13.0-19-ubuntu2110",
)
IN_JOURNAL = (*WHOLE, "mempolicy-4.18.0-477-el8-rocky")
PREFIX = b"May 30 14:08:25 node-17 "
WORDS = (
    b"pod container started stopped probe succeeded failed liveness readiness volume mount "
    b"memory cpu limit request sandbox image pulled node status patched event 200 10.0.0.7"
).split()

_READ = """
import sys, time
from seawall.readings.oom_log.parser import read_reports_in
began = time.process_time()
with open(sys.argv[1], "rb", buffering=0) as log:
    reports = tasks = 0
    for report in read_reports_in(iter(lambda: log.read(1 << 20), b"")):
        reports += 1
        tasks += len(report.tasks)
seconds = time.process_time() - began
with open("/proc/self/status", "rb") as own:
    peak = next(int(line.split()[1]) for line in own if line.startswith(b"VmHWM"))
print(seconds, peak, reports, tasks)
"""


def measure(journal_bytes: int = JOURNAL_BYTES, reports: int = REPORTS) -> dict[str, float]:
    """Seconds and bytes for the journal; seconds per megabyte of ours and of the peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.log"
        write_journal(path, journal_bytes, reports)
        size = path.stat().st_size
        done = subprocess.run(
            [sys.executable, "-c", _READ, str(path)],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    seconds, peak_kib, found, tasks = map(float, done.stdout.split())
    if found != reports:
        raise RuntimeError(f"{found:.0f} reports found of {reports}")
    return {
        "journal_bytes": size,
        "reports": found,
        "tasks": tasks,
        "seconds": seconds,
        "rss_bytes": peak_kib * 1024,
        **measure_single(),
    }


def write_journal(path: Path, size: int, reports: int) -> None:
    """The same bytes for the same arguments."""
    chance = random.Random(1)
    samples = [journal_lines(name) for name in IN_JOURNAL]
    lines = [other_line(chance) for _ in range(20_000)]
    between = (size - sum(len(samples[n % len(samples)]) for n in range(reports))) // reports
    with open(path, "wb") as file:
        for number in range(reports):
            written = 0
            while written < between:
                block = b"".join(chance.choices(lines, k=256))
                written += file.write(block)
            file.write(samples[number % len(samples)])


def journal_lines(name: str) -> bytes:
    """A published log as journald's short form would show it."""
    from seawall.readings.oom_log.lines import LineReader

    reader = LineReader()
    raw = (LOGS / f"{name}.txt").read_bytes().split(b"\n")[1:-1]
    lines = [line for number, text in enumerate(raw) for line in reader.read(text, number)]
    return b"".join(PREFIX + b"kernel: " + line.text.encode().lstrip() + b"\n" for line in lines)


def other_line(chance: random.Random) -> bytes:
    who = chance.choice([b"kubelet[814]", b"containerd[702]", b"systemd[1]", b"kernel"])
    words = b" ".join(chance.choices(WORDS, k=chance.randint(4, 16)))
    return PREFIX + who + b": " + words + b"\n"


def measure_single() -> dict[str, float]:
    """Seconds per megabyte of logs of one report each, over all of WHOLE, and for each."""
    from seawall.readings.oom_log.parser import read_reports_in

    raw = {name: (LOGS / f"{name}.txt").read_bytes() for name in WHOLE}
    peer = load_peer()
    result: dict[str, float] = {}
    total = {"seawall": 0.0, "peer": 0.0}
    for name, data in raw.items():
        readers: dict[str, Callable[[], object]] = {
            "seawall": partial(lambda data: list(read_reports_in([data])), data)
        }
        if peer:
            readers["peer"] = partial(analyse, peer, data.decode())
        best = best_of(readers)
        for who, seconds in best.items():
            total[who] += seconds
            result[f"{who}_seconds_{name}"] = seconds
        if peer:
            result[f"times_faster_{name}"] = best["peer"] / best["seawall"]
    megabytes = sum(map(len, raw.values())) / 1e6
    result["seawall_seconds_per_mb"] = total["seawall"] / megabytes
    if peer:
        result["peer_seconds_per_mb"] = total["peer"] / megabytes
        result["times_faster"] = total["peer"] / total["seawall"]
    return result


def best_of(readers: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of one reading, the best of ROUNDS of TIMES each, in turns."""
    best = dict.fromkeys(readers, float("inf"))
    for _ in range(ROUNDS):
        for who, read in readers.items():
            began = time.process_time()
            for _ in range(TIMES):
                read()
            best[who] = min(best[who], (time.process_time() - began) / TIMES)
    return best


def load_peer() -> ModuleType | None:
    """OOMAnalyser's own source, silenced; None without the variable OOMANALYSER."""
    path = os.environ.get("OOMANALYSER")
    spec = importlib.util.spec_from_file_location("oomanalyser", path) if path else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for say in ("debug", "warning", "error", "internal_error"):
        setattr(module, say, lambda _: None)
    return module


def analyse(peer: ModuleType, text: str) -> object:
    analyser = peer.OOMAnalyser(peer.OOMEntity(text))
    if not analyser.analyse():
        raise RuntimeError(f"the peer gave up: {analyser.oom_result.error_msg}")
    return analyser.oom_result


def rows(result: dict[str, float]) -> Iterator[str]:
    megabytes = result["journal_bytes"] / 1e6
    yield (
        f"{megabytes:.0f} MB of journal, {result['reports']:.0f} reports, "
        f"{result['tasks']:.0f} tasks: {result['seconds']:.2f} s of CPU, "
        f"{megabytes / result['seconds']:.0f} MB/s, at most {result['rss_bytes'] / 1e6:.0f} MB"
    )
    yield f"logs of one report: {result['seawall_seconds_per_mb']:.4f} s per MB"
    if "peer_seconds_per_mb" not in result:
        yield "OOMAnalyser: left out; name its OOMAnalyser.py in the variable OOMANALYSER"
        return
    yield (
        f"OOMAnalyser:        {result['peer_seconds_per_mb']:.4f} s per MB, "
        f"{result['times_faster']:.2f} times as long"
    )
    for name in WHOLE:
        yield f"  {name:40} {result['times_faster_' + name]:.2f} times as long"


def main() -> None:
    """Print what was measured."""
    for row in rows(measure()):
        print(row)


if __name__ == "__main__":
    main()
