"""``why`` on one screen: cause first, effects folded, 24 lines of 80 columns whatever fires."""

import json
import re
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
from seawall.findings.blindness import NotSeen
from seawall.findings.causes import causes
from seawall.findings.finding import Brief, Evidence, Judged, Severity, blind, fires, quiet
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.views.document import head, render
from seawall.views.documents.why_document import WHY, CheckPage
from seawall.views.terminal import Console
from seawall.views.why_oneline import WIDTH, line
from seawall.views.why_screen import Answer, columns, interim_lines, lines
from seawall.views.why_text import cause_lines, closing, event_lines, pastable

PAPER = Console(width=80)
POD = "/sys/fs/cgroup/memory/kubepods.slice/kubepods-pod35a5db12_b7fa_11e9_9fa1_246e967d5d94.slice"


def item(
    id_: str = "SW103", severity: Severity = "critical", *, headline: str = "33 GiB is held",
    by: tuple[str, ...] = (), workload: str | None = None, remedy: tuple[str, ...] = ("end it",),
    brief: Brief | None = None, has_holder: bool = False, outlook: str = "It grows.",
    of_node: bool = False,
    evidence: tuple[Evidence, ...] = (), confirm: tuple[str, ...] = (),
) -> Judged:  # fmt: skip
    finding = fires(severity, headline, evidence, workload=workload, outlook=outlook,
                    brief=brief or Brief())  # fmt: skip
    return Judged(
        id=id_, title=f"Title of {id_}", finding=finding, explained_by=by, remedy=remedy,
        has_holder=has_holder, is_of_node_memory=of_node, confirm=confirm,
        steps=() if brief is None else brief.steps,
    )  # fmt: skip


def text(*items: Judged, paper: Console = PAPER, **more: object) -> str:
    return "\n".join(lines(Answer(judged=items, **more), paper))  # type: ignore[arg-type]


def event(sentence: str, last: float | None = 987.0, more: str = "", when: str = "") -> RecentEvent:
    return RecentEvent(
        kind="oom_kill", first_at_unix_seconds=last, last_at_unix_seconds=last, when=when,
        sentence=sentence, more=more,
    )  # fmt: skip


def past(*events: RecentEvent, unread: tuple[Unread, ...] = ()) -> RecentEvents:
    return RecentEvents(since_seconds=1800.0, events=events, unread=unread, now_unix_seconds=1000.0)


# --- the screen ------------------------------------------------------------------------


def test_one_cause_with_its_effects_below_it() -> None:
    shown = text(
        item("SW111", by=("SW103",)),
        item(
            "SW103", has_holder=True, evidence=(Evidence("objects", 8650926, "count", "/proc/x"),)
        ),
        item("SW110", by=("SW103",), brief=Brief(effect="15.8 MiB is left")),
    )
    assert shown.split("\n") == [
        "CRITICAL  33 GiB is held [SW103]",
        "  who     nobody can be named from counters: seawall memory --who",
        "  why     It grows: 8,650,926 objects",
        "  do      end it",
        "  so      15.8 MiB is left; title of SW111 [SW110 SW111]",
        "more      its evidence: seawall why SW103; everything: seawall why --whole",
    ]


def test_two_causes_at_most_and_the_rest_counted() -> None:
    ids = ("SW101", "SW102", "SW105", "SW106", "SW201")
    shown = text(*(item(id_) for id_ in ids), item("SW301", "info"))
    assert shown.count("CRITICAL") == 2
    assert "also      3 critical, 1 info more: SW105, SW106, SW201, SW301" in shown


def test_whose_it_is() -> None:
    named = text(item(workload="ml/llm-0/server", brief=Brief(who="holds 292 packet sockets")))
    assert "  who     ml/llm-0/server: holds 292 packet sockets\n" in named
    suspects = ("unit:hog.service (holds 292 packet sockets)",)
    assert "  who     suspected, not proved: unit:hog.service (holds" in text(
        item(has_holder=True), suspects=suspects
    )
    assert "  who" not in text(item(has_holder=False), suspects=suspects)
    assert "from these files: seawall memory --who" in text(item(has_holder=True), is_live=False)


def test_largest_is_named_but_not_blamed_and_only_for_memory_that_is_counted() -> None:
    short = item("SW110", has_holder=True, of_node=True)
    shown = text(short, largest="shop/web-0/app, 12.3 GiB")
    assert "  who     nobody is to blame for certain; largest: shop/web-0/app, 12.3 GiB\n" in shown
    uncounted = text(item(has_holder=True), largest="shop/web-0/app, 12.3 GiB")
    assert "shop/web-0/app" not in uncounted
    blamed = item("SW110", has_holder=True, of_node=True, workload="ml/llm-0")
    assert "largest" not in text(blamed, largest="shop/web-0/app, 12.3 GiB")
    assert "nobody can be named" in text(short)


def test_interim_is_the_first_cause_in_three_lines() -> None:
    """With the line of the machine, two headings and the prompt 17 lines are left for the whole."""
    remedy = ("end it, and " + "everything that it started " * 9 + ".", "wait")
    items = (
        item("SW110", "warning"),
        item(headline="33 GiB is held; " + "and more of it " * 20, has_holder=True, remedy=remedy),
    )
    told = interim_lines(Answer(judged=items), PAPER)
    assert len(told) == 3
    assert max(map(columns, told)) <= 80
    assert told[0].startswith("CRITICAL  33 GiB is held")
    assert told[0].endswith("[SW103]")
    assert told[1].startswith("  who     nobody can be named")
    assert told[2].startswith("  do      ")
    assert interim_lines(Answer(judged=items[:1]), PAPER)[-1].startswith("  do      end it")


def test_interim_says_nothing_where_nothing_fires_yet() -> None:
    looked = Judged(id="SW110", title="t", finding=quiet("24 GiB is left"))
    assert interim_lines(Answer(judged=(looked,)), PAPER) == []


def test_nothing_fires_is_said_of_now_alone() -> None:
    looked = Judged(id="SW110", title="t", finding=quiet("24 GiB is left"))
    shown = text(looked, recent=past(event("kernel OOM-killed hog, login and bash in 4 s")))
    assert shown.split("\n") == [
        "Nothing fires now. 1 rule looked.",
        "lately    13 s ago   kernel OOM-killed hog, login and bash in 4 s",
    ]


def test_a_rule_that_could_not_see_did_not_look() -> None:
    missing = Unread("/dev/nvidia0", "refused", "x")
    items = [Judged(id=f"SW10{n}", title="t", finding=quiet("x")) for n in range(3)]
    items.append(Judged(id="SW103", title="t", finding=blind("x", missing)))
    shown = text(*items, unseen=[NotSeen("1 rule", "x", "root", 1)])
    assert shown.startswith("Nothing fires now in the 3 of 4 rules that could look.\n")
    assert "not seen  1 of 4 rules; needs: root" in shown


def test_where_a_bundle_breaks_off_stands_above_all_numbers() -> None:
    shown = lines(Answer(judged=[item()], heading="node", cut="it breaks off after 48 %"), PAPER)
    assert shown[1] == "cut       it breaks off after 48 %"
    assert shown[2].startswith("CRITICAL")


def test_where_most_rules_could_not_see_it_is_no_clean_bill() -> None:
    missing = Unread("/proc/meminfo", "not_captured", "the bundle does not hold it")
    dark = [Judged(id=f"SW10{n}", title="t", finding=blind("x", missing)) for n in range(3)]
    shown = text(*dark, unseen=[NotSeen("3 rules", "x", "a whole capture", 3)])
    assert shown.startswith("Nothing is known: no rule could look.\n")
    assert "fires" not in shown
    assert "not seen  3 of 3 rules; needs: a whole capture" in shown
    looked = Judged(id="SW110", title="t", finding=quiet("x"))
    assert text(*dark, looked) == "Only 1 of 4 rules could look; in those nothing fires now."


def test_a_muted_rule_is_not_counted_as_having_looked() -> None:
    missing = Unread("/dev/nvidia0", "refused", "x")
    items = [Judged(id=f"SW10{n}", title="t", finding=quiet("x")) for n in range(3)]
    items.append(Judged(id="SW103", title="t", finding=blind("x", missing)))
    items.append(Judged(id="SW104", title="t", finding=blind("x", missing), muted="lab"))
    items.append(replace(item("SW105"), muted="lab"))
    assert text(*items) == "Nothing fires now in the 3 of 4 rules that could look."


def test_the_whole_says_it_in_the_same_words() -> None:
    missing = Unread("/dev/nvidia0", "refused", "x")
    items = [Judged(id=f"SW10{n}", title="t", finding=quiet("x")) for n in range(3)]
    assert "Nothing fires now. 3 rules looked." in closing(items, [], 2.5, PAPER)
    items.append(Judged(id="SW103", title="t", finding=blind("x", missing)))
    told = list(closing(items, [], 2.5, PAPER))
    assert "Nothing fires now in the 3 of 4 rules that could look." in told
    assert told[-1] == "4 rules: 0 fire, 3 quiet, 1 blind, 0 muted; 2.5 s window."


def test_what_nobody_can_change_is_left_out() -> None:
    rows = [
        NotSeen("holders", "packet rings of 1 process", ""),
        NotSeen("SW116 zram", "/sys/block: nothing there", "a kernel or a setting that has it", 1),
    ]
    assert "not seen" not in text(item(), unseen=rows)
    hangs = NotSeen("/proc/7/cmdline", "no answer", "nothing: that it does not answer is evidence"
                    " by itself")  # fmt: skip
    assert "not seen  /proc/7/cmdline: no answer" in text(item(), unseen=[hangs])


def test_lately_three_events_and_the_rest_counted() -> None:
    many = past(*(event(f"episode {number}", 1000.0 - 60 * number) for number in range(1, 8)))
    shown = text(item(), recent=many)
    assert "lately    60 s ago   episode 1\n" in shown
    assert "          3 min ago  episode 3\n          and 4 events more" in shown
    assert "episode 4" not in shown


def test_lately_without_a_clock_or_a_log() -> None:
    undated = text(
        item(), recent=past(event("kernel OOM-killed hog", None, when="Feb 12 14:31:46"))
    )
    assert "lately    Feb 12 14:31:46 kernel OOM-killed hog" in undated
    refused = Unread("/dev/kmsg", "refused", "for root only")
    assert "lately    not known: /dev/kmsg: for root only" in text(item(), recent=refused)
    half = text(item(), recent=past(unread=(refused,)))
    assert "nothing known of the last 30 min; not read: /dev/kmsg" in half
    assert "nothing in" not in half
    assert "lately    nothing in the last 30 min" in text(item(), recent=past())
    assert "  nothing known" in event_lines(past(unread=(refused,)), PAPER)
    assert "  nothing" in event_lines(past(), PAPER)
    assert "lately" not in text(item(), recent=None)


def test_no_cgroup_path_and_no_long_id() -> None:
    container = "5eed" * 16
    shown = text(
        item(
            headline=f"{POD}/docker-{container}.scope is full of {container}",
            remedy=(f"echo 0 > {POD}/memory.force_empty", "alert on anonymous memory"),
            workload=f"container:{container}",
        )
    )
    assert "/sys/fs" not in shown
    assert "kubepods" not in shown
    assert container not in shown
    assert "container:5eed5eed5eed" in shown
    assert "  do      alert on anonymous memory" in shown


def test_a_step_too_long_is_cut_between_sentences() -> None:
    long = "End the workload that grows. " + "It is the one whose charge rises fastest of all. " * 6
    assert "  do      End the workload that grows" in text(item(remedy=(long,)))
    shapeless = "word " * 80
    assert "  do      seawall why SW103: what to do, step by step" in text(
        item(remedy=(shapeless,))
    )


def test_colour_changes_no_word() -> None:
    items = (item(), item("SW301", "info"))
    painted = text(*items, paper=Console(width=80, colour=True))
    assert "\x1b[1;31mCRITICAL" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == text(*items)


WORDS = st.text("ab /.;:-[]\x1b\n\u672c", max_size=60) | st.sampled_from(
    ["\x1b[2J" * 20, "a/" * 150, "x" * 400, "本" * 90, "word " * 90, "\u202e\x9b\n\r\x07", POD]
)
BRIEFS = st.builds(
    Brief, headline=WORDS, who=WORDS, why=WORDS, effect=WORDS,
    steps=st.lists(WORDS, max_size=5).map(tuple),
)  # fmt: skip
ITEMS = st.builds(
    item, st.sampled_from(["SW101", "SW103", "SW110", "SW111", "SW201", "SW202", "SW301"]),
    st.sampled_from(["critical", "warning", "info"]), headline=WORDS,
    by=st.lists(st.sampled_from(["SW103", "SW110"]), max_size=2).map(tuple),
    workload=st.none() | WORDS.filter(bool), remedy=st.lists(WORDS, max_size=4).map(tuple),
    brief=st.none() | BRIEFS, has_holder=st.booleans(), outlook=WORDS,
    evidence=st.lists(
        st.builds(Evidence, WORDS, st.floats(0, 1e30) | WORDS, st.sampled_from(["bytes", "count"]),
                  WORDS),
        max_size=4,
    ).map(tuple),
)  # fmt: skip
EVENTS = st.builds(
    event, WORDS, st.none() | st.floats(-1e12, 1e12), WORDS, st.text(max_size=60)
)  # fmt: skip


@settings(max_examples=20)
@given(
    st.lists(ITEMS, max_size=6), st.lists(EVENTS, max_size=8),
    st.lists(st.builds(NotSeen, WORDS, WORDS, WORDS, st.integers(0, 50)), max_size=6),
    WORDS, st.sampled_from([40, 60, 80, 100]), st.lists(WORDS, max_size=3),
)  # fmt: skip
def test_whatever_fires_is_one_screen(
    items: list[Judged], events: list[RecentEvent], unseen: list[NotSeen], words: str, width: int,
    suspects: list[str],
) -> None:  # fmt: skip
    paper = Console(width=width)
    shown = lines(
        Answer(
            judged=items, unseen=unseen, heading=words, recent=past(*events), suspects=suspects,
            guard=words, notes=3, cut=words, about=[words], others=2,
        ),
        paper,
    )  # fmt: skip
    assert len(shown) <= 23
    assert max(map(columns, shown)) <= width
    assert all(one.isprintable() for one in shown)
    if found := causes(items):
        assert any(f"[{found[0].item.id}]" in one for one in shown)
        assert any(one.startswith(found[0].severity.upper()) for one in shown)
        assert all(
            one.finding.severity == "info" or "CRITICAL" in "".join(shown)
            for one in items if found[0].severity == "critical"
        )  # fmt: skip


# --- one line --------------------------------------------------------------------------


def test_one_line_a_node() -> None:
    shown = line("node-17", [item(headline="33 GiB is held", workload="ml/llm-0")], None)
    assert shown == "node-17 CRITICAL SW103 ml/llm-0: 33 GiB is held"
    assert line(
        "n", [Judged(id="SW1", title="t", finding=quiet("x"))], past(event("kernel OOM"))
    ) == ("n OK nothing fires now | lately: 13 s ago kernel OOM")
    dark = Judged(id="SW110", title="t", finding=blind("x"))
    assert line("n", [dark], None) == "n UNKNOWN 1 of 1 rules could not see"


@settings(max_examples=10)
@given(st.text(max_size=200), st.lists(ITEMS, max_size=4), st.lists(EVENTS, max_size=2))
def test_one_line_is_one_line(node: str, items: list[Judged], events: list[RecentEvent]) -> None:
    shown = line(node, items, past(*events))
    assert shown.isprintable()
    assert columns(shown) <= 2 * WIDTH
    assert len(shown) <= WIDTH + 2


# --- the whole -------------------------------------------------------------------------


def test_the_whole_has_all_evidence_and_the_effects_below_their_cause() -> None:
    rows = tuple(Evidence(f"row {number}", number, "count", "/proc/x") for number in range(30))
    [cause] = causes([item("SW111", by=("SW103",)), item("SW103", evidence=rows)])
    told = "\n".join(cause_lines(cause, PAPER))
    assert all(f"row {number}  " in told for number in range(30))
    assert told.index("[SW103]") < told.index("[SW111]")
    assert "          follows from SW103" in told


def test_commands_can_be_pasted() -> None:
    """A long folder is said once; in quotes it stays, for there no $P is read."""
    commands = [f"cat {POD}/memory.stat", f"grep -H . {POD}/a/memory.* '{POD}/b'", "free -m"]
    assert pastable(commands) == [
        f"P={POD}", "cat $P/memory.stat", f"grep -H . $P/a/memory.* '{POD}/b'", "free -m",
    ]  # fmt: skip
    assert pastable(["cat /proc/meminfo"]) == ["cat /proc/meminfo"]


@pytest.mark.parametrize("recent", [None, past(event("x")), Unread("/dev/kmsg", "refused", "x")])
def test_the_document_says_what_explains_what(recent: RecentEvents | Unread | None) -> None:
    items = [item("SW111", by=("SW103",)), item("SW103"), item("SW301", "info")]
    unknown: Kernel | Unread = Unread("kernel", "not_captured")
    shown = CheckPage(judged=items, unseen=[], bundle_notes=[], recent=recent)
    page = WHY.of(head("why", unknown, None), shown)
    schema = json.loads((files("seawall.views") / "schemas/why.json").read_text())
    jsonschema.validate(json.loads(render(page)), schema)
    assert page["order"] == ["SW103", "SW111", "SW301"]
    rows = {row["id"]: (row["explained_by"], row["effects"]) for row in page["findings"]}
    assert rows == {"SW103": (None, ["SW111"]), "SW111": ("SW103", []), "SW301": (None, [])}
