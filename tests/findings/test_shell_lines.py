"""What findings tell people to paste: it parses, and no name of a cgroup escapes from it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case

from seawall.accounts.scene import Scene
from seawall.findings.finding import Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge
from seawall.findings.shell import quote
from seawall.readings.snapshot import Snapshot

RULES_HOME = Path(__file__).parents[2] / "src/seawall/findings/rules"
RULES = {rule.module.rpartition(".")[2]: rule for rule in load_rules()}
HOSTILE = "/x'; touch /tmp/owned \x1b[31m$(id)\udcff"


def bash(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", *arguments], capture_output=True, check=False, timeout=10)


def judged(text: bytes, name: str) -> list[Judged]:
    snapshots = [Snapshot(host) for host in parse_case(text).rounds]
    scene = Scene.of(snapshots)
    return list(judge([RULES[name]], scene, Policy()))


def confirming_lines() -> set[str]:
    lines = {line for rule in RULES.values() for line in rule.confirm}
    for path in RULES_HOME.glob("*/*.cases/*.case"):
        for item in judged(path.read_bytes(), path.parent.stem):
            lines.update(item.confirm)
    return lines


def test_every_line_that_confirms_is_shell() -> None:
    lines = confirming_lines()
    assert len(lines) > len(RULES)
    for line in lines:
        parsed = bash("-n", "-c", line)
        assert parsed.returncode == 0, (line, parsed.stderr)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_quoted_is_one_word_of_the_same_bytes(text: str) -> None:
    shown = bash("-c", f"printf %s {quote(text)}")
    assert shown.stdout == text.encode()


def test_quoted_holds_no_control_character() -> None:
    assert quote(HOSTILE).isprintable()
    shown = bash("-c", f"printf %s {quote(HOSTILE)}")
    assert shown.stdout == HOSTILE.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("word", ["confirm", "remedy"])
def test_a_cgroup_cannot_break_out_of_the_line(word: str) -> None:
    folder = HOSTILE.replace("/tmp/", "").encode("utf-8", "surrogateescape")
    text = b"""why: a container named by somebody who wants to run code
=== /proc/1/mountinfo
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
=== /sys/fs/cgroup/cgroup.controllers
memory
=== /sys/fs/cgroup%(folder)s/memory.current
1000000
=== /sys/fs/cgroup%(folder)s/memory.max
1000000
=== /sys/fs/cgroup%(folder)s/memory.stat
anon 990000
inactive_file 0
active_file 0
""" % {b"folder": folder.replace(b"\xff", b"\\xff")}
    found = [item for item in judged(text, "anon_at_limit") if item.finding.verdict == "fires"]
    assert found
    lines = [line for line in getattr(found[0], word) if "/sys/fs/cgroup" in line]
    assert lines
    for line in lines:
        assert line.isprintable()
        assert "; touch" in line  # inside the quotes, where it is no command
        traced = bash("-n", "-c", line)
        assert traced.returncode == 0
    # The only folder that the shell goes to is the one with that name, which is not there.
    if word == "confirm":
        ran = bash("-c", lines[0])
        assert ran.returncode != 0
        assert b"No such file" in ran.stderr
        assert not Path("owned").exists()
