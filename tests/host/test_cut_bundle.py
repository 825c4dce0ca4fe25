"""A bundle that was cut on its way: what is whole is used, what is missing is said."""

import gzip
import io
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from seawall.accounts.scene import Scene
from seawall.cli.main import parse
from seawall.findings.blindness import not_seen
from seawall.findings.policy import Policy
from seawall.findings.rule import load_rules
from seawall.findings.rule_runner import judge
from seawall.host.bundle import Bundle, open_bundle
from seawall.host.bundle_writer import write_bundle
from seawall.host.host import BREAKS_OFF, Unread
from seawall.problems import BundleProblem
from seawall.readings.meminfo import Meminfo
from seawall.readings.process import Processes
from seawall.readings.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
VERBS = (
    "why", "why SW103", "why --whole", "why --json", "memory", "pods", "cache", "cache --dirty",
    "stacks", "gpu", "check SW101", "numbers --node", "oom predict", "oom explain",
)  # fmt: skip
UNUSABLE = ("cut short", "no MANIFEST.json", "before the first moment")


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of this machine."""
    path = tmp_path_factory.mktemp("captured") / "bundle"
    words = ["capture", "--for", "2", "-o", str(path)]
    subprocess.run([sys.executable, "-m", "seawall", *words], check=True, capture_output=True)
    return path.read_bytes()


def opened(content: bytes, tmp_path: Path) -> Bundle | str:
    """Or why not."""
    path = tmp_path / "cut"
    path.write_bytes(content)
    try:
        return open_bundle(str(path))
    except BundleProblem as problem:
        return str(problem)


def judged(bundle: Bundle) -> list[str]:
    """Verdicts, of a scene as ``why`` has it; nothing may escape."""
    first = Snapshot(bundle.rounds[0])
    last = Snapshot(bundle.rounds[-1]) if len(bundle.rounds) > 1 else None
    scene = Scene(first, last)
    items = list(judge(load_rules(), scene, Policy()))
    assert isinstance(not_seen(items, [first]), list)
    return [item.finding.verdict for item in items]


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "tar"])
def test_cut_at_any_length_is_an_answer_or_a_sentence(
    captured: bytes, tmp_path: Path, *, packed: bool
) -> None:
    whole = captured if packed else gzip.decompress(captured)
    dice = random.Random(31)
    sizes = {len(whole) * step // 50 for step in range(50)}
    sizes |= {dice.randrange(len(whole)) for _ in range(25)}
    answers: list[bool] = []
    for size in sorted(sizes):
        found = opened(whole[:size], tmp_path)
        if isinstance(found, str):
            assert any(words in found for words in UNUSABLE), (size, found)
            assert not any(answers), f"{size}: more of it gave an answer, and this gives none"
        elif found.cut is not None:
            assert "breaks off after" in found.cut
            assert ("no rates" in found.cut) == (len(found.rounds) == 1)
            if len(answers) % 4 == 0:
                verdicts = judged(found)
                assert "blind" in verdicts
        answers.append(not isinstance(found, str))
    assert sum(answers) > len(answers) / 2, "most lengths give an answer"
    everything = opened(whole, tmp_path)
    assert isinstance(everything, Bundle)
    assert everything.cut is None


def incident(tmp_path: Path) -> bytes:
    """Two passes of the incident, as this version writes them."""
    rounds = open_bundle(str(ROOT / "docs/incidents/gpu-node-dies/bundle")).answers
    out = io.BytesIO()
    write_bundle(rounds, {"tool_version": "test"}, out)
    return gzip.decompress(out.getvalue())


def test_second_pass_cut_leaves_the_first_whole(tmp_path: Path) -> None:
    whole = incident(tmp_path)
    found = opened(whole[: whole.index(b"2/answers.json") + 900], tmp_path)
    assert isinstance(found, Bundle)
    assert found.cut is not None
    assert found.cut.endswith("the second moment is missing: no rates")
    assert len(found.rounds) == 1
    assert "fires" in judged(found), "the incident is told from one moment"


def test_what_was_lost_is_not_captured_and_nothing_is_quiet_about_it(tmp_path: Path) -> None:
    whole = incident(tmp_path)
    cut = whole[: whole.index(b"1/files/proc/1/") - 200]
    found = opened(cut, tmp_path)
    assert isinstance(found, Bundle)
    assert "of the first moment a part is missing" in str(found.cut)
    first = Snapshot(found.rounds[0])
    assert isinstance(first.get(Meminfo), Meminfo), "the node's own files come first"
    processes = first.get(Processes)
    assert not isinstance(processes, Unread)
    assert all(one.detail.endswith(BREAKS_OFF) for one in processes.unread)
    by_id = {i.id: i.finding for i in judge(load_rules(), Scene(first), Policy())}
    assert by_id["SW109"].verdict == "blind", "threads of processes whose files are lost"
    assert by_id["SW104"].verdict != "blind", "meminfo alone"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_answers_from_a_cut_bundle(
    verb: str, captured: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut"
    for share in (0.4, 0.6, 0.8, 0.95):
        path.write_bytes(captured[: int(share * len(captured))])
        arguments = parse([*verb.split(), "--from", str(path)])
        module = import_module(f"seawall.cli.{arguments.verb}")
        if hasattr(module, "complete"):
            module.complete(arguments)
        assert module.run(arguments) == 0
        words = " ".join(capsys.readouterr().out.split())
        if not verb.startswith("check"):
            assert "the bundle breaks off after" in words
        assert "bug in seawall" not in words


def test_more_files_than_told_is_no_cut(tmp_path: Path) -> None:
    whole = incident(tmp_path)
    assert b'"files": 81' in whole
    found = opened(whole.replace(b'"files": 81', b'"files": 11'), tmp_path)
    assert isinstance(found, str)
    assert "files in it" in found


def test_damage_that_is_no_cut_is_refused(captured: bytes, tmp_path: Path) -> None:
    middle = len(captured) // 2
    found = opened(captured[:middle] + bytes(64) + captured[middle + 64 :], tmp_path)
    assert isinstance(found, str)
