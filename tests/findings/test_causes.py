"""Which finding explains which, and in which order causes stand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case

from seawall.accounts.scene import Scene
from seawall.findings.causes import causes
from seawall.findings.finding import Judged, Severity, fires
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge
from seawall.readings.snapshot import Snapshot

RULES_HOME = Path(__file__).parents[2] / "src/seawall/findings/rules"


def item(
    id_: str, severity: Severity = "critical", *, by: tuple[str, ...] = (),
    workload: str | None = None, seconds_left: float | None = None, muted: str | None = None,
) -> Judged:  # fmt: skip
    finding = fires(severity, "headline", [], workload=workload, seconds_left=seconds_left)
    return Judged(id=id_, title=id_, finding=finding, explained_by=by, muted=muted)


def shape(*items: Judged) -> list[tuple[str, list[str]]]:
    return [(c.item.id, [e.id for e in c.effects]) for c in causes(items)]


def test_effects_stand_below_the_first_cause_of_a_chain() -> None:
    storm = item("SW111", by=("SW103", "SW110"))
    low = item("SW110", by=("SW103",))
    assert shape(storm, item("SW103"), low) == [("SW103", ["SW110", "SW111"])]
    assert shape(storm, low) == [("SW110", ["SW111"])]


def test_severity_comes_first_then_what_runs_out_then_what_explains_most() -> None:
    by_severity = shape(item("SW101", "warning"), item("SW110"))
    assert [id_ for id_, _ in by_severity] == ["SW110", "SW101"]
    assert [id_ for id_, _ in shape(item("SW101"), item("SW102", seconds_left=27.0))] == [
        "SW102", "SW101",
    ]  # fmt: skip
    explains_more = shape(item("SW101"), item("SW105"), item("SW111", by=("SW105",)))
    assert [id_ for id_, _ in explains_more] == ["SW105", "SW101"]


def test_a_warning_that_makes_the_node_critical_is_critical() -> None:
    [cause] = causes([item("SW101", "warning"), item("SW110", by=("SW101",), seconds_left=9.0)])
    assert (cause.item.id, cause.severity, cause.seconds_left) == ("SW101", "critical", 9.0)


def test_another_workload_explains_nothing() -> None:
    full = item("SW202", by=("SW207",), workload="ml/llm-0/server")
    assert len(shape(full, item("SW207", workload="shop/web/app"))) == 2
    for same in ("ml/llm-0/server", "ml/llm-0", None):
        assert shape(full, item("SW207", workload=same)) == [("SW207", ["SW202"])]


def test_a_name_that_begins_alike_is_another_workload() -> None:
    full = item("SW202", by=("SW207",), workload="ml/llm-01/server")
    assert len(shape(full, item("SW207", workload="ml/llm-0"))) == 2


def test_an_info_explains_no_warning_and_a_muted_finding_nothing() -> None:
    low = item("SW110", by=("SW121",))
    assert len(shape(low, item("SW121", "info"))) == 2
    assert shape(low, item("SW121", muted="known")) == [("SW110", [])]


def test_findings_that_explain_each_other_have_one_cause() -> None:
    one, other = item("SW101", "warning", by=("SW102",)), item("SW102", by=("SW101",))
    assert shape(one, other) == shape(other, one) == [("SW102", ["SW101"])]


IDS = ("SW101", "SW102", "SW103", "SW207")


@given(
    st.lists(
        st.builds(
            item, st.sampled_from(IDS), st.sampled_from(("critical", "warning", "info")),
            by=st.lists(st.sampled_from(IDS), max_size=3).map(tuple),
            workload=st.sampled_from((None, "a/b", "a/b/c", "x/y")),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_nothing_is_lost_and_severity_never_rises_down_the_page(items: list[Judged]) -> None:
    answer = causes(items)
    told = [i.key for c in answer for i in (c.item, *c.effects)]
    assert sorted(told) == sorted(i.key for i in items)
    ranks = [("critical", "warning", "info").index(c.severity) for c in answer]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("in_one_container", [("SW207", ["SW118"])]),
        ("of_two", [("SW118", []), ("SW207", [])]),
    ],
)
def test_locks_held_in_a_container_that_is_killed_follow_from_that(
    name: str, expected: list[tuple[str, list[str]]]
) -> None:
    """Where another process holds its own as well, the container is not all of it."""
    cases = RULES_HOME / "node/address_space_locked.cases"
    case = parse_case((cases / f"{name}.case").read_bytes())
    rules = [rule for rule in load_rules() if rule.id in ("SW118", "SW207")]
    judged = judge(rules, Scene.of([Snapshot(host) for host in case.rounds]), Policy())
    assert shape(*judged) == expected
