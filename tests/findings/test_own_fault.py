"""A fault of our own in a parser, a reading, a sum or a rule takes that part, and no more."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.case_host import parse_case

from seawall.accounts.scene import Scene
from seawall.cli import recent_event_sources
from seawall.cli.main import parse
from seawall.cli.source_options import open_source
from seawall.findings.blindness import not_seen
from seawall.findings.finding import Finding, quiet
from seawall.findings.policy import Policy
from seawall.findings.rule import FOUND, rule
from seawall.findings.rule_runner import judge
from seawall.host.host import Unread
from seawall.problems import OutputProblem, ParseProblem
from seawall.readings import own_fault, snapshot
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.reading import read_as, read_each_as
from seawall.readings.snapshot import Snapshot

INCIDENT = Path(__file__).parents[2] / "docs/incidents/gpu-node-dies/bundle"
VERBS = (
    "why", "why --json", "memory", "memory --json", "memory --census", "memory --who", "pods",
    "pods --wide", "pods --json", "cache", "cache --dirty", "stacks", "gpu", "gpu --json",
    "oom predict", "oom predict --json", "oom explain", "check SW101",
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(own_fault, "RAISES", False)
    before = dict(FOUND)
    yield
    FOUND.clear()
    FOUND.update(before)


def clumsy(meminfo: Meminfo) -> Finding:
    return quiet(f"{1 // (meminfo.mem_total - meminfo.mem_total)}")


def sound(meminfo: Meminfo) -> Finding:
    return quiet(f"{meminfo.mem_total}")


def test_fault_in_a_rule_makes_that_rule_blind_and_no_other() -> None:
    for number, function in ((998, clumsy), (997, sound)):
        rule(id=f"SW{number}", title="t", severity="critical", confirm=["c"], remedy=["r"])(
            function
        )
    host = parse_case(b"=== /proc/meminfo\nMemTotal: 8 kB\nMemFree: 1 kB\n").rounds[0]
    scene = Scene(Snapshot(host))
    judged = list(judge([FOUND["SW998"], FOUND["SW997"]], scene, Policy()))
    assert [item.finding.verdict for item in judged] == ["blind", "quiet"]
    assert judged[0].finding.severity == "critical", "what it might have missed"
    [row, *_] = not_seen(judged, [scene.first])
    assert row.kind == "bug"
    line = clumsy.__code__.co_firstlineno + 1
    assert row.what == "SW998 t"
    assert row.why.startswith("ZeroDivisionError in "), row.why
    assert row.why.endswith("this is a bug in seawall; please report it")
    # The test's own module is none of seawall's: the last place of ours is told.
    assert f"line {line}" not in row.why
    assert "seawall.findings.rule_runner, line " in row.why


def test_fault_in_a_parser_takes_one_file() -> None:
    def parse(data: bytes) -> int:
        if data == b"odd\n":
            raise KeyError(data)
        if data == b"foreign\n":
            raise ParseProblem(1, "a number", data)
        return len(data)

    host = parse_case(b"=== /a\nodd\n=== /b\nforeign\n=== /c\neven\n").rounds[0]
    found = list(read_each_as(host, ["/a", "/b", "/c"], parse))
    assert [one.why if isinstance(one, Unread) else one for one in found] == ["bug", "malformed", 5]
    alone = read_as(host, "/a", parse)
    assert isinstance(alone, Unread)
    assert (alone.path, alone.why) == ("/a", "bug")


def test_what_is_meant_for_the_caller_still_reaches_him() -> None:
    with pytest.raises(OutputProblem):
        own_fault.unread_of("x", OutputProblem("stdout: full"))
    assert own_fault.unread_of("x", MemoryError()).why == "failed"


def planted(function: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    """It fails as soon as it is called; ``needs_of`` sees what it saw before."""

    def fail(*_: object, **__: object) -> None:
        calls.append(function.__module__)
        raise KeyError("planted")

    fail.needs = snapshot.needs_of(function)  # type: ignore[attr-defined]
    return fail


def topics_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> list[type[Any]]:
    """What the verb asks for, of the incident."""
    asked: dict[type[Any], None] = {}
    fetch = Snapshot.fetch

    def noting(self: Snapshot, topic: type[Any]) -> Any:
        asked[topic] = None
        return fetch(self, topic)

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "fetch", noting)
        answer(words)
    return list(asked)


def answer(words: list[str]) -> int:
    arguments = parse([*words, "--from", str(INCIDENT)])
    verb = import_module(f"seawall.cli.{arguments.verb}")
    if hasattr(verb, "complete"):
        verb.complete(arguments)
    return int(verb.run(arguments))


@pytest.mark.parametrize("verb", VERBS)
def test_fault_in_any_topic_leaves_every_verb_an_answer(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = verb.split()
    needs_of: Callable[..., Any] = snapshot.needs_of

    def needs(function: Callable[..., Any]) -> Any:
        return getattr(function, "needs", None) or needs_of(function)

    topics = topics_of(words, monkeypatch)
    assert Kernel in topics
    capsys.readouterr()
    for topic in topics:
        module = sys.modules[topic.__module__]
        name = "read" if hasattr(module, "read") else "account"
        calls: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "needs_of", needs)
            patch.setattr(module, name, planted(getattr(module, name), calls))
            assert answer(words) == 0, topic
        out = capsys.readouterr().out
        if not calls:
            continue  # what it needs is not in this bundle
        if "--json" in words:
            rows = json.loads(out)["could_not_see"]
            assert any(row.get("kind") == "bug" for row in rows), topic
        else:
            assert "this is a bug in seawall" in " ".join(out.split()), topic
        assert "Traceback" not in out


def test_fault_in_what_happened_lately_leaves_the_present(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr(recent_event_sources, "events_of_lines", fail)
    arguments = parse(["memory", "--from", str(INCIDENT)])
    events = recent_event_sources.begin_recent_events(open_source(arguments), arguments).events()
    assert events.events == ()
    [fault] = events.unread
    assert fault.why == "bug"
    assert "IndexError in seawall.cli.recent_event_sources" in fault.detail
