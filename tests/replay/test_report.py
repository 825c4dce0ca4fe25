# SPDX-License-Identifier: Apache-2.0
"""What a report says of an occasion, with a black box that tells how it went on."""

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.films.scripts import random_film, rings_fast
from tests.replay.boxed_film import BoxWriter
from tests.replay.live_film import BOOT, EPOCH, Lived, live
from tests.replay.report_nodes import month

import seawall
from seawall.actions.orders import Outcome
from seawall.blackbox.frame import Frame, pack
from seawall.blackbox.ring import RingFile
from seawall.guard.tell import decision_lines, guard_sentences
from seawall.guard.verdict import DecisionUpdate, Verdict
from seawall.replay.report_all_nodes import report_of
from seawall.replay.report_files import read
from seawall.replay.report_model import GuardReport, Occasion
from seawall.replay.report_text import lines
from seawall.replay.report_words import verdict as verdict_words
from seawall.replay.tick import Tick
from seawall.views.terminal import Console

LATER_BOOT = "5eed0001-1111-2222-3333-444455556666"
LINE_MOST = 80
BOUND_SECONDS = 15.0
"""It is to be under 5 s; other tests run beside it."""


def seen(mode: str = "observe") -> Lived:
    """A node on which somebody takes driver memory, up to the decision."""
    film = random_film(11, rings_fast, "burstable")
    film.settings = film.settings._replace(mode=mode)
    (lived,) = live(film)
    at = next(n for n, v in enumerate(lived.verdicts) if v is not None and v.orders)
    lived.ticks, lived.verdicts = lived.ticks[: at + 1], lived.verdicts[: at + 1]
    number = lived.ticks[-1].number
    lived.lines = [row for row in lived.lines if row[0] <= number]
    return lived


def later(lived: Lived, seconds: float, **changes: Any) -> Tick:
    """A tick so long after the decision."""
    last = lived.ticks[-1]
    node = last.node._replace(seconds=last.node.seconds + seconds, **changes.pop("node", {}))
    number = last.number + max(0, int(seconds * 10))
    tick = last._replace(node=node, unix_seconds=EPOCH + node.seconds, number=number, outcomes=())
    return tick._replace(**changes)


class Recorded:
    """A box of one node, and what it says."""

    def __init__(self, tmp_path: Path, lived: Lived) -> None:
        self.lived, self.folder = lived, tmp_path
        self.writer = BoxWriter(tmp_path / "blackbox")
        self.writer.start(lived, lived.ticks[0], 1)
        self.writer.ticks(lived.ticks, is_key=True)
        for _, text in lived.lines:
            self.writer.write("line", lived.ticks[-1], {"line": text})

    def goes_on(self, *ticks: Tick) -> None:
        for tick in ticks:
            self.writer.ticks([tick])

    def kernel(
        self, seconds: float, path: str, comm: str, *, is_limit: bool = False, clock: float = 0.0
    ) -> None:
        """As the kernel says it since 5.0; ``clock``: so much too late goes the node's."""
        tick = later(self.lived, seconds)
        tick = tick._replace(unix_seconds=tick.unix_seconds + clock)
        stamp = int(tick.node.seconds * 1e6)
        what = "Memory cgroup out of memory" if is_limit else "Out of memory"
        where = f"CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={path}" if is_limit else (
            "CONSTRAINT_NONE,nodemask=(null),global_oom"
        )  # fmt: skip
        for text in (
            f"{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
            f"oom-kill:constraint={where},task_memcg={path},task={comm},pid=77,uid=0",
            f"{what}: Killed process 77 ({comm}) total-vm:9kB, anon-rss:8kB, file-rss:0kB, UID:0",
        ):
            self.writer.write("line", tick, {"kernel": f"3,123,{stamp},-;{text}"})

    def boots_anew(self) -> None:
        self.writer.close()
        ring = RingFile.open(self.writer.path, 4 << 20)
        unix = self.lived.ticks[-1].unix_seconds + 300
        body: dict[str, Any] = {"line": "{}"}
        ring.write(pack(Frame(ring.next_sequence, "line", unix, 20.0, LATER_BOOT, 0, body)))
        ring.close()

    @property
    def report(self) -> GuardReport:
        self.writer.close()
        return report_of(read([str(self.folder)]), EPOCH, EPOCH + 86_400 * 30)

    @property
    def only(self) -> Occasion:
        (occasion,) = self.report.occasions
        return occasion


@pytest.fixture
def told(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path, seen())


def other_than(told: Recorded) -> tuple[str, str]:
    """Path and name of somebody whom it did not choose."""
    chosen = told.lived.verdicts[-1].orders[0].target.path  # type: ignore[union-attr]
    group = next(g for path, g in told.lived.ticks[-1].groups.items() if path != chosen)
    return group.path, group.name


def target_of(told: Recorded) -> str:
    verdict = told.lived.verdicts[-1]
    assert verdict is not None
    return verdict.orders[0].target.path


def test_the_kernel_killed_others(told: Recorded) -> None:
    path, name = other_than(told)
    told.goes_on(later(told.lived, 4, state="short"))
    told.kernel(4.25, f"{path}/made-inside", "java")
    told.goes_on(later(told.lived, 5, state="short", node={"kernel_kills": 1}))
    one = told.only
    assert (one.kind, one.ending, one.judgement) == ("would", "kernel_others", "in_time")
    assert [(kill.name, round(kill.seconds, 2)) for kill in one.truth.kills] == [(name, 4.25)]
    assert one.truth.unnamed == 0
    assert one.node == "node-7"
    assert "1 workload that it had not chosen" in verdict_words(told.report)[0]


def test_a_tick_of_peace_and_of_a_burst_counts_once(told: Recorded) -> None:
    """What came before a trigger is written behind it once more, with all digits."""
    tick = later(told.lived, 3, state="short", node={"kernel_kills": 1})
    told.writer.ticks([tick], is_rounded=True)
    told.writer.ticks([tick], is_key=True)
    told.writer.ticks([tick], is_key=True)
    assert told.only.truth.unnamed == 1


def test_a_clock_that_was_set_moves_nothing(told: Recorded) -> None:
    told.kernel(4.25, other_than(told)[0], "java", clock=-7200)
    (kill,) = told.only.truth.kills
    assert round(kill.seconds, 2) == 4.25


def test_two_journals_and_the_box_of_both_are_one_node(told: Recorded, tmp_path: Path) -> None:
    (first, second) = ("5eed0000", "5eed0001")
    line = told.lived.lines[-1][1]
    (tmp_path / "one.jsonl").write_text(line + "\n")
    (tmp_path / "two.jsonl").write_text(line.replace(first, second) + "\n")
    told.boots_anew()
    (source,) = read([str(tmp_path)])
    assert sorted(boot[:8] for boot in source.stories) == [first, second]
    assert len(told.report.occasions) == 2


def test_two_copies_of_a_box_are_one(told: Recorded, tmp_path: Path) -> None:
    told.kernel(4.25, other_than(told)[0], "java")
    told.writer.close()
    for name in ("blackbox.old", "other/blackbox"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((tmp_path / "blackbox").read_bytes())
    (kill,) = told.only.truth.kills
    assert kill.processes == 1


def test_the_kernel_killed_the_same(told: Recorded) -> None:
    told.kernel(2.0, target_of(told), "hog")
    assert (told.only.ending, told.only.judgement) == ("kernel_same", "in_time")


def test_the_kernel_was_faster(told: Recorded) -> None:
    told.kernel(-3.0, other_than(told)[0], "java")
    assert (told.only.ending, told.only.judgement) == ("kernel_before", "too_late")


def test_a_kill_at_a_limit_of_somebody_else_is_beside_the_point(told: Recorded) -> None:
    told.kernel(4.0, other_than(told)[0], "java", is_limit=True)
    told.goes_on(*(later(told.lived, s, state="peace") for s in (10, 70, 110)))
    assert (told.only.ending, told.only.judgement) == ("recovered", "wrong")
    assert any("at limits of their own" in line for line in lines(told.report, Console()))


def test_nothing_happened(told: Recorded) -> None:
    told.goes_on(*(later(told.lived, s, state="peace") for s in (12, 70, 110)))
    one = told.only
    assert (one.ending, one.judgement) == ("recovered", "wrong")
    assert round(one.truth.recovered_seconds or 0) == 12
    assert "would have been wrong" in verdict_words(told.report)[0]


def test_it_ended_by_itself(told: Recorded) -> None:
    groups = {p: g for p, g in told.lived.ticks[-1].groups.items() if p != target_of(told)}
    told.goes_on(later(told.lived, 6, groups=groups), later(told.lived, 70, groups=groups))
    assert (told.only.ending, told.only.judgement) == ("ended", "unknown")
    assert round(told.only.truth.ended_seconds or 0) == 6


def test_the_node_recovered_though_whom_it_meant_lives(told: Recorded) -> None:
    told.kernel(4.0, other_than(told)[0], "java")
    told.goes_on(*(later(told.lived, s, state="peace") for s in (10, 70, 110)))
    assert (told.only.ending, told.only.judgement) == ("kernel_others", "doubtful")


def test_the_node_died(told: Recorded) -> None:
    told.goes_on(later(told.lived, 20, state="short"))
    told.boots_anew()
    one = told.only
    assert (one.ending, one.judgement) == ("died", "in_time")
    assert round(one.truth.died_seconds or 0) == 20


@pytest.mark.parametrize("how", ["no later boot", "stopped"])
def test_silence_alone_is_no_death(told: Recorded, how: str) -> None:
    told.goes_on(later(told.lived, 20, state="short"))
    if how == "stopped":
        tick = later(told.lived, 20)
        stamp = decision_lines.Stamp(tick.unix_seconds + 1, BOOT, "observe")
        line = decision_lines.event_line(guard_sentences.STOPPED, stamp).decode().rstrip()
        told.writer.write("line", tick, {"line": line})
        told.boots_anew()
    assert (told.only.ending, told.only.judgement) == ("unknown", "unknown")


def test_refused_while_the_node_died(tmp_path: Path) -> None:
    lived = seen()
    verdict = lived.verdicts[-1]
    assert verdict is not None
    refused = verdict._replace(orders=(), refused="no evidence", is_report=True)
    lived.lines = [(1, line(refused, lived))]
    told = Recorded(tmp_path, lived)
    told.boots_anew()
    assert (told.only.kind, told.only.ending, told.only.judgement) == ("refused", "died", "none")
    assert "chose nobody: Once the node died" in verdict_words(told.report)[0]


def line(verdict: Verdict, lived: Lived, mode: str = "observe") -> str:
    stamp = decision_lines.Stamp(lived.ticks[-1].unix_seconds, BOOT, mode)
    return decision_lines.verdict_line(verdict, stamp).decode().rstrip()


def test_in_enforce_it_tells_what_came_back(tmp_path: Path) -> None:
    lived = seen("enforce")
    verdict, tick = lived.verdicts[-1], lived.ticks[-1]
    assert verdict is not None
    order = verdict.orders[0]
    outcome = Outcome(order, True, processes=4, first_action_seconds=0.012)
    back = order.predicted_bytes // 2
    stamp = decision_lines.Stamp(tick.unix_seconds, BOOT, "enforce")
    seconds = tick.node.seconds
    journal = [
        decision_lines.verdict_line(verdict, stamp),
        decision_lines.outcome_line(outcome, "killed", seconds, stamp),
        decision_lines.update_line(
            DecisionUpdate(verdict.decision, seconds + 2, None, back, "came back"), stamp
        ),
    ]
    (tmp_path / "decisions.jsonl").write_bytes(b"".join(journal))
    told = Recorded(tmp_path, lived)
    told.goes_on(*(later(lived, s, state="peace") for s in (10, 70, 110)))
    one = told.only
    assert (one.kind, one.judgement, one.returned_bytes) == ("did", "worked", back)
    text = " ".join(" ".join(lines(told.report, Console())).split())
    assert "first act 12 ms after the order" in text
    assert "50 % of it" in text


def test_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    """An old journal does not tell of kills: nothing follows from it, and little is known."""
    lived = seen()
    document = json.loads(lived.lines[-1][1])
    del document["frame"]
    (tmp_path / "decisions.jsonl").write_text(json.dumps(document) + "\n" + "{half\n")
    until = EPOCH + 86_400
    report = report_of(read([str(tmp_path)]), until - 86_400 * 30, until)
    (one,) = report.occasions
    assert (one.ending, one.judgement) == ("unknown", "unknown")
    assert "of which at most the last 24 h are recorded" in verdict_words(report)[0]
    told = " ".join(f"{row.what}: {row.why}" for row in report.unseen)
    for words in ("no black box", "no line tells of kills", "none of seawall's: 1 on", "the time"):
        assert words in told


@pytest.mark.parametrize(("hours", "words"), [(12, "12 h"), (48, "2 days"), (720, "30 days")])
def test_the_time_that_was_asked_for(hours: int, words: str) -> None:
    report = GuardReport(0.0, hours * 3600.0, [], [], [], [])
    assert verdict_words(report)[0].startswith(f"0 nodes, {words}")


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    lived = seen()
    text = lived.lines[-1][1].replace("ns/hog0/c", "\\u001b[2J\\u202eevil\\n")
    (tmp_path / "decisions.jsonl").write_text(text + "\n")
    shown = cli(tmp_path)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "evil" in shown


def cli(*paths: Path, options: tuple[str, ...] = ("--since", "9999d")) -> str:
    command = [sys.executable, "-m", "seawall", "guard", "report", *options, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_hundred_nodes_in_a_moment(tmp_path: Path) -> None:
    """Thirty days of a hundred nodes, through the command line: 80 columns, and a schema."""
    month(tmp_path, 100, time.time(), incidents=30)
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl"))
    begin, used = time.monotonic(), _children_seconds()
    text = cli(tmp_path, options=())
    seconds = time.monotonic() - begin
    used = _children_seconds() - used
    print(f"report: 100 nodes, 30 days, {size / 1e6:.1f} MB: {seconds:.2f} s, CPU {used:.2f} s")  # noqa: T201 - a figure
    assert seconds < BOUND_SECONDS
    assert max(map(len, text.splitlines())) <= LINE_MOST
    assert re.search(r"100 nodes, 30 days: it would have acted [\d,]+ times\.", text)
    document = json.loads(cli(tmp_path, options=("--json",)))
    schema = Path(seawall.__file__).parent / "views/schemas/guard-report.json"
    jsonschema.validate(document, json.loads(schema.read_text()))
    assert document["workloads"][0]["nodes"]
