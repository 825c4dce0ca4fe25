"""Every rule, found by folder, against every case beside it."""

import re
from pathlib import Path

import pytest
from tests.case_host import RuleCase, parse_case

from seawall.accounts.scene import Scene
from seawall.findings.finding import Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import Rule, load_rules
from seawall.findings.rule_runner import judge
from seawall.readings.snapshot import Snapshot

RULES_HOME = Path(__file__).parents[2] / "src/seawall/findings/rules"
RULES = {rule.module.rpartition(".")[2]: rule for rule in load_rules()}
CASES = sorted(RULES_HOME.glob("*/*.cases/*.case"))


def judge_case(case: RuleCase, rule: Rule) -> list[Judged]:
    snapshots = [Snapshot(host) for host in case.rounds]
    scene = Scene.of(snapshots)
    return list(judge([rule], scene, Policy()))


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.stem}-{p.stem}")
def test_case(path: Path) -> None:
    case = parse_case(path.read_bytes())
    expect = case.expect
    assert expect["why"], "a case says why it exists"
    judged = judge_case(case, RULES[path.parent.stem])
    wanted = [j for j in judged if j.finding.verdict == expect["verdict"]]
    assert wanted, [(j.finding.verdict, j.finding.headline) for j in judged]
    if expect["verdict"] != "fires":
        assert all(j.finding.verdict != "fires" for j in judged)
    match = [j for j in wanted if expect["headline"] in j.finding.headline]
    assert match, [j.finding.headline for j in wanted]
    if "severity" in expect:
        assert match[0].finding.severity == expect["severity"]
    if "workload" in expect:
        assert match[0].finding.workload == expect["workload"]
    if "count" in expect:
        assert len(wanted) == int(expect["count"])
    for item in match[0].finding.evidence:
        for source in re.findall(r"/(?:proc|sys|run|var)/[^ ]+", item.source):
            assert was_there(case, source.rstrip(",;")), f"{source} is not in the case"


def was_there(case: RuleCase, source: str) -> bool:
    """Whether an evidence path was really read; * stands for one component."""
    pattern = re.compile(re.escape(source).replace(r"\*", "[^/]+") + "(/.*)?$")
    return any(pattern.match(path) for r in case.records for path in (*r.files, *r.links))


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule_is_whole(name: str) -> None:
    """A rule has a case that fires, one just short of it, and one blind."""
    rule = RULES[name]
    cases = [parse_case(p.read_bytes()) for p in CASES if p.parent.stem == name]
    verdicts = {case.expect["verdict"] for case in cases}
    assert {"fires", "quiet", "blind"} <= verdicts, verdicts
    assert rule.doc
    assert rule.confirm
    assert rule.remedy
    ids = {one.id for one in RULES.values()}
    assert set(rule.explained_by) < ids - {rule.id}
    assert len(rule.steps) <= 3


def test_ids_are_unique_and_well_formed() -> None:
    ids = [rule.id for rule in RULES.values()]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"SW\d{3}", id_) for id_ in ids)
