"""`make last-gasp`: how often the agent's message gets out of a node that dies of its memory.

``python -m tests.kernels.last_gasp --runs 42 --journal FILE``: dying nodes in QEMU against a real
API server (`dying_nodes`), the kinds in turn; a row of the journal is one death, and what stands in
it is not run again.  Ends with 1 where fewer than 95 % of the deaths were told before they came.
"""

import argparse
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import Any

from tests.cluster.audit_log import Request
from tests.cluster.control_plane import ControlPlane
from tests.cluster.plane_build import PlaneProblem, programs, version_wanted
from tests.kernels import built_modules, vm
from tests.kernels.dying_nodes import (
    ENDS,
    KINDS,
    TIMES,
    Death,
    DyingNodes,
    Seen,
    add_to_image,
    wanted,
)
from tests.kernels.guard_boots import say
from tests.kernels.guard_campaign import CONFIDENCE, bound, commit, read_journal

from seawall.formats.iso_time import iso_datetime

AIM = 0.95
DELIVERED = range(200, 300)
_HOG = re.compile(r"hog ([0-9a-f-]{36})")
_CLOCK = re.compile(r"clock (\d+\.\d{3}) available \d+")
_RUNS_OUT = re.compile(r"page (\d+\.\d{3}) \w+ running-out \d+")
_SHORT = re.compile("short")
_OOM_BY = re.compile(r"panic_on_oom is enabled\n.* Comm: (\S+) ")
_VERDICT = re.compile(r"verdict (\d+\.\d{3}) ([0-9a-f -]*)")

# --- judging ---------------------------------------------------------------------------


def row_of(seen: Seen) -> dict[str, Any]:
    """Seconds count from the hog's start; delivered: a report of distress was with the API server
    before the node ended, or was NotReady.
    """
    death = seen.death
    row: dict[str, Any] = {
        "id": death.id, "kind": death.kind, "seed": death.seed, "ended": seen.ended,
        "mix": death.mix, "rate_mib": death.rate_mib, "room_mib": death.room_mib,
        "disk_iops": death.disk_iops, "after_seconds": death.after_seconds,
        "version": commit(), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    if seen.ended not in ENDS:
        return {**row, "console": tail(seen)}
    row |= times_of(seen)
    if not row["is_delivered"]:
        row["console"] = tail(seen)
    if seen.post_mortem is not None:
        record = seen.post_mortem["record"]
        row["post_mortem"] = {
            "ended": seen.post_mortem["ended"],
            "names_hog": sorted({one["kind"] for one in record if hog_of(seen) in one["pods"]}),
            "names_others": sorted({uid for one in record for uid in one["pods"]} - {hog_of(seen)}),
        }  # fmt: skip
    return row


def times_of(seen: Seen) -> dict[str, Any]:
    go = at_of(seen, "=== go")[0]
    hog, offset = hog_of(seen), clock_offset(seen)
    evidence = [float(page[1]) + offset for at, page in matches(seen, _RUNS_OUT) if at >= go]
    verdicts = [float(one[1]) + offset for _, one in matches(seen, _VERDICT) if hog in one[2]]
    good = [
        (at, one) for one in seen.requests
        if one.status in DELIVERED and (at := unix(one.time)) >= go
    ]  # fmt: skip
    distress = [(at, one) for at, one in good if is_distress(one)]
    before = [(at, one) for at, one in distress if at < seen.died_at]
    named = [(at, one) for at, one in before if culprit_words(one, hog)]
    short = [at for at, _ in matches(seen, _SHORT)]
    leases = at_of(seen, "kubelet: lease renewed: 200")

    def since(times: Sequence[float]) -> float | None:
        return round(min(times) - go, 2) if times else None

    first = min((at for at, _ in before), default=None)
    return {
        "died_after": round(seen.died_at - go, 2), "short_at": since(short),
        "evidence_at": since(evidence), "verdict_at": since(verdicts),
        "is_delivered": bool(before), "delivered_at": since([at for at, _ in before]),
        "took": round(first - min(evidence), 2) if first and evidence else None,
        "culprit": max((culprit_words(one, hog) for _, one in named), default=""),
        "named_at": since([at for at, _ in named]),
        "others": {
            one["podUID"]: culprit_words(request, one["podUID"])
            for _, request in distress for one in culprits(request) if one["podUID"] != hog
        },
        "reports": len(distress), "requests": len(good),
        "refused": sum(one.status not in DELIVERED for one in seen.requests),
        "last_word": round(seen.died_at - max(at for at, _ in good), 2) if good else None,
        "last_lease": round(max(leases) - go, 2) if leases else None,
        "after_not_ready": None if seen.not_ready_at is None
        else sum(at > seen.not_ready_at for at, _ in good),
        "oom_by": oom_by(seen), "kernel_kills": len(at_of(seen, "Killed process")),
    }  # fmt: skip


def matches(seen: Seen, pattern: re.Pattern[str]) -> list[tuple[float, re.Match[str]]]:
    """Whole lines; where the kernel has written into one it is lost."""
    return [(at, found) for at, line in seen.lines if (found := pattern.fullmatch(line))]


def at_of(seen: Seen, text: str) -> list[float]:
    return [at for at, line in seen.lines if text in line]


def hog_of(seen: Seen) -> str:
    """Uid of its pod."""
    return matches(seen, _HOG)[0][1][1]


def oom_by(seen: Seen) -> str:
    """Whose request for memory was the kernel's last; empty: it did not panic for that."""
    found = _OOM_BY.search("\n".join(line for _, line in seen.lines))
    return found[1] if found else ""


def clock_offset(seen: Seen) -> float:
    """This host's time less the node's, by the line that came fastest."""
    return min(at - float(clock[1]) for at, clock in matches(seen, _CLOCK))


def unix(stamp: str) -> float:
    """Of the audit log's time."""
    return iso_datetime(stamp).timestamp()


def is_distress(request: Request) -> bool:
    return request.resource.startswith("nodereports") and "distress" in request.body["report"]


def culprits(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = request.body["report"]["distress"]["culprits"]
    return found


def culprit_words(request: Request, hog: str) -> str:
    """``proved``, ``possible``; empty: the hog is not named."""
    its = [one["isProved"] for one in culprits(request) if one["podUID"] == hog]
    return ("proved" if any(its) else "possible") if its else ""


def tail(seen: Seen) -> str:
    return "\n".join(line for _, line in seen.lines)[-3000:]


# --- the campaign ----------------------------------------------------------------------


def conclude(rows: Sequence[dict[str, Any]]) -> int:
    """A line for each kind and one for all; 1 where the aim was missed."""
    deaths = [row for row in rows if row["ended"] in ENDS]
    for kind in KINDS:
        if its := [row for row in deaths if row["kind"] == kind]:
            say(line(kind, its))
    if not deaths:
        say(f"no death in {len(rows)} runs")
        return 1
    say(line("all", deaths))
    other = [f"{row['id']} ({row['ended']})" for row in rows if row["ended"] not in ENDS]
    if other:
        say(f"no deaths: {', '.join(other)}")
    accused = [row["id"] for row in deaths if "proved" in row["others"].values()]
    if accused:
        say(f"others than the hog were said to be proved: {', '.join(accused)}")
    by = Counter(row["oom_by"] for row in deaths if row["oom_by"])
    if by:
        say(f"the kernel panicked for want of memory at a request of: {dict(by)}")
    told = sum(row["is_delivered"] for row in deaths)
    return int(told < AIM * len(deaths) or bool(accused))


def line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Of one kind: told, the hog named, how fast, and whether a silent node went on."""
    told = [row for row in rows if row["is_delivered"]]
    took = [row["took"] for row in told if row["took"] is not None]
    named = [row["culprit"] for row in rows]
    others = sum(bool(row["others"]) for row in rows)
    silent = [row for row in rows if row["after_not_ready"] is not None]
    on = [row for row in silent if row["after_not_ready"]]
    fast = f"{median(took):.2f} s (at most {max(took):.2f})" if took else "-"
    dead = [row["post_mortem"] for row in rows if row.get("post_mortem")]
    untold = bound(len(rows) - len(told), len(rows))
    return (
        f"{name:10} {len(rows):3} deaths, {len(told):3} told before ({len(told) / len(rows):.0%}; "
        f"untold at most {untold:.0%} with {CONFIDENCE:.0%}), hog named in "
        f"{sum(map(bool, named))}, proved in {named.count('proved')}, others too in {others}; "
        f"{fast} from the first evidence; NotReady and still telling {len(on)} of {len(silent)}; "
        f"after the boot {sum(bool(one['names_hog']) for one in dead)} of {len(dead)} name it"
    )


def keep(seen: Seen, folder: Path) -> None:
    """The whole console, by Unix seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{at:.2f} {line}\n" for at, line in seen.lines)
    (folder / f"{seen.death.node}.console").write_text(lines)


def run_all(
    nodes: DyingNodes, deaths: Sequence[Death], given: argparse.Namespace, until: float
) -> Iterator[dict[str, Any]]:
    """As they come; ``until``: monotonic time after which no boot begins."""

    def run(death: Death) -> dict[str, Any] | None:
        if time.monotonic() > until:
            return None
        seen = nodes.run(death, is_reborn=death.seed <= given.post_mortems)
        if given.keep:
            keep(seen, given.keep)
        return row_of(seen)

    with ThreadPoolExecutor(given.vms) as pool:
        for done in as_completed([pool.submit(run, death) for death in deaths]):
            if row := done.result():
                yield row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=42)
    parser.add_argument("--journal", type=Path, help="a line of JSON for each; is gone on with")
    parser.add_argument("--keep", type=Path, help="a folder for consoles")
    parser.add_argument("--kind", choices=KINDS, help="this one alone")
    parser.add_argument("--vms", type=int, default=2, help="at a time; one has two CPUs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no boot after that")
    parser.add_argument("--post-mortems", type=int, default=2, help="of each kind, after a boot")
    given = parser.parse_args()
    if why := vm.missing() or built_modules.missing():
        say(why)
        return 2
    try:
        program, kwok = programs(version_wanted())
    except PlaneProblem as problem:
        say(str(problem))
        return 2
    until = time.monotonic() + given.seconds
    rows = read_journal(given.journal)
    done = {row["id"] for row in rows if row["ended"] != "not begun"}
    left = [one for one in wanted(given.runs)
            if one.id not in done and given.kind in {None, one.kind}]  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="seawall-gasp-") as folder,
        ControlPlane(program, TIMES, kwok=kwok) as plane,
    ):
        nodes = DyingNodes(plane, vm.build_image(Path(folder) / "image", add_to_image))
        for row in run_all(nodes, left, given, until):
            rows.append(row)
            say(f"{len(rows):3} {json.dumps({k: v for k, v in row.items() if k != 'console'})}")
            if given.journal:
                with given.journal.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    return conclude(rows)


if __name__ == "__main__":
    sys.exit(main())
