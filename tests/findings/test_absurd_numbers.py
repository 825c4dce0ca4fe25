"""Real bundles with absurd numbers in them: zero, negative, over 64 bits, none, missing files.

Whatever a file holds, a rule and an account may say that they cannot see; a division by zero or
an overflow is a bug (``own_fault.RAISES`` is on in tests).
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.scene import Scene
from seawall.cli.topics import all_topics
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge, window_topics
from seawall.host.bundle import BundleHost, open_bundle
from seawall.host.host import JSON, Unread
from seawall.host.recording import Round
from seawall.readings import own_fault
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot

INCIDENTS: Final = Path(__file__).parents[2] / "docs/incidents"
BUNDLES: Final = (
    "container-hangs/bundle.tar.gz", "gpu-device-missing/bundle", "gpu-node-dies/bundle",
    "page-cache/bundle", "page-cache/bundle-at-the-limit",
)  # fmt: skip
VALUES: Final = (
    b"0", b"1", b"-1", b"%d" % 2**63, b"%d" % (2**64 - 1), b"%d" % 2**64, b"9" * 400, b"x", b"",
    b"nan", b"0.0",
)  # fmt: skip
ANSWERS: Final[tuple[JSON, ...]] = (
    0, -1, 2**63, 2**64, 10**400, 1e308, "x", "", None, True, [], {}, ["x"], {"a": 1},
)  # fmt: skip
NUMBER: Final = re.compile(rb"\d+(?:\.\d+)?")
RULES: Final = load_rules()
SHARE: Final = st.floats(0, 1, exclude_max=True)


def kinds_of(rounds: Iterable[Round]) -> list[list[str]]:
    """Paths, those of processes and cgroups that differ by a number or an id together."""
    groups: dict[str, list[str]] = {}
    for path in sorted({path for one in rounds for path in one.files}):
        folder, _, name = path.rpartition("/")
        kind = re.sub("[0-9]+", "N", folder)[-12:] + re.sub("[0-9a-f]{3,}", "N", name)
        groups.setdefault(kind, []).append(path)
    return list(groups.values())


@cache
def bundle(number: int) -> tuple[tuple[Round, ...], list[list[str]]]:
    """Its moments, and the kinds of their files."""
    rounds = open_bundle(str(INCIDENTS / BUNDLES[number])).answers
    return rounds, kinds_of(rounds)


@st.composite
def damaged(draw: st.DrawFn) -> list[Round]:
    recorded, kinds = bundle(draw(st.integers(0, len(BUNDLES) - 1)))
    rounds = [
        Round(dict(one.files), dict(one.names), dict(one.links), dict(one.probes))
        for one in recorded
    ]
    for _ in range(draw(st.integers(1, 6))):
        paths = draw(st.sampled_from(kinds))
        which = draw(st.sampled_from((rounds, rounds[:1], rounds[-1:])))
        damage(which, draw(st.sampled_from(paths)), draw(SHARE), draw(st.sampled_from(VALUES)))
    if draw(st.booleans()):
        probes = draw(st.sampled_from(rounds)).probes
        key = draw(st.sampled_from(sorted(probes)))
        probes[key] = put(probes[key], draw(SHARE), draw(st.sampled_from(ANSWERS)))
    return rounds


def damage(rounds: list[Round], path: str, share: float, value: bytes) -> None:
    """One number, or where nothing is put in its place all of them, or the file itself."""
    for one in rounds:
        text = one.files.get(path)
        if not isinstance(text, bytes):
            continue
        places = list(NUMBER.finditer(text))
        if share < 0.05:
            del one.files[path]
        elif share < 0.1 or not places:
            one.files[path] = value
        elif share < 0.2:
            one.files[path] = NUMBER.sub(value, text)
        else:
            place = places[int(share * len(places))]
            one.files[path] = text[: place.start()] + value + text[place.end() :]


def put(answer: JSON | Unread, share: float, value: JSON) -> JSON | Unread:
    """Somewhere inside it."""
    if isinstance(answer, dict) and answer:
        key = sorted(answer)[int(share * len(answer))]
        return {**answer, key: put(answer[key], share * 7 % 1, value)}  # type: ignore[dict-item]
    if isinstance(answer, list) and answer:
        at = int(share * len(answer))
        return [*answer[:at], put(answer[at], share * 7 % 1, value), *answer[at + 1 :]]  # type: ignore[list-item]
    return value


def look(rounds: list[Round]) -> Scene:
    """As ``why`` does, and every topic that any verb asks."""
    hosts = [BundleHost(one) for one in rounds]
    first = Snapshot(hosts[0])
    for topic in window_topics(RULES):
        first.get(topic)
    scene = Scene(first, Snapshot(hosts[-1]) if len(hosts) > 1 else None)
    for _ in judge(RULES, scene, Policy()):
        pass
    for topic in all_topics():
        scene.get(topic)
    return scene


@given(rounds=damaged())
def test_no_number_in_any_file_takes_an_answer(rounds: list[Round]) -> None:
    assert own_fault.RAISES
    look(rounds)


def test_a_machine_of_no_memory_is_unread_and_no_division_by_zero() -> None:
    rounds = [
        Round(dict(r.files), dict(r.names), dict(r.links), dict(r.probes)) for r in bundle(2)[0]
    ]
    for one in rounds:
        text = one.files["/proc/meminfo"]
        assert isinstance(text, bytes)
        one.files["/proc/meminfo"] = re.sub(rb"MemTotal: +\d+", b"MemTotal: 0", text)
    meminfo = look(rounds).get(Meminfo)
    assert isinstance(meminfo, Unread)
    assert meminfo.why == "malformed"
    assert "MemTotal" in meminfo.detail
