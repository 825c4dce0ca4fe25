"""The tables of docs/benchmarks.md whose data lie in ``bench/journals``.

``<!-- figures: NAME -->`` begins one there and ``<!-- end -->`` ends it.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

JOURNALS = Path(__file__).parents[1] / "bench/journals"
BESIDE_OTHERS = JOURNALS / "guards-2026-11-26.md"
SCENARIOS = ("rings fast", "rings slow", "anonymous bomb", "tmpfs bomb")
GUARDS = {
    "nobody": "none", "earlyoom": "earlyoom 1.7", "earlyoom tuned": "earlyoom, tuned",
    "nohang": "nohang 0.2", "nohang tuned": "nohang, tuned", "oomd": "oomd 0.5",
    "oomd tuned": "oomd, tuned", "systemd-oomd": "systemd-oomd 252",
    "systemd-oomd tuned": "systemd-oomd, tuned", "guard": "**Seawall**",
}  # fmt: skip
"""As ``bench.guards`` calls them, and as the page does."""
KINDS_JOURNAL = "171"
SERVED_MARK = 0.99
_HOG_ENDED = re.compile(r"\bhog[\w-]* ([\d.]+) s \((\w+)")


def with_figures(page: str) -> str:
    """``page`` with each table made anew."""
    return re.sub(
        r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->\n)",
        lambda match: f"{match[1]}" + "".join(f"{row}\n" for row in TABLES[match[2]]()) + match[3],
        page,
        flags=re.DOTALL,
    )


def beside_others() -> Iterator[str]:
    """Each guard in four of the scenarios, from the rows of ``make bench-guards``."""
    rows: dict[str, dict[str, list[str]]] = {}
    for line in BESIDE_OTHERS.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 6 and cells[0] in SCENARIOS:
            rows.setdefault(cells[1], {})[cells[0]] = cells
    yield "| guard | " + " | ".join(SCENARIOS) + " | canary served, least |"
    yield "| --- |" + " --- |" * (len(SCENARIOS) + 1)
    for key, name in GUARDS.items():
        runs = [rows[key][scenario] for scenario in SCENARIOS]
        least = min((run[5] for run in runs), key=lambda served: float(served.partition("%")[0]))
        yield f"| {name} | {' | '.join(map(_outcome, runs))} | {least.replace('%', ' %')} |"


def _outcome(cells: list[str]) -> str:
    """``6 by kernel; earlyoom``: innocents that were killed, then who ended the culprit."""
    killed = re.search(r"\((.*)\)", cells[3])
    words = killed[1] if killed else "0"
    ended = re.sub(r"^\d+ by ", "", cells[4]) or "nobody"
    return f"{words}; {ended}".replace("by guard", "by Seawall").replace("; guard", "; Seawall")


def campaigns() -> Iterator[str]:
    """A row for each journal of randomised nodes."""
    yield (
        "| `--seed` | sources | nodes | innocents killed by the guard; by the kernel "
        "| culprits ended by the guard; by the kernel "
        "| canary served: all; worst node; nodes under 99 % |"
    )
    yield "| --- |" + " --- |" * 5
    for path in sorted(JOURNALS.glob("guard-campaign-*.jsonl"), reverse=True):
        rows = _runs(path)
        dead = [who for row in rows for who in row["innocents"].values()]
        ended = [who for row in rows for _, who in _HOG_ENDED.findall(row["line"])]
        served = [row["served"] / row["slots"] for row in rows]
        whole = sum(row["served"] for row in rows) / sum(row["slots"] for row in rows)
        seed, versions = path.stem.rpartition("-")[2], {row["version"] for row in rows}
        yield (
            f"| {seed} | {', '.join(sorted(versions))} | {len(rows)} "
            f"| {dead.count('guard')}; {dead.count('kernel')} "
            f"| {ended.count('guard')}; {ended.count('kernel')} "
            f"| {whole:.1%}; {min(served):.1%}; {sum(one < SERVED_MARK for one in served)} |"
        ).replace("%", " %")


def kinds() -> Iterator[str]:
    """What the nodes of one campaign were, and how long each culprit lived."""
    rows = _runs(JOURNALS / f"guard-campaign-{KINDS_JOURNAL}.jsonl")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row["id"].partition(" [")[0], []).append(row)
    yield "| kind | nodes | last culprit ended after, seconds | canary served |"
    yield "| --- | --- | --- | --- |"
    for kind, some in sorted(by_kind.items()):
        last = [max(float(at) for at, _ in _HOG_ENDED.findall(row["line"])) for row in some]
        whole = sum(row["served"] for row in some) / sum(row["slots"] for row in some)
        yield (
            f"| {kind} | {len(some)} | {min(last):.1f} to {max(last):.1f} | {whole * 100:.1f} % |"
        )


def _runs(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "guards": beside_others, "campaigns": campaigns, "kinds": kinds,
}  # fmt: skip
