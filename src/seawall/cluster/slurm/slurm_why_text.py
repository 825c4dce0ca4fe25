# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why --slurm`` as text: one screen of 24 lines, the cause first."""

from collections.abc import Iterator
from typing import Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.pages.cluster_words import ago, clock, label, labelled
from seawall.cluster.slurm.job_keys import LEVEL_NAME, LEVEL_SCRIPT, LEVEL_UNIT
from seawall.cluster.slurm.slurm_suspects_page import slurm_heading
from seawall.cluster.slurm.slurm_why_page import SlurmWhyPage, jobs_words
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted

_DEATHS: Final = 5
_OTHERS: Final = 2
_UNSEEN: Final = 2
_NODE: Final = 22
_LEVELS: Final = {"killer": "critical", "suspect": "warning", "deaths": "warning",
                  "held": "warning"}  # fmt: skip
_KEYS: Final = {LEVEL_UNIT: "its number", LEVEL_NAME: "its name", LEVEL_SCRIPT: "its script"}


def slurm_why_lines(page: SlurmWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: every death, suspect and thing unseen, however many lines that takes."""
    yield from slurm_heading(page.reading, paper)
    yield ""
    state = page.suspect.suspect.state.upper() if page.suspect and not page.subject else ""
    words = plain(page.headline)
    for line in paper.wrap(f"{state}: {words}" if state else words):
        yield paper.paint(line, _LEVELS.get(page.answer, "bold"))
    yield from _deaths(page, paper, whole=whole)
    yield from _judged(page, paper)
    if page.done:
        yield from labelled(paper, "done", [plain(page.done)])
    yield from labelled(paper, "next", map(plain, page.outlook))
    is_active = page.suspect is not None and page.suspect.suspect.state == "Active"
    for line in page.commands:
        yield label("take back" if is_active else "to hold") + plain(line)
    yield from _others(page, paper, whole=whole)
    shown = page.unseen if whole else page.unseen[:_UNSEEN]
    rows = [plain(f"{row.what}: {row.why}") for row in shown]
    if len(page.unseen) > len(shown):
        rows[-1] += f" (and {len(page.unseen) - len(shown)} more: --whole)"
    yield from labelled(paper, "unseen", rows)


def _deaths(page: SlurmWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    shown = page.deaths if whole else page.deaths[-_DEATHS:]
    now = page.reading.as_of_unix_seconds
    if len(page.deaths) > len(shown):
        before = counted(len(page.deaths) - len(shown), "death")
        yield f"{label('died')}{before} before these: --whole"
    width = min(max((len(plain(one.node)) for one in shown), default=0), _NODE)
    for number, death in enumerate(shown):
        head = label("died" if not number and len(shown) == len(page.deaths) else "")
        at = death.moment_seconds
        words = (
            f"{shorten(plain(death.node), width):{width}}  {clock(at, now)}  {ago(at, now):>10}  "
            f"{death.kind.value}, {jobs_words(death, page.suspect)}"
        )
        yield shorten(head + plain(words), paper.width)


def _judged(page: SlurmWhyPage, paper: Console) -> Iterator[str]:
    if page.suspect is None:
        return
    one = page.suspect.suspect
    known = f"known by {_KEYS.get(one.key.level, 'its number')}; {one.name}"
    words = f"10^{one.score_log10:.1f}, mark 10^{one.threshold_log10:.1f}; {known}"
    if one.verdict == SuspicionState.NONE.value:
        words = f"none: a person's order; {known}"
    yield from labelled(paper, "score", [plain(words)])
    if one.why_not:
        is_order = one.verdict == SuspicionState.NONE.value
        yield from labelled(paper, "why" if is_order else "but", [plain(one.why_not)])


def _others(page: SlurmWhyPage, paper: Console, *, whole: bool) -> Iterator[str]:
    if not page.others:
        return
    shown = page.others if whole else page.others[:_OTHERS]
    words = "; ".join(
        f"{row.suspect.name} of {row.suspect.user} is {row.suspect.state}, "
        f"{counted(len(row.suspect.nodes), 'node')}" for row in shown
    )  # fmt: skip
    more = len(page.others) - len(shown)
    tail = f" and {more} more" if more else ""
    yield from labelled(paper, "also", [plain(f"{words}{tail}: seawall cluster suspects --slurm")])
