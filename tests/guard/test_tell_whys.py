"""A decision of several steps: who lost a pod reads why, and what was done in the end."""

import json
from pathlib import Path

from tests.guard.judge_scene import CALM, done, hog, judge_of, scene, short
from tests.guard.telling import lines_of, verdict
from tests.guard.test_tell_teller import ENFORCE, Heard, kernel_lines, opened

from seawall.guard.judge.judge import Judge
from seawall.guard.tell.guard_sentences import STEPS_MOST, with_step
from seawall.guard.tell.teller import Teller
from seawall.guard.tell.termination import _WORDS_MOST
from seawall.guard.tick_facts import Group
from seawall.guard.verdict import Verdict

REASON = "ns/hog is 205 MiB over its limit of 400 MiB: it holds 600 MiB of uncounted memory"
END = "50.0 MiB left: ns/hog is frozen, and is killed"
RUNS = ENFORCE._replace(run_after_kill="/usr/local/bin/told")


def judged(judge: Judge, seconds: float, slope: float, groups: dict[str, Group]) -> Verdict:
    verdict = judge.step(short(seconds, 50, slope), groups)
    assert verdict is not None
    for one in verdict.orders:
        judge.learn(done(one), short(seconds, 50, slope))
    return verdict


def freeze_then_kill(teller: Teller) -> tuple[Verdict, Verdict]:
    """As the loop tells them: 50 MiB left, 20 MiB/s."""
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    verdicts = []
    for seconds, slope in ((1005.0, 20.0), (1005.1, 0.0)):
        verdicts.append(judged(judge, seconds, slope, groups))
        teller.verdict(verdicts[-1], judge.rest)
        for told in judge.updates(short(seconds, 50, slope), groups):
            teller.update_decision(told)
    teller.status(short(1005.2), groups, "holding", {})
    first, second = verdicts
    return first, second


def test_why_and_what_was_done_stand_everywhere(tmp_path: Path) -> None:
    aide = Heard()
    for teller in opened(tmp_path, aide, RUNS):
        first, second = freeze_then_kill(teller)
    assert [one.step for one in (*first.orders, *second.orders)] == ["freeze", "kill", "thaw"]
    (message,), (run,) = aide.asked("termination_message"), aide.asked("run")
    last = json.loads((tmp_path / "status.json").read_text())["last_decision"]
    for words in (message["words"], json.loads(run["stdin"])["sentence"], last["sentence"]):
        assert REASON in words
        assert words.endswith(f"; then: {END}")
    assert last["decision"] == first.decision == second.decision
    page = " ".join((tmp_path / "status").read_text().split())
    assert REASON in page
    assert "-> ns/hog was thawed" in page
    # A line for each step, as the judge said it: what a replay says is held against it.
    lines = [line for line in lines_of(tmp_path / "decisions.jsonl") if line["kind"] == "verdict"]
    assert [line["sentence"] for line in lines] == [first.sentence, END]
    assert [END in line for line in kernel_lines(tmp_path)].count(True) == 1


def test_of_many_long_steps_both_ends_are_read(tmp_path: Path) -> None:
    whole = ""
    for step in range(9):
        whole = with_step(whole, f"step {step}: {'x' * 600}")
        assert len(whole) <= STEPS_MOST
    assert whole.startswith("step 0: x")
    assert "; then: step 8: x" in whole
    aide = Heard()
    for teller in opened(tmp_path, aide):
        first, second = freeze_then_kill(teller)
    (message,) = aide.asked("termination_message")
    prefix = len(message["words"]) - len(f"{first.sentence}; then: {second.sentence}")
    assert prefix + STEPS_MOST <= _WORDS_MOST


def test_only_the_last_decisions_are_kept_and_the_same_words_once(tmp_path: Path) -> None:
    for teller in opened(tmp_path, None):
        for number in range(100):
            for _ in range(2):
                teller.verdict(verdict(decision=f"d-{number}", sentence="why"))
        assert teller._sentences == {f"d-{number}": "why" for number in range(92, 100)}


def test_a_step_without_a_sentence_takes_nothing_away() -> None:
    assert with_step("why", "") == "why"
    assert with_step("", "why") == "why"
