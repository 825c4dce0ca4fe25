# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay`` as text: does it decide as then, and what another policy would do."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final

from seawall.blackbox.record_times import rfc3339_of
from seawall.guard.keys import KEYS, Key
from seawall.guard.settings import Settings
from seawall.replay.compare import SILENT
from seawall.replay.incidents import Incident, WhatIf, hold_victims, in_peace, incidents
from seawall.replay.replay_results import (
    BootReplay,
    BoxReplay,
    JournalDecision,
    ReplayResult,
    ReplayVictim,
)
from seawall.version import VERSION
from seawall.views.terminal import Console, shorten_path
from seawall.words import count, size

ROWS_MOST: Final = 12
_LABEL: Final = 10
_PATH_MOST: Final = 60
_STEPS: Final = {
    "kill": "killed", "terminate": "sent SIGTERM", "freeze": "frozen", "clamp": "clamped",
    "thaw": "thawed", "unclamp": "its limit as before",
}  # fmt: skip
NO_FURTHER: Final = (
    "From {when} on this is another story: what its orders would have brought back is in no "
    "record, so whom it aims at is taken to live on, and everything else as it was."
)
NO_FURTHER_SILENT: Final = (
    "From {when} on this is another story: the record goes on with what the live orders brought "
    "back, so that nothing is decided later proves nothing."
)


def lines(replayed: BoxReplay, paper: Console) -> Iterator[str]:
    """Boot by boot, oldest first."""
    for note in replayed.notes:
        yield from paper.wrap(note, "  ", "  ")
    if not replayed.boots:
        yield "There is no frame in it yet."
    for number, boot in enumerate(replayed.boots):
        if number:
            yield ""
        yield from _boot(replayed, boot, paper)


def _boot(replayed: BoxReplay, boot: BootReplay, paper: Console) -> Iterator[str]:
    span = f"{rfc3339_of(boot.first_unix_seconds)} to {rfc3339_of(boot.last_unix_seconds)}"
    yield from _row(paper, "boot", f"{boot.boot_id[:8]}, {span}")
    yield from _row(paper, "ticks", _ticks_words(boot))
    yield from _row(paper, "live", _settings_words(boot))
    if replayed.policy is not None:
        changed = changes(boot.as_live.settings, replayed.policy)
        words = "; ".join(changed) or "the same settings"
        yield from _row(
            paper, "policy", f"{shorten_path(replayed.config_path, _PATH_MOST)}: {words}"
        )
    for note in boot.notes:
        yield from _row(paper, "note", note)
    yield ""
    yield from _agreement(boot, paper)
    found = incidents(boot)
    for number, incident in enumerate(found, start=1):
        yield ""
        yield from _incident(boot, number, incident, paper)
    if replayed.policy is not None:
        if not found:
            yield "With the other policy: nothing is decided in any burst either"
        yield from _peace(boot, paper)


def _row(paper: Console, label: str, words: str) -> Iterator[str]:
    yield from paper.wrap(words, " " * _LABEL, f"{label:<{_LABEL - 1}}")


def _ticks_words(boot: BootReplay) -> str:
    exact = sum(stretch.ticks for stretch in boot.stretches)
    words = f"{count(boot.ticks)}; {count(exact)} of them without a gap"
    words += f", in {len(boot.stretches)} burst{'s' if len(boot.stretches) != 1 else ''}"
    if boot.coarse_ticks:
        words += f"; between bursts one in ten seconds ({count(boot.coarse_ticks)})"
    return words


def _settings_words(boot: BootReplay) -> str:
    settings, start = boot.as_live.settings, boot.start
    version = f", Seawall {start.tool_version}" if start is not None else ""
    return f"{settings.mode}, in {' '.join(settings.scope) or 'nothing'}{version}"


def changes(then: Settings, now: Settings) -> list[str]:
    """Key by key what differs, as it stands in the file."""
    return [
        f"{key.name} {_value(key, now)} (live {_value(key, then)})"
        for key in KEYS
        if getattr(now, key.field) != getattr(then, key.field)
    ]


def _value(key: Key, settings: Settings) -> str:
    value: object = getattr(settings, key.field)
    if key.kind == "size" and isinstance(value, int):
        return size(value)
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value) or "nothing"


# --- as then ----------------------------------------------------------------------------------


def _agreement(boot: BootReplay, paper: Console) -> Iterator[str]:
    found = boot.compared
    if not boot.live:
        number = len(found.extra)
        words = "no decision is in its journal"
        if number:
            words += f"; the replay takes {number}: their lines may be lost"
        yield from paper.wrap(f"As live: {words}", "  ", "")
        return
    yield from paper.wrap(agreement_words(boot), "  ", "")
    for live, one, differs in found.differ[:ROWS_MOST]:
        words = f"{live.decision} at {clock(one.unix_seconds)} differs: {differs}"
        yield from paper.wrap(words, "    ", "  ")
    for live, why in found.missing[:ROWS_MOST]:
        yield from paper.wrap(_missing_words(live, why), "    ", "  ")
    for one in found.extra[:ROWS_MOST]:
        words = f"{one.verdict.decision} at {clock(one.unix_seconds)} is in no line of the journal"
        yield from paper.wrap(f"{words}: {one.verdict.sentence}", "    ", "  ")
    if found.differ or found.extra or any(why == SILENT for _, why in found.missing):
        yield from paper.wrap(f"That may be {_why_words(boot)}", "    ", "  ")


def agreement_words(boot: BootReplay) -> str:
    """``As live: 3 of 3 decisions, to the frame``."""
    same, total = len(boot.compared.same), len(boot.live)
    return f"As live: {same} of {total} decision{'s' if total != 1 else ''}, to the frame"


def _missing_words(live: JournalDecision, why: str) -> str:
    when = clock(live.unix_seconds)
    return f"{live.decision} at {when} cannot be judged again: {why} ({live.sentence})"


def _why_words(boot: BootReplay) -> str:
    ends = sorted({stretch.ends for stretch in boot.stretches if stretch.ends})
    if ends or any("missing" in note or "torn" in note for note in boot.notes):
        return f"because something is lost ({', '.join(ends) or 'frames'})"
    if boot.start is not None and boot.start.tool_version != VERSION:
        return f"because Seawall {boot.start.tool_version} judged then, and this is {VERSION}"
    return "because its settings were read anew then, or it judged with other code"


# --- one incident -----------------------------------------------------------------------------


def _incident(boot: BootReplay, number: int, incident: Incident, paper: Console) -> Iterator[str]:
    stretch = incident.stretch
    span = f"{clock(stretch.first_unix_seconds)} to {clock(stretch.last_unix_seconds)}"
    title = f"Incident {number}: {span}, ticks #{stretch.first} to #{stretch.last}"
    if stretch.ends:
        title += f" ({stretch.ends})"
    for words in paper.wrap(title, "  ", ""):
        yield paper.paint(words, "bold")
    if not incident.results:
        yield from _then(paper, "nothing was decided")
    for one in incident.results[:ROWS_MOST]:
        yield from _decided(boot, one, paper)
    yield from _more(len(incident.results))
    for unix_seconds, text in incident.kernel_kills[:ROWS_MOST]:
        yield from _then(paper, f"{clock(unix_seconds)}  the kernel: {text}")
    if incident.what_if is not None:
        yield from _what_if(incident, incident.what_if, paper)


def _then(paper: Console, words: str) -> Iterator[str]:
    yield from paper.wrap(words, " " * 14, "  ")


def _more(number: int) -> Iterator[str]:
    if number > ROWS_MOST:
        yield f"  and {number - ROWS_MOST} more with --json"


def _decided(boot: BootReplay, one: ReplayResult, paper: Console) -> Iterator[str]:
    verdict = one.verdict
    yield from _then(paper, f"{clock(one.unix_seconds)}  {verdict.decision}: {verdict.sentence}")
    told = boot.outcomes.get(verdict.decision)
    if told and verdict.orders:
        yield from paper.wrap(told, " " * 14, " " * 12 + "> ")


def _what_if(incident: Incident, found: WhatIf, paper: Console) -> Iterator[str]:
    yield "  With the other policy:"
    for words in what_if_words(incident, found):
        yield from paper.wrap(words, "      ", "    ")


def what_if_words(incident: Incident, found: WhatIf) -> Iterator[str]:
    """Sentence by sentence: the answer first, then who, then what cannot be known."""
    if found.kind == "same":
        number = len(found.results)
        yield f"the same {number} decision{'s' if number != 1 else ''} in the same ticks"
        return
    if found.kind == "silent":
        yield "nothing: it decides nothing in this time"
    elif found.parts_unix_seconds is None:
        what = "the same orders in the same ticks" if _acts(found) else "nobody is touched either"
        yield f"{what}; only what it says differs, or when"
    yield from _people(incident, found)
    for one in found.results[:ROWS_MOST]:
        yield f"{clock(one.unix_seconds)}  {one.verdict.sentence}"
    if found.parts_unix_seconds is not None:
        words = NO_FURTHER_SILENT if found.kind == "silent" else NO_FURTHER
        yield words.format(when=clock(found.parts_unix_seconds))


def _people(incident: Incident, found: WhatIf) -> Iterator[str]:
    is_observed = any(one.mode == "observe" for one in found.results)
    was_observed = any(one.mode == "observe" for one in incident.results)
    for was, would in found.both:
        lead = _lead(was.unix_seconds - would.unix_seconds)
        yield (
            f"{would.name}: {_fate(would, is_observed=is_observed)} {lead} "
            f"(live: {_fate(was, is_observed=was_observed)})"
        )
    for victim in found.spared:
        live = f"live: {_fate(victim, is_observed=was_observed)} at {clock(victim.unix_seconds)}"
        fate = "not known, for that came later" if is_after(victim, found) else "left alone"
        yield f"{victim.name}: {fate} ({live})"
    for victim in found.beside:
        at = clock(victim.unix_seconds)
        yield f"{victim.name}: {_fate(victim, is_observed=is_observed)} at {at} (live: left alone)"
    for victim in hold_victims(found.results):
        yield f"{victim.name}: stands still from {clock(victim.unix_seconds)}, until it is known"
    kills = [unix for unix, _ in incident.kernel_kills]
    acts = [one.unix_seconds for one in found.results if one.acts]
    if kills and acts and acts[0] < kills[0]:
        yield f"its first order is {kills[0] - acts[0]:.1f} s before the kernel killed"
    elif kills and not acts:
        yield f"the kernel's OOM killer is left to it, at {clock(kills[0])}"


def _acts(found: WhatIf) -> bool:
    return any(one.acts for one in found.results)


def is_after(victim: ReplayVictim, found: WhatIf) -> bool:
    """What happened to it then came when the two stories had parted."""
    parts = found.parts_unix_seconds
    return parts is not None and victim.unix_seconds > parts


def _fate(victim: ReplayVictim, *, is_observed: bool) -> str:
    step = _STEPS.get(victim.step, victim.step)
    return f"only noted as {step} (observe)" if is_observed else step


def _lead(seconds: float) -> str:
    if abs(seconds) < 0.05:
        return "at the same moment"
    return f"{abs(seconds):.1f} s {'earlier' if seconds > 0 else 'later'}"


def _peace(boot: BootReplay, paper: Console) -> Iterator[str]:
    found = in_peace(boot)
    if not found:
        return
    yield ""
    title = f"Between the bursts the other policy orders something {len(found)} times"
    yield paper.paint(title, "bold")
    words = "By one tick in ten seconds: when exactly, and whether at all, the record cannot tell."
    yield from paper.wrap(words, "  ", "  ")
    for one in found[:ROWS_MOST]:
        yield from _then(paper, f"{clock(one.unix_seconds)}  {one.verdict.sentence}")
    yield from _more(len(found))


def clock(unix_seconds: float) -> str:
    """``08:05:12.3``, UTC; the day stands above."""
    try:
        moment = datetime.fromtimestamp(unix_seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return rfc3339_of(unix_seconds)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"
