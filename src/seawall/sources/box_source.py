# SPDX-License-Identifier: Apache-2.0
"""``--from BOX --at TIME``: a moment of a black box, or of an export of one, as a source."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from seawall.accounts.scene import WINDOW_LEAST_SECONDS, Scene
from seawall.blackbox.frame import FrameHead
from seawall.blackbox.moments import (
    Moments,
    Pass,
    choose,
    in_order,
    key_before,
    passes_until,
    rounds_of,
    up_to,
)
from seawall.blackbox.reader import Box
from seawall.blackbox.record_times import MomentNames, Span, decision_of, moment_of, rfc3339_of
from seawall.host.bundle import Bundle, BundleHost
from seawall.host.host import JSON, Unread
from seawall.problems import BundleProblem, UsageProblem
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.sources.box_claims import with_claims
from seawall.sources.box_lines import (
    WEIGHTY,
    decision_time,
    frame_time,
    is_unseen,
    lines_between,
    note,
)
from seawall.sources.box_scene import NOT_RECORDED, BoxScene
from seawall.sources.source import NOTE_MOST, NOTES_MOST, Source, notes_of
from seawall.views.document import head, taken_at
from seawall.words import duration

MANIFEST_KEY: Final = "blackbox"
LATE_SECONDS: Final = 15.0
"""In peace there is a pass every 10 s: what is asked for lies in a gap when it is later."""
_LINES_SECONDS: Final = 60.0
_LINES_SHOWN: Final = 6
_UNIX_END: Final = 1e11
"""No clock of a machine is there."""


class BoxRequest(NamedTuple):
    """A moment that was asked for, and where."""

    unix_seconds: float
    where: str


class BoxSource(Source):
    """The moment is both the first look and the end of the window."""

    def __init__(
        self, moments: Moments, notes: tuple[str, ...], box: Box | None = None,
        asked_unix_seconds: float | None = None, cut: str | None = None,
    ) -> None:  # fmt: skip
        host = BundleHost(moments.known, NOT_RECORDED)
        super().__init__(host, None, live=None, notes=notes, cut=cut)
        self.moments = moments
        self.box = box
        """The whole record; None: an export has the passes alone."""
        self.asked_unix_seconds = asked_unix_seconds
        """The moment that was asked for, also where nothing was recorded."""

    def later_scene(self, seconds: float = WINDOW_LEAST_SECONDS) -> Scene:  # noqa: ARG002 - nothing to wait for
        """What is known, and windows that end at the moment or shortly before it."""
        return BoxScene(self.first, self.moments)


def box_source(path: str, at: str | None) -> BoxSource:
    """The moment ``at``, else the last one; UsageProblem."""
    box = Box.open(path)
    span = span_of(box)
    asked = BoxRequest(box_time(box, at, span), f"the black box {path}")
    passes = _readable(box, asked)
    moments = choose([*passes[:-1], *with_claims(box, passes[-1:], asked.unix_seconds)])
    events = _events(box, moments.now, asked)
    notes = (*_notes(moments, asked), *_unseen(box, at, moments.now, asked), *events)
    return BoxSource(moments, notes, box, asked.unix_seconds)


def export_source(bundle: Bundle, path: str, at: str | None) -> BoxSource:
    """The same, of what ``seawall blackbox export`` wrote."""
    passes = exported_passes(bundle, path)
    times = [one.unix_seconds for one in passes]
    ended = in_order(one for one in passes if one.boot_id == passes[-1].boot_id)[-1]
    span = Span(min(times), max(times), ended.unix_seconds)
    where = f"the export {path}"
    moment = span.end_unix_seconds if at is None else moment_of(at, span, None, where)
    moments = choose(up_to(passes, moment))
    notes = [*_notes(moments, BoxRequest(moment, where)), *notes_of(bundle)]
    return BoxSource(moments, tuple(notes[:NOTES_MOST]), cut=bundle.cut)


def exported_passes(bundle: Bundle, path: str) -> Sequence[Pass]:
    """Rounds of a bundle with what its manifest says of each; BundleProblem."""
    told = bundle.manifest.get(MANIFEST_KEY)
    rows = told.get("passes") if isinstance(told, dict) else None
    if bundle.cut and isinstance(rows, list):
        rows = rows[: len(bundle.answers)]
    if not isinstance(rows, list) or len(rows) != len(bundle.answers):
        raise BundleProblem(
            f"{path}: MANIFEST.json: expected a row of {MANIFEST_KEY}.passes a round"
        )
    passes: list[Pass] = []
    for row, round_ in zip(rows, bundle.answers, strict=True):
        match row:
            case [
                int() | float() as unix,
                int() | float() as monotonic,
                str(boot),
                bool(whole),
            ] if 0 <= unix < _UNIX_END and 0 <= monotonic < _UNIX_END:
                passes.append(Pass(float(unix), float(monotonic), boot, whole, round_))
            case _:
                raise BundleProblem(f"{path}: MANIFEST.json: {MANIFEST_KEY}.passes is malformed")
    return passes


def span_of(box: Box) -> Span:
    """Of the passes in it; UsageProblem when there is none yet."""
    times = [head.unix_seconds for boot in box.boots() for head in rounds_of(boot)]
    if not times:
        raise UsageProblem(
            f"{box.path}: no moment of the machine is in this black box yet; a guard with a "
            "black box writes one every 10 s: seawall guard status"
        )
    last = max(head.unix_seconds for head in box.heads)
    return Span(min(times), last, _end(_last_boot(box)).unix_seconds)


def whole_span(box: Box) -> Span:
    """Of all that is in it; UsageProblem when that is nothing."""
    times = [head.unix_seconds for head in box.heads]
    if not times:
        raise UsageProblem(f"{box.path}: this black box holds no frame yet")
    return Span(min(times), max(times), _end(_last_boot(box)).unix_seconds)


def _last_boot(box: Box) -> list[FrameHead]:
    """Heads of the boot that wrote last; by its clock another one may have been later."""
    return [head for head in box.heads if head.boot_id == box.heads[-1].boot_id]


def _end(heads: Sequence[FrameHead]) -> FrameHead:
    """In a burst what came half a minute before it is written last."""
    return max(heads, key=lambda head: head.monotonic_seconds)


def box_time(box: Box, at: str | None, span: Span) -> float:
    """The moment that ``at`` names; UsageProblem."""
    if at is None:
        return span.end_unix_seconds
    named = MomentNames(
        lambda name: decision_time(box, name), lambda n: frame_time(box, n), lambda s: _ago(box, s)
    )
    return moment_of(at, span, named, f"the black box {box.path}")


def _ago(box: Box, seconds: float) -> float | None:
    """As the clock was then; None: the last boot's record does not reach so far back."""
    heads = _last_boot(box)
    then = _end(heads).monotonic_seconds - seconds
    before = [head for head in heads if head.monotonic_seconds <= then]
    if not before:
        return None
    last = _end(before)
    return last.unix_seconds + (then - last.monotonic_seconds)


def box_head(name: str, box: Box, unix_seconds: float | None) -> dict[str, Any]:
    """What a document begins with: the host as it was then, and when that was."""
    one = None if unix_seconds is None else key_before(box, unix_seconds)
    host = BundleHost(one.round, NOT_RECORDED) if one else None
    kernel = Snapshot(host).get(Kernel) if host else Unread("kernel", "not_captured")
    top = head(name, kernel, None)
    moment = taken_at(unix_seconds)
    if moment is None:
        return top
    return {**top, "taken_at": moment, "unread": [n for n in top["unread"] if n != "taken_at"]}


def manifest_passes(passes: Sequence[Pass]) -> JSON:
    """Rows of an export's manifest, one for each pass, as ``exported_passes`` reads them back."""
    return [[one.unix_seconds, one.monotonic_seconds, one.boot_id, one.is_whole] for one in passes]


def _readable(box: Box, asked: BoxRequest) -> list[Pass]:
    passes = passes_until(box, asked.unix_seconds)
    if not passes:
        raise nothing_before(asked)
    return in_order(one for one in passes if one.boot_id == passes[-1].boot_id)


def nothing_before(asked: BoxRequest) -> UsageProblem:
    """No pass at that moment can be read."""
    return UsageProblem(
        f"{asked.where}: nothing before {rfc3339_of(asked.unix_seconds)} can be read: it is older "
        "than the first whole pass in it, or torn; give a later --at"
    )


def _notes(moments: Moments, asked: BoxRequest) -> list[str]:
    """What a reader has to know before believing a number."""
    now = moments.now
    notes = [f"{asked.where}, as it was at {rfc3339_of(now.unix_seconds)}"]
    late = asked.unix_seconds - now.unix_seconds
    if late > LATE_SECONDS:
        wanted = rfc3339_of(asked.unix_seconds)
        notes.append(f"nothing was recorded at {wanted}: this is {duration(late)} before it")
    if moments.base is None:
        notes.append("the last whole pass before it was lost: much of it is not known")
    elif moments.old_seconds > 1:
        when = rfc3339_of(moments.base.unix_seconds)
        notes.append(
            f"what the last light pass did not ask is of {when}, {duration(moments.old_seconds)} "
            f"before, at most{_rates(moments)}"
        )
    return notes


def _unseen(box: Box, at: str | None, now: Pass, asked: BoxRequest) -> list[str]:
    """Where a guard was killed with its recorder just after a decision."""
    decision = decision_of(at or "")
    if not decision or not is_unseen(box, decision):
        return []
    before = duration(asked.unix_seconds - now.unix_seconds)
    words = f"the look by which {decision} was taken was not recorded, and this is {before} before"
    return [f"{words} it: what the guard saw then is told by its own words alone"]


def _rates(moments: Moments) -> str:
    if moments.whole is None:
        return "; no rates of that"
    seconds = moments.whole[1].monotonic_seconds - moments.whole[0].monotonic_seconds
    return f"; rates of that are over the {duration(seconds)} until then"


def _events(box: Box, now: Pass, asked: BoxRequest) -> list[str]:
    """What the guard and the kernel said in the minute before."""
    lines = lines_between(box, asked.unix_seconds - _LINES_SECONDS, asked.unix_seconds)
    told = [line for line in lines if line.boot_id == now.boot_id and line.kind in WEIGHTY]
    return [note(line)[:NOTE_MOST] for line in told[-_LINES_SHOWN:]]
