# SPDX-License-Identifier: Apache-2.0
"""What a watcher does next, and what it has learned: a state machine without a machine.

The loop around it (``memory --watch``, the guard) reads the ledger, calls ``see``, does what
the order says and gives what the tracer found to ``learn``.  What was learned is

* ``live``: page frames are known, so another look tells what is left of it.  It rises only
  while it is traced, and together by no more than the ledger saw uncounted memory grow: with the
  ledger's error in what is likely, without it in what is certain.
* ``inherited``: from before a restart.  Frames are not known, so together it is never more
  than what uncounted memory is over what it was before (``base``), and never rises; certain it is
  for a short while (``Inherited``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.claim import RESIDUAL
from seawall.accounts.tracing.caps import Part, capped, certain_of
from seawall.accounts.tracing.trace_rows import TracedRow
from seawall.accounts.watch.tracing_pace import Falls, Growth, LedgerMoment
from seawall.accounts.watch.watched_claims import (
    ClaimPlace,
    Key,
    as_told,
    draft_of,
    key_of,
    merged,
    tellable,
    worth,
)
from seawall.readings.saved_claims import SavedClaim, SavedClaims

# Claims of an earlier watcher: their frames are not known, so nobody can look again.
#
# What it learned is certain for as long as a guard needs to come back when it was killed in the
# middle of an emergency; then it is told on, and proves nothing.

INHERITED_SECONDS: Final = 120.0
"""After it was learned, on the wall clock, which alone goes on over a restart."""
_SET_BACK: Final = 5.0
"""By so much a clock that is kept right may be set back."""
READ_SECONDS: Final = 900.0
"""For who only tells what stands in the file: its watcher looks once in five minutes where nothing
grows, and writes nothing while memory is short."""


class Inherited:
    """Such claims; when it is, is told by whoever knows both clocks."""

    def __init__(self, claims: tuple[SavedClaim, ...], certain_seconds: float) -> None:
        self._claims = claims
        self._certain_seconds = certain_seconds
        self._offset: float | None = None
        """Of the wall clock to the monotonic one.  Set once: a jump later changes nothing."""

    @property
    def claims(self) -> tuple[SavedClaim, ...]:
        """As they stand; nothing is certain before the time is told."""
        return self._claims if self._offset is not None else tuple(map(_told_on, self._claims))

    def set_clock(self, seconds: float, unix_seconds: float) -> None:
        """What both clocks say now; a wall clock at 0 is none."""
        if self._offset is None and unix_seconds > 0:
            self._offset = unix_seconds - seconds
            self.age(seconds)

    def age(self, seconds: float) -> None:
        """Take certainty from the old ones.  One from the future is of a clock that jumped."""
        if self._offset is not None:
            now = seconds + self._offset
            self._claims = tuple(
                claim if -_SET_BACK <= now - claim.learned_at_unix_seconds <= self._certain_seconds
                else _told_on(claim)
                for claim in self._claims
            )  # fmt: skip

    def fell(self, fall_bytes: int) -> None:
        """Who gave it back is not known: nobody is certain to hold it still."""
        self._claims = tuple(
            replace(claim, least_bytes=max(0, claim.least_bytes - fall_bytes))
            for claim in self._claims
        )

    def become(self, claims: tuple[SavedClaim, ...]) -> None:
        """What fits the ledger of now, or what a tracer told that is gone."""
        self._claims = claims

    @property
    def raw(self) -> tuple[SavedClaim, ...]:
        """The claims with what was certain when they were learned, however old they are."""
        return self._claims


def _told_on(claim: SavedClaim) -> SavedClaim:
    return replace(claim, least_bytes=0)


LOOK_EVERY_SECONDS: Final = 10.0
"""While it traces."""
RELOOK_EVERY_SECONDS: Final = 300.0
"""While it does not, and holds claims."""

Step: TypeAlias = Literal["arm", "disarm", "look"]


class MemoryWatch:
    """What one watcher knows of who took uncounted memory: traced, saved and inherited claims."""

    def __init__(
        self,
        kept: SavedClaims | None = None,
        growth: Growth | None = None,
        *,
        look_every_seconds: float = LOOK_EVERY_SECONDS,
        now_unix_seconds: float = 0.0,
        certain_seconds: float = INHERITED_SECONDS,
    ) -> None:
        """``look_every_seconds``: while it traces.  ``now_unix_seconds``: the wall clock; 0 where
        it is not known before the first place is told.  ``certain_seconds``: what is inherited is
        certain for so long after it was learned.
        """
        self._look_every = look_every_seconds
        self._now = now_unix_seconds
        known = kept if kept and kept.claims else None
        self.growth = growth or Growth()
        self.base_bytes: int | None = known.base_residual_bytes if known else None
        """Uncounted memory apart from what is claimed; None while nothing is."""
        self._inherited = Inherited(merged(known.claims) if known else (), certain_seconds)
        self.live: tuple[SavedClaim, ...] = ()
        self._falls = Falls(known.residual_bytes if known else None)
        self._floors = Floors()
        self._low: int | None = None
        """The least that uncounted memory was without live claims, since it was armed; None: it is
        not.  Whoever gave back meanwhile must not hide what was taken since."""
        self._slack = 0
        """Of the ledger's error: what was claimed beyond what was seen to grow."""
        self._slack_now = 0
        self._looked = 0.0

    @property
    def is_armed(self) -> bool:
        """Whether the tracer should run now."""
        return self._low is not None

    @property
    def inherited(self) -> tuple[SavedClaim, ...]:
        """What an earlier watcher told."""
        return self._inherited.claims

    @property
    def claims(self) -> tuple[SavedClaim, ...]:
        """Everything, largest first; one for each holder and kind."""
        return merged((*self.live, *self.inherited))

    def see(self, moment: LedgerMoment) -> tuple[Step, ...]:
        """What follows from one more look at the ledger, in this order."""
        self._inherited.set_clock(moment.seconds, self._now)
        self._inherited.age(moment.seconds)
        fell = self._falls.see(moment.residual_bytes, moment.error_bytes)
        if fell:
            self._floors.fell(fell)
            self._inherited.fell(fell)
        is_armed = self.growth.see(moment)
        self._fit_inherited(moment)
        if is_armed and self._low is None:
            self._arm(moment)
            return ("arm",)
        if self._low is not None and not is_armed:
            return ("look", "disarm")
        if not self.live:
            self._note_low(moment)
        since = moment.seconds - self._looked
        due = since >= (self._look_every if is_armed else RELOOK_EVERY_SECONDS)
        return ("look",) if (is_armed and due) or (self.live and (due or fell)) else ()

    def learn(self, moment: LedgerMoment, rows: Iterable[TracedRow], place: ClaimPlace) -> None:
        """A look of the tracer, and the moment that followed it."""
        self._looked = moment.seconds
        self._inherited.set_clock(moment.seconds, place.unix_seconds)
        # While it is paused nothing rises, and what fell is taken off the floors.
        over = sum(claim.bytes for claim in self.live)
        if self._low is not None:
            over = moment.residual_bytes - self._low
        inside = [row for row in rows if row.within == RESIDUAL]
        drafts = [
            draft_of(row, place, floor)
            for row, floor in zip(inside, self._floors.under(inside, over), strict=True)
        ]
        claimed = {key_of(claim): claim for claim in self.live}
        room = _Room(0, None)
        if self._low is not None:
            # What is claimed together is what uncounted memory has grown to over the low point.
            seen = over - sum(_had(draft, claimed) for draft in drafts)
            room = _Room(max(0, seen + max(0, moment.error_bytes - self._slack)), seen)
        risen, self.live = _risen(drafts, claimed, room, [row.held_bytes for row in inside])
        if room.seen is not None:
            self._slack_now = min(max(0, risen - room.seen), moment.error_bytes)
            self._note_low(moment)
        self._floors.learn({key_of(claim): claim.least_bytes for claim in self.live})
        self._fit_inherited(moment)
        self._set_base(moment)

    def disarmed(self) -> None:
        """The tracer is paused: what is known stays."""
        self._low = None
        self._floors.pause()
        self._slack = self._slack + self._slack_now if self.live else 0
        self._slack_now = 0

    def drop_tracer(self) -> None:
        """The tracer is gone with its frames: what it told is now inherited."""
        self._inherited.become(merged((*self.live, *self._inherited.raw)))
        self.live = ()
        self.disarmed()
        self._floors.forget()

    def saved_claims(self, moment: LedgerMoment, place: ClaimPlace, blind: str = "") -> SavedClaims:
        """What goes into the file."""
        self._inherited.set_clock(moment.seconds, place.unix_seconds)
        base = self.base_bytes if self.base_bytes is not None else moment.residual_bytes
        return SavedClaims(
            boot_id=place.boot_id,
            written_at_unix_seconds=place.unix_seconds,
            base_residual_bytes=base,
            residual_bytes=moment.residual_bytes,
            blind=blind,
            claims=tuple(map(as_told, filter(tellable, self.claims))),
        )

    def _arm(self, moment: LedgerMoment) -> None:
        self._low = moment.residual_bytes - sum(claim.bytes for claim in self.live)
        self._looked = moment.seconds
        if self.base_bytes is None:
            self.base_bytes = moment.residual_bytes

    def _note_low(self, moment: LedgerMoment) -> None:
        without = moment.residual_bytes - sum(claim.bytes for claim in self.live)
        if self._low is not None and without < self._low - moment.error_bytes:
            self._low = without
            self._keep_slack(moment.error_bytes)  # it is in the low point from here on

    def _keep_slack(self, most_bytes: int) -> None:
        """The error is granted once, not again after every change of the low point."""
        self._slack = min(self._slack + self._slack_now, most_bytes)
        self._slack_now = 0

    def _fit_inherited(self, moment: LedgerMoment) -> None:
        """What fell does not come back: nobody saw it being taken again."""
        raw = self._inherited.raw
        if not raw or self.base_bytes is None:
            return
        over = moment.residual_bytes - self.base_bytes
        over -= sum(claim.bytes for claim in self.live)
        _, fitted = _risen(raw, {}, _Room(max(0, over) + moment.error_bytes, over))
        # Within the error there may be nothing at all, unless nothing has fallen.
        least = 0 if over >= sum(claim.bytes for claim in raw) else moment.error_bytes
        self._inherited.become(
            tuple(c for c in fitted if c.least_bytes or min(over, c.bytes) > least)
        )

    def _set_base(self, moment: LedgerMoment) -> None:
        if self.base_bytes is None or self._inherited.raw:
            return
        held = sum(claim.bytes for claim in self.live)
        # The frames are still held, so whatever else fell was of others.
        self.base_bytes = min(self.base_bytes, moment.residual_bytes - held)
        if not self.live and self._low is None:
            self.base_bytes = None


class _Room(NamedTuple):
    """How much more the claims may be together."""

    bytes: int
    """With the error of the ledger."""
    seen: int | None
    """Without it, below 0 where less grew than is claimed; None: nothing was followed."""


def _had(draft: SavedClaim, claimed: Mapping[Key, SavedClaim]) -> int:
    """What was claimed of it before and is still there."""
    before = claimed.get(key_of(draft))
    return 0 if before is None else min(before.bytes, draft.bytes)


def _risen(
    drafts: Sequence[SavedClaim], claimed: Mapping[Key, SavedClaim], room: _Room,
    held: Sequence[int] = (),
) -> tuple[int, tuple[SavedClaim, ...]]:  # fmt: skip
    """The claims such that together they are over ``claimed`` by the room at most; by how
    much they are.  ``held``: of each, what is held and may be what grew, whoever has it.
    """
    held = held or [0] * len(drafts)
    leasts = _leasts(list(zip(drafts, held, strict=True)), claimed, room.seen)
    had = [_had(draft, claimed) for draft in drafts]
    parts = [
        Part(max(0, least - old), draft.bytes - old, draft.most_bytes - old)
        for draft, old, least in zip(drafts, had, leasts, strict=True)
    ]
    cut = capped(parts, room.bytes)
    fitted = [
        replace(
            draft, bytes=old + part.best, least_bytes=min(least, old + part.least),
            most_bytes=old + part.most,
        )
        for draft, old, part, least in zip(drafts, had, cut, leasts, strict=True)
    ]  # fmt: skip
    return sum(part.best for part in cut), tuple(filter(worth, fitted))


def _leasts(
    drafts: Sequence[tuple[SavedClaim, int]], claimed: Mapping[Key, SavedClaim], seen: int | None
) -> list[int]:
    """What is certain of each: what was, as far as it still is, and of the rest what the growth
    leaves if any one of them took nothing.  What was claimed without being certain is no
    growth of others, and may have been its own.
    """
    had, more, own = [], [], 0
    for draft, held in drafts:
        before = claimed.get(key_of(draft))
        certain = 0 if before is None else min(before.least_bytes, draft.least_bytes)
        new = max(draft.least_bytes, min(held, draft.bytes)) - certain
        had.append(certain)
        more.append(new)
        own += min(new, _had(draft, claimed) - certain)
    room = 0 if seen is None else seen + own
    return [
        min(draft.least_bytes, old + new)
        for (draft, _), old, new in zip(drafts, had, certain_of(more, room), strict=True)
    ]


def fitted_to(
    kept: SavedClaims, residual_bytes: int, error_bytes: int, now_unix_seconds: float = 0.0
) -> tuple[SavedClaim, ...]:
    """Kept claims held against uncounted memory of now, whoever reads them; the wall clock is 0
    where it is not known, and then nothing is certain.
    """
    watch = MemoryWatch(kept, now_unix_seconds=now_unix_seconds, certain_seconds=READ_SECONDS)
    watch.see(LedgerMoment(0.0, residual_bytes, error_bytes))
    return watch.inherited


# What stays certain while the tracer follows fewer frames than it did.
#
# A sample is off by its error, and what was certain to the page is no less true for that, as
# long as nothing contradicts it: no lost event, no fall of uncounted memory, nobody else who
# certainly has what it grew by.  After a pause, in which no free was followed, it is what processes
# took that still live: whoever ends gives back, and somebody else may have taken the same frames at
# once.


class Floors:
    """Bytes by key: what was certain when the tracer was asked last."""

    def __init__(self) -> None:
        self._bytes: dict[Key, int] = {}
        self._paused: frozenset[Key] = frozenset()
        """Those of which frees were not followed for a while."""

    def fell(self, fall_bytes: int) -> None:
        """Who gave it back is not known: nobody is certain to hold it still."""
        self._bytes = {key: max(0, size - fall_bytes) for key, size in self._bytes.items()}

    def pause(self) -> None:
        """Frees are not followed from here on."""
        self._paused |= self._bytes.keys()

    def forget(self) -> None:
        """Nothing is known any more."""
        self._bytes, self._paused = {}, frozenset()

    def learn(self, leasts: dict[Key, int]) -> None:
        """Bytes by key that are certain now, after the tracer was asked; replaces the old ones."""
        self._bytes = leasts
        self._paused &= leasts.keys()

    def under(self, rows: Sequence[TracedRow], grown_bytes: int) -> list[int]:
        """For each row; ``grown_bytes``: all that can be held of what the tracer saw."""
        sure = [max(row.least_bytes, row.held_bytes) for row in rows]
        left = grown_bytes - sum(sure)
        return [self._under(row, left + own) for row, own in zip(rows, sure, strict=True)]

    def _under(self, row: TracedRow, left_bytes: int) -> int:
        """``left_bytes``: of the growth, beside what others certainly have."""
        if row.is_doubted or row.least_bytes >= row.bytes:
            return 0  # every frame is followed: what is not there was seen to go
        key = key_of(row)
        floor = min(row.most_bytes, left_bytes, self._bytes.get(key, 0))
        return max(0, min(floor, row.living_bytes) if key in self._paused else floor)
