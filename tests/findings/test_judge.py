from collections.abc import Iterator

import pytest
from tests.case_host import parse_case

from seawall.accounts.scene import Scene, TopicWindow
from seawall.findings.blindness import not_seen
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.policy import Mute, Policy
from seawall.findings.rule import FOUND, Rule, rule
from seawall.findings.rule_runner import judge, needs_window, window_topics
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.readings.slabinfo import Slabinfo
from seawall.readings.snapshot import Snapshot, needs_of

MEMINFO = "=== /proc/meminfo\nMemTotal: {} kB\nMemFree: 1 kB\n"


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    before = dict(FOUND)
    yield
    FOUND.clear()
    FOUND.update(before)


def declared(judge_function: object, **more: object) -> Rule:
    words: dict[str, object] = {
        "id": "SW998", "title": "t", "severity": "critical", "confirm": ["c"], "remedy": ["r"],
    }  # fmt: skip
    rule(**(words | more))(judge_function)  # type: ignore[arg-type]
    return FOUND["SW998"]


def scene(text: str) -> Scene:
    hosts = parse_case(text.encode()).rounds
    return Scene(Snapshot(hosts[0]), Snapshot(hosts[1]) if len(hosts) > 1 else None)


def total(meminfo: Meminfo, *, most: int = 5 << 10) -> Finding:
    evidence = [Evidence("MemTotal", meminfo.mem_total, "bytes", "/proc/meminfo")]
    if meminfo.mem_total > most:
        return fires("warning", "big", evidence)
    return quiet("small", evidence)


def growth(window: TopicWindow[Meminfo], slab: Slabinfo | Unread) -> Finding:
    grown = window.later.mem_total - window.earlier.mem_total
    assert isinstance(slab, Unread)
    return fires("critical", f"{grown} in {window.seconds}", [])


def test_needs_are_the_parameter_types() -> None:
    assert needs_of(growth) == [("window", TopicWindow[Meminfo], False), ("slab", Slabinfo, True)]


def test_missing_need_is_blind_never_quiet() -> None:
    found = declared(total, thresholds={"most": "bytes"})
    for text, why in (("why: x\n", "absent"), ("=== /proc/meminfo !refused\n", "refused")):
        [item] = judge([found], scene(text), Policy())
        assert item.finding.verdict == "blind"
        assert item.finding.severity == "critical", "what it might have missed"
        assert item.finding.unread[0].why == why


def test_threshold_comes_from_the_policy() -> None:
    found = declared(total, thresholds={"most": "bytes"})
    here = scene(MEMINFO.format(10))
    assert [i.finding.verdict for i in judge([found], here, Policy())] == ["fires"]
    moved = Policy(thresholds={"SW998": {"most": 1 << 30}})
    assert [i.finding.verdict for i in judge([found], here, moved)] == ["quiet"]


def test_mute_keeps_the_finding_and_says_why() -> None:
    found = declared(total, thresholds={"most": "bytes"})
    policy = Policy(mutes=(Mute(rule_id="SW998", reason="lab", until="2999-01-01"),))
    [item] = judge([found], scene(MEMINFO.format(10)), policy)
    assert item.muted == "lab (until 2999-01-01)"
    assert not_seen([item], []) == []


def test_window_needs_two_moments_two_seconds_apart() -> None:
    found = declared(growth)
    assert needs_window(found)
    assert window_topics([found]) == [Meminfo]
    one = MEMINFO.format(10)
    for text, verdict in (
        (one, "blind"),
        (one + "=== round 2 +0.5\n" + MEMINFO.format(12), "blind"),
        (one + "=== round 2 +2.5\n" + MEMINFO.format(12), "fires"),
        (one + "=== round 2 +2.5\n=== /proc/sys/kernel/random/boot_id\nother\n", "blind"),
    ):
        [item] = judge([found], scene(text), Policy())
        assert item.finding.verdict == verdict, text
    assert item.finding.verdict == "blind"


def test_rates_come_from_the_window() -> None:
    found = declared(growth)
    text = MEMINFO.format(10) + "=== round 2 +2.5\n" + MEMINFO.format(12)
    [item] = judge([found], scene(text), Policy())
    assert item.finding.headline == "2048 in 2.5"


def test_rule_without_words_for_a_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match="most"):
        declared(total)


def test_two_rules_of_one_id_are_refused() -> None:
    declared(total, thresholds={"most": "bytes"})

    def other(meminfo: Meminfo) -> Finding:
        return blind("x")

    other.__module__ = "elsewhere"
    with pytest.raises(ValueError, match="declared twice"):
        declared(other)


def test_what_could_not_be_seen_is_grouped_and_provided_for() -> None:
    found = declared(total, thresholds={"most": "bytes"})
    here = scene("=== /proc/meminfo !refused\n")
    judged = list(judge([found], here, Policy()))
    rows = not_seen(judged, [here.first])
    assert len(rows) == 1, "the rule's blindness and the file's refusal are one row"
    assert rows[0].what == "SW998 t"
    assert "/proc/meminfo" in rows[0].why
    assert "root" in rows[0].provide


def test_value_is_read_once_and_kept() -> None:
    class Counting:
        def __init__(self) -> None:
            self.asked = 0
            self.host = parse_case(MEMINFO.format(1).encode()).rounds[0]

        def read(self, path: str, limit_bytes: int = 1) -> bytes | Unread:
            self.asked += 1
            return self.host.read(path)

    host = Counting()
    snapshot = Snapshot(host)  # type: ignore[arg-type]
    assert snapshot.get(Meminfo) is snapshot.get(Meminfo)
    assert host.asked == 1
