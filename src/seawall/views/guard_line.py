# SPDX-License-Identifier: Apache-2.0
"""What ``seawall why`` says of the guard of a host: one sentence."""

from typing import TYPE_CHECKING, Final, NamedTuple

from seawall.host.host import Unread
from seawall.readings.guard_status import GuardStatus
from seawall.views.terminal import plain
from seawall.words import counted, duration, size

if TYPE_CHECKING:  # only ``guard status`` reads them
    from seawall.readings.guard_processes import GuardProcess, GuardProcesses

OLD_SECONDS: Final = 30.0
"""It is written at every tick; the guard itself says the same number in its page."""
AHEAD_SECONDS: Final = 5.0
"""A status from further in the future than a clock is ever slewed by: the clock was set back."""
_NOTHING: Final = "acts on NOTHING"
"""So a problem of a guard begins that has nobody in its scope (``guard/tell/teller.py``)."""
_STATES: Final = {
    "peace": "in peace",
    "near": "the node comes near its limit",
    "short": "THE NODE IS SHORT OF MEMORY",
    "holding": "it waits for memory to come back",
    "blind": "it is blind",
}


def guard_words(
    status: GuardStatus | Unread, now_unix_seconds: float | None, every_seconds: float = 0.0
) -> str:
    """Nothing where there has never been a guard in this boot, or what it says is root's.

    ``every_seconds``: a record keeps what it says only so often.
    """
    if isinstance(status, Unread):
        if status.why == "malformed":
            return f"{status.path}: {status.detail or status.why}"
        return ""
    words = f"{_mode_words(status)}{_age_words(status, now_unix_seconds, every_seconds)}"
    nothing = next((one for one in status.problems if one.startswith(_NOTHING)), "")
    words += f"; {nothing} (seawall guard check --suggest-scope)" if nothing else ""
    if not status.can_kill and status.mode == "enforce":
        words += f"; IT CANNOT KILL: {status.can_kill_words}"
    if status.kills:
        kills = f"{status.kills} kill{'s' if status.kills > 1 else ''}"
        words += f"; {kills}, {size(status.returned_bytes)} came back"
    last = status.last_decision
    if last is not None:
        words += f"; last decision {last.decision} at {last.at}, {last.how}: {last.sentence}"
    return words


def memory_words(found: "GuardProcesses | Unread") -> str:
    """What the guard's processes hold together, and each of them."""
    if isinstance(found, Unread):
        return f"What its processes hold could not be seen: {found.detail or found.why}."
    held = ", ".join(map(_held_words, found.processes))
    total = found.pss_bytes
    many = counted(len(found.processes), "process", "processes")
    if isinstance(total, Unread):
        return f"What its {many} hold together could not be seen: {held}."
    return f"Its {many} hold {size(total)} together (PSS): {held}."


def _held_words(process: "GuardProcess") -> str:
    name = plain(process.name)
    if isinstance(process.pss_bytes, Unread):
        return f"{name} not seen ({process.pss_bytes.detail or process.pss_bytes.why})"
    return f"{name} {size(process.pss_bytes)}"


def _mode_words(status: GuardStatus) -> str:
    state = _STATES.get(status.state, status.state)
    mode = "enforces" if status.mode == "enforce" else "observes only"
    return f"{mode}, {state}"


def _age_words(status: GuardStatus, now: float | None, every_seconds: float) -> str:
    age = age_seconds(status, now)
    if age is None:
        return ", of when is not known"
    if age <= OLD_SECONDS:
        return ""
    if status.state == "stopped":
        return f" {duration(age)} ago"
    if age <= OLD_SECONDS + every_seconds:
        return f" {duration(age)} before; what it said later is not in this record"
    return f", but it wrote that {duration(age)} ago: it has ended, or it hangs"


def age_seconds(status: GuardStatus, now_unix_seconds: float | None) -> float | None:
    """Never below zero; None when now is not known, or the clock was set back since."""
    if now_unix_seconds is None or status.unix_seconds > now_unix_seconds + AHEAD_SECONDS:
        return None
    return max(0.0, now_unix_seconds - status.unix_seconds)


class GuardNow(NamedTuple):
    """What the guard last said of itself, and how old that is, for JSON documents."""

    status: GuardStatus
    age_seconds: float | None
    """Of what it said; from a black box: of its last tick before the moment."""
    is_old: bool
    """It has ended, or it hangs."""


def guard_now(
    status: GuardStatus | Unread, now_unix_seconds: float | None, every_seconds: float = 0.0
) -> GuardNow | None:
    """None where there is no guard, or it could not be read."""
    if isinstance(status, Unread):
        return None
    age = age_seconds(status, now_unix_seconds)
    return GuardNow(status, age, age is None or age > OLD_SECONDS + every_seconds)
