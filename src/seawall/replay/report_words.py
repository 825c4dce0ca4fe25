# SPDX-License-Identifier: Apache-2.0
"""What a report says in sentences: the verdict, and what happened at each occasion."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from seawall.replay.report_limits import STUCK
from seawall.replay.report_model import HARM, KILLED, EndedWorkload, GuardReport, Occasion
from seawall.words import count, counted, duration, first, percent, size, times

_NAMES_SHOWN: Final = 4
_WHOLE_SHARE: Final = 0.9
_STEPS: Final = {
    "kill": ("killed", "would have killed"),
    "terminate": ("sent SIGTERM to", "would have sent SIGTERM to"),
    "freeze": ("froze", "would have frozen, then killed"),
    "clamp": ("lowered the limit of", "would have lowered the limit of"),
    "unclamp": ("put back the limit of", "would have put back the limit of"),
}


def verdict(report: GuardReport) -> list[str]:
    """The first sentences: what an engineer wants to know before anything else."""
    would = [one for one in report.occasions if one.kind == "would"]
    did = [one for one in report.occasions if one.kind == "did"]
    still = [one for one in report.occasions if one.kind in ("refused", "held")]
    where = f"{counted(len(report.nodes), 'node')}, {_span(report)}"
    lines = []
    if not report.occasions:
        lines.append(f"{where}: it neither acted nor would have.")
    if would:
        lines.append(f"{where}: it would have acted {times(len(would))}. {_came(would)}.")
    if did:
        lines.append(f"{where}: it acted {times(len(did))}. {_came_of_deeds(did)}.")
    if still:
        lines.append(f"{times(len(still)).capitalize()} it was short and chose nobody: "
                     f"{_parts(_refusals(still))}.")  # fmt: skip
    if report.reported:
        lines.append(_reports_words(report))
    return lines


def _reports_words(report: GuardReport) -> str:
    stuck = sum(one.trigger == STUCK for one in report.reported)
    over = len(report.reported) - stuck
    parts = [f"{counted(over, 'report')} of workloads over their own limits"] if over else []
    parts += [f"{counted(stuck, 'report')} of workloads stuck at theirs"] if stuck else []
    return f"{' and '.join(parts)}, for which nobody would be killed."


def _span(report: GuardReport) -> str:
    """How long was asked for, and how much of it any record reaches back."""
    asked = report.until_unix_seconds - report.since_unix_seconds
    begins = [n.first_unix_seconds for n in report.nodes if n.first_unix_seconds is not None]
    known = report.until_unix_seconds - min(begins, default=report.until_unix_seconds)
    if known >= asked * _WHOLE_SHARE:
        return duration(asked)
    return f"{duration(asked)}, of which at most the last {duration(max(0.0, known))} are recorded"


def _came(some: Sequence[Occasion]) -> str:
    """``5 times the kernel killed 4 to 31 s later (12 it would have spared), ...``."""
    by = Counter(one.ending for one in some)
    killed = [one for one in some if one.ending in KILLED]
    died = [one.truth.died_seconds or 0.0 for one in some if one.ending == "died"]
    parts = []
    if killed:
        seconds = _range(list(map(first_kill, killed)))
        parts.append(f"{times(len(killed))} the kernel killed {seconds} later{_spared(killed)}")
    if died:
        parts.append(f"{times(len(died))} the node died {_range(died)} later")
    if by["kernel_before"]:
        parts.append(f"{times(by['kernel_before'])} the kernel had killed before it decided")
    wrong = sum(one.judgement == "wrong" for one in some)
    if wrong:
        parts.append(f"{times(wrong)} nothing happened: it would have been wrong")
    doubtful = sum(one.judgement == "doubtful" for one in some)
    if doubtful:
        parts.append(f"{times(doubtful)} of these the node recovered although whom it meant "
                     "lives: doubtful")  # fmt: skip
    if by["ended"]:
        parts.append(f"{times(by['ended'])} the workload ended by itself")
    rest = by["no_kill"] + by["unknown"] + by["recovered"] - wrong
    if rest:
        parts.append(f"{times(rest)} what came of it is not known")
    return _parts(parts)


def _came_of_deeds(some: Sequence[Occasion]) -> str:
    by = Counter(one.judgement for one in some)
    back = sum(one.returned_bytes or 0 for one in some)
    told = [one for one in some if one.returned_bytes is not None]
    foretold = sum(t.predicted_bytes for one in told for t in one.targets)
    parts = []
    if by["worked"]:
        parts.append(f"{times(by['worked'])} memory came back and the kernel killed nobody")
    after = [one for one in some if one.ending in KILLED]
    if after:
        parts.append(f"{times(len(after))} the kernel killed as well{_spared(after)}")
    if died := sum(one.ending == "died" for one in some):
        parts.append(f"{times(died)} the node died")
    if by["too_late"]:
        parts.append(f"{times(by['too_late'])} the kernel had killed before")
    rest = len(some) - by["worked"] - len(after) - died - by["too_late"]
    if rest > 0:
        parts.append(f"{times(rest)} what came of it is not known")
    if foretold > 0:
        parts.append(f"{size(back)} came back of {size(foretold)} foretold")
    return _parts(parts)


def _refusals(some: Sequence[Occasion]) -> list[str]:
    by = Counter(one.ending for one in some)
    killed = sum(by[ending] for ending in (*KILLED, "kernel_before"))
    parts = []
    if by["died"]:
        parts.append(f"{times(by['died'])} the node died")
    if killed:
        parts.append(f"{times(killed)} the kernel killed")
    if by["recovered"]:
        parts.append(f"{times(by['recovered'])} the node recovered by itself")
    rest = len(some) - by["died"] - killed - by["recovered"]
    return [*parts, f"{times(rest)} what came of it is not known"] if rest else parts


def _spared(some: Sequence[Occasion]) -> str:
    """How many workloads died that it had not chosen."""
    others = sum(not kill.is_target for one in some for kill in one.node_kills)
    unnamed = sum(one.truth.unnamed for one in some)
    parts = []
    if others:
        parts.append(f"{count(others)} workloads that it had not chosen" if others > 1
                     else "1 workload that it had not chosen")  # fmt: skip
    if unnamed:
        parts.append(f"{counted(unnamed, 'process', 'processes')} of which no record tells whose")
    return f" ({'; '.join(parts)})" if parts else ""


def first_kill(occasion: Occasion) -> float:
    """Seconds from the decision to the first kill of the kernel after it."""
    after = [kill.seconds for kill in occasion.node_kills if kill.seconds >= 0]
    return min(after, default=max(0.0, occasion.truth.unnamed_seconds))


def _range(seconds: Sequence[float]) -> str:
    least, most = min(seconds), max(seconds)
    one, other = brief(least), brief(most)
    return f"{one} s" if one == other else f"{one} to {other} s"


def brief(seconds: float) -> str:
    """Seconds as text, with one decimal below ten: ``0.4``, ``31``."""
    return f"{seconds:.1f}" if abs(seconds) < 9.95 else f"{seconds:.0f}"


def what_happened(occasion: Occasion) -> str:
    """One or two sentences, of what the records tell and no more."""
    truth = occasion.truth
    kills = killed_words(occasion.node_kills, truth.unnamed, truth.unnamed_seconds)
    match occasion.ending:
        case "died":
            words = f"the node went silent {brief(truth.died_seconds or 0)} s later and booted anew"
            return f"{words}: THE NODE DIED{f'; {kills}' if kills else ''}"
        case "kernel_same" | "kernel_others" | "kernel_somebody" | "kernel_before":
            return f"{kills}{_after_words(occasion)}"
        case "ended":
            gone = f"{brief(truth.ended_seconds or 0)} s later"
            return f"{_targets(occasion)} was gone {gone}; no kill of the kernel is recorded"
        case "recovered":
            back = f"{brief(truth.recovered_seconds or 0)} s later"
            return f"the kernel killed nobody; the node was not short any more {back}"
        case "no_kill":
            seen = f"of the {brief(truth.seen_seconds)} s after it that are recorded"
            return f"no kill of the kernel in any {seen}; how it ended is not known"
    return "not known: no record tells"


def _after_words(occasion: Occasion) -> str:
    truth = occasion.truth
    if truth.recovered_seconds is None:
        return ""
    words = f"; the node was not short any more {brief(truth.recovered_seconds)} s later"
    if occasion.targets and truth.is_alive and not any(kill.is_target for kill in truth.kills):
        words += f", and {_targets(occasion)} lived on"
    return words


def killed_words(kills: Sequence[EndedWorkload], unnamed: int, unnamed_seconds: float) -> str:
    """``the kernel killed ns/a/c 4.1 s later and ns/b/c 0.3 s before``."""
    rows = [f"{kill.name} {_when(kill.seconds)}" for kill in kills]
    if unnamed:
        many = f"{counted(unnamed, 'process', 'processes')} {_when(unnamed_seconds)}"
        rows.append(f"{many} (whose, no record tells)")
    return f"the kernel killed {first(rows, _NAMES_SHOWN)}" if rows else ""


def _when(seconds: float) -> str:
    return f"{brief(-seconds)} s before it" if seconds < 0 else f"{brief(seconds)} s later"


def judgement_sentence(occasion: Occasion) -> str:
    """What follows from it for the guard; empty: nothing does."""
    names = _targets(occasion)
    match occasion.judgement:
        case "wrong":
            return f"WOULD HAVE BEEN WRONG: {names} would have ended for nothing"
        case "doubtful":
            return f"doubtful: the node recovered without the end of {names}"
        case "too_late":
            return "too late: the kernel was faster"
        case "in_time":
            return f"in time: {brief(margin(occasion))} s before it"
        case "before_a_kill":
            before = brief(margin(occasion))
            return f"{before} s before that; why the kernel killed is in no record"
    if occasion.kind in ("refused", "held"):
        if occasion.ending in HARM:
            return "it did not prevent that: without proof it chooses nobody"
        return ""
    return "whether it was right cannot be told" if occasion.judgement == "unknown" else ""


def margin(occasion: Occasion) -> float:
    """Seconds from the decision to what happened first."""
    if occasion.ending == "died":
        died = occasion.truth.died_seconds or 0.0
        return min([died, *(k.seconds for k in occasion.node_kills if k.seconds >= 0)])
    return first_kill(occasion)


def did_words(occasion: Occasion) -> list[str]:
    """What it did to whom, or would have."""
    at = 0 if occasion.kind == "did" else 1
    return [
        f"{_STEPS.get(target.step, ('acted on', 'would have acted on'))[at]} {target.name}"
        + (f", {size(target.predicted_bytes)} should come back" if target.predicted_bytes else "")
        for target in occasion.targets
    ]


def outcome_words(occasion: Occasion) -> str:
    """How fast, how many processes, and what came back against what was foretold."""
    done = [one for one in occasion.done if not one.is_observed and one.aim.step != "thaw"]
    parts = [f"{one.aim.step} of {one.aim.name} failed: {one.problem or 'no reason was given'}"
             for one in done if not one.is_done]  # fmt: skip
    fine = [one for one in done if one.is_done]
    if fine:
        fast = max(one.first_action_seconds for one in fine)
        ended = sum(one.processes for one in fine if one.aim.step == "kill")
        parts.append(f"first act {fast * 1000:.0f} ms after the order")
        parts += [f"{counted(ended, 'process', 'processes')} killed"] if ended else []
    predicted = sum(target.predicted_bytes for target in occasion.targets)
    if occasion.returned_bytes is not None:
        share = f", {percent(occasion.returned_bytes / predicted)} of it" if predicted else ""
        parts.append(f"{size(occasion.returned_bytes)} came back{share}")
    return "; ".join(parts)


def _targets(occasion: Occasion) -> str:
    return first([target.name for target in occasion.targets], 2) or "nobody"


def _parts(parts: Sequence[str]) -> str:
    text = ", ".join(parts) or "what came of it is not known"
    return text[0].upper() + text[1:]
