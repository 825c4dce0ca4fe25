# SPDX-License-Identifier: Apache-2.0
"""Words for what happens to the guard, and for the lines of the logs.

The sentence of a decision is the judge's own.
"""

import os
from collections.abc import Sequence
from typing import Final

from seawall.actions.orders import Outcome
from seawall.guard.handover import REPLACED
from seawall.guard.tell.plain import moment
from seawall.guard.verdict import Verdict
from seawall.version import VERSION
from seawall.words import size

AIDE_LOST: Final = (
    "its aide is gone: no self-test, no command after a kill, no termination message, no textfile"
)
DATAGRAM_WAITS: Final = (
    "datagram_to has changed: nothing goes to the old address, and to the new one from the next "
    "start on"
)
WATCHER_LOST: Final = (
    "the watcher is gone: who holds uncounted memory is not known, so nobody is "
    "blamed for it; nor who new workloads are: they are left alone for a minute, then only paths, "
    "scope and oom_score_adj protect"
)
WATCHERS_SPENT: Final = "its watchers ended one after the other, and it can start no further one"
RECORDER_LOST: Final = (
    "its recorder is gone: nothing is written to the black box until the next one writes, number "
    "{replaced} of {most} at most"
)
RECORDERS_SPENT: Final = (
    "its recorder is gone again, and the next one is the last: number {replaced} of {most}"
)
RECORDERS_OVER: Final = (
    "its recorders ended one after the other, and it can start no further one: nothing is written "
    "to the black box"
)
NO_BLACKBOX: Final = 'blackbox = ""'
SECOND_HAS_NONE: Final = "the other guard has it"
AFRESH: Final = "the node is in peace: it starts afresh, to have all of its parts again"
STOPPED: Final = "stopped; what it had changed is put back"
STEPS_MOST: Final = 800
"""Characters of one decision: a termination message takes 1,024, with who did it and when."""
_STEP_MOST: Final = 300
_STEPS: Final = {
    "freeze": ("froze", "would have frozen"),
    "thaw": ("thawed", "would have thawed"),
    "terminate": ("asked to end", "would have asked to end"),
    "kill": ("killed", "would have killed"),
    "clamp": ("lowered the limit of", "would have lowered the limit of"),
    "unclamp": ("put back the limit of", "would have put back the limit of"),
}


def started(mode: str, scope: tuple[str, ...], version: str) -> str:
    """The sentence of a guard that is ready: its version, and what it may do where."""
    return f"version {version} started, {_may(mode, scope)}"


def reloaded(mode: str, scope: tuple[str, ...]) -> str:
    """What holds from here on."""
    return f"the configuration was read anew, {_may(mode, scope)}"


def _may(mode: str, scope: tuple[str, ...]) -> str:
    what = "ENFORCE: it may kill" if mode == "enforce" else "observe: it never kills"
    return f"mode {what}; scope {' '.join(scope) or 'nothing'}"


def not_reloaded(why: str) -> str:
    """The old configuration goes on."""
    return f"the configuration was not taken, the old one stays: {why}"


def waits_for_reload(keys: Sequence[str]) -> str:
    """A file that changed by itself makes nobody do more than before."""
    return (
        f"the changed file waits for a reload ({', '.join(keys)}: it would do more than now), the "
        "old configuration stays: systemctl reload seawall-guard, or SIGHUP"
    )


def config_unwatched(why: str) -> str:
    """A change is told by SIGHUP alone."""
    return f"a change of its file is not noticed by itself, only at a reload: {why}"


def braked(why: str) -> str:
    """Of a file that is not understood ``mode`` is, and says what does no harm."""
    return (
        'it observes and never kills, for the file says mode = "observe"; of the rest of the '
        f"configuration nothing was taken, the old one stays: {why}"
    )


def brake_on(path: str) -> str:
    """Somebody disarms it from outside."""
    return f"the brake is on ({path}): it observes until that file is gone"


def brake_since(unix_seconds: float, path: str) -> str:
    """Why it observes although its file says otherwise."""
    return f"brake: on since {moment(unix_seconds)} ({path})"


def brake_off(mode: str) -> str:
    """Its own file counts again."""
    return f"the brake is off: its mode is {mode} again, as its own file says"


def other_version(who: str, version: str) -> str:
    """A process of ours that was started from other files than this guard."""
    return f"{who} is of version {version}, this guard of {VERSION}: {REPLACED}"


def watcher_hung(why: str) -> str:
    """Found alive, and of no use."""
    return f"the watcher hangs: {why}; it is killed, and another one takes its place"


def recorder_hung(why: str) -> str:
    """Found alive, and of no use."""
    return f"its recorder hangs: {why}; it is killed, and another one takes its place"


def aide_hung(why: str) -> str:
    """Found alive, and of no use."""
    return f"its aide hangs: {why}; it is killed"


def self_test_failed(why: str) -> str:
    """The sentence of a self-test that failed: the guard cannot kill, and why."""
    return f"IT CANNOT KILL: {why}"


def lock_held(pid: int) -> str:
    """The sentence of a second guard, which only observes; ``pid``: of the first, 0: unknown."""
    who = f" (pid {pid})" if pid > 0 else ""
    return f"another guard{who} holds the lock: this one observes only"


def decided(verdict: Verdict, how: str) -> str:
    """Id and sentence; the judge's words say why nothing is done."""
    words = verdict.sentence or verdict.refused or verdict.trigger
    if how == "observed":
        words = f"(observing only) {words}"
    return f"{verdict.decision}: {words}"


def with_step(before: str, sentence: str) -> str:
    """A decision's sentences so far, and that of its next step.  Only the first one says why, the
    last one what is done in the end: what has no room goes from between them.
    """
    if not before or before.endswith(sentence):
        return before or sentence
    last = f"; then: {sentence[:_STEP_MOST]}"
    return before[: STEPS_MOST - len(last)] + last


def outcome_sentence(outcome: Outcome) -> str:
    """What was done to whom."""
    order = outcome.order
    done, would = _STEPS[order.step]
    if outcome.is_observed:
        return f"{would} {order.target.name}" + (f"; {outcome.problem}" if outcome.problem else "")
    if not outcome.is_done and not outcome.processes:
        why = outcome.problem or "not done"
        return f"{order.step} of {order.target.name} failed: {why}"
    words = f"{done} {order.target.name}"
    if outcome.processes:
        words += f", {outcome.processes} process{'es' if outcome.processes > 1 else ''}"
    words += f", first act after {outcome.first_action_seconds * 1000:.0f} ms"
    if outcome.left:
        words += f"; {outcome.left} stuck in the kernel"
    return f"{words}; {outcome.problem}" if outcome.problem else words


def for_the_job(outcome: Outcome, sentence: str, at: str) -> str:
    """For the job's own output and its AdminComment: the same, and on which node."""
    return f"{os.uname().nodename}: {for_the_container(outcome, sentence, at)}"


def for_the_container(outcome: Outcome, sentence: str, at: str) -> str:
    """For ``kubectl describe pod``: who did it, when, why, and under which id to look."""
    order = outcome.order
    did = "Sent SIGTERM" if order.step == "terminate" else "Killed"
    words = f"{did} by seawall guard at {at} (decision {order.decision}, {order.why})"
    if order.predicted_bytes:
        words += f" to get back {size(order.predicted_bytes)} of {order.target.name}"
    return f"{words}: {sentence}" if sentence else f"{words}."
