# SPDX-License-Identifier: Apache-2.0
"""What a watcher does next, and what it has learned: a state machine without a machine.

The loop around it (``memory --watch``, the guard) reads the ledger, calls ``see``, does what
the order says and gives what the tracer found to ``learn``.  What was learned is

* ``live``: page frames are known, so another look tells what is left of it.  It rises only
  while it is traced, and together by no more than the ledger saw the residual grow.
* ``inherited``: from before a restart.  Frames are not known, so together it is never more
  than what the residual is over what it was before (``base``), and never rises.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from seawall.accounts.claim import RESIDUAL
from seawall.accounts.traced import TracedRow
from seawall.accounts.tracing.caps import Part, capped
from seawall.accounts.watch.claims import Key, Place, draft_of, key_of, merged, tellable, worth
from seawall.accounts.watch.pace import Falls, Growth, Moment
from seawall.readings.kept_claims import KeptClaim, KeptClaims

LOOK_EVERY_SECONDS: Final = 10.0
"""While it traces."""
RELOOK_EVERY_SECONDS: Final = 300.0
"""While it does not, and holds claims."""

Step: TypeAlias = Literal["arm", "disarm", "look"]


class Watch:
    """One watcher's whole memory."""

    def __init__(
        self,
        kept: KeptClaims | None = None,
        growth: Growth | None = None,
        *,
        look_every_seconds: float = LOOK_EVERY_SECONDS,
    ) -> None:
        """``look_every_seconds``: while it traces."""
        self._look_every = look_every_seconds
        known = kept if kept and kept.claims else None
        self.growth = growth or Growth()
        self.base_bytes: int | None = known.base_residual_bytes if known else None
        """The residual apart from what is claimed; None while nothing is."""
        self.inherited: tuple[KeptClaim, ...] = merged(known.claims) if known else ()
        self.live: tuple[KeptClaim, ...] = ()
        self._falls = Falls(known.residual_bytes if known else None)
        self._floors: dict[Key, int] = {}
        self._low: int | None = None
        """The least that the residual was without live claims, since it was armed; None: it is
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
    def claims(self) -> tuple[KeptClaim, ...]:
        """Everything, largest first; one for each holder and kind."""
        return merged((*self.live, *self.inherited))

    def see(self, moment: Moment) -> tuple[Step, ...]:
        """What follows from one more look at the ledger, in this order."""
        fell = self._falls.see(moment.residual_bytes, moment.error_bytes)
        if fell:
            # Who gave it back is not known: nobody is certain to hold it still.
            self._floors = {key: max(0, size - fell) for key, size in self._floors.items()}
            self.inherited = tuple(
                replace(claim, least_bytes=max(0, claim.least_bytes - fell))
                for claim in self.inherited
            )
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

    def learn(self, moment: Moment, rows: Iterable[TracedRow], place: Place) -> None:
        """A look of the tracer, and the moment that followed it."""
        self._looked = moment.seconds
        drafts = [draft_of(row, place, self._floors) for row in rows if row.within == RESIDUAL]
        claimed = {key_of(claim): claim.bytes for claim in self.live}
        room = seen = 0
        if self._low is not None:
            # What is claimed together is what the residual has grown to over the low point.
            still = sum(min(claimed.get(key_of(draft), 0), draft.bytes) for draft in drafts)
            seen = moment.residual_bytes - self._low - still
            room = max(0, seen + max(0, moment.error_bytes - self._slack))
        risen, self.live = _risen(drafts, claimed, room)
        if self._low is not None:
            self._slack_now = min(max(0, risen - seen), moment.error_bytes)
            self._note_low(moment)
        self._floors = {key_of(claim): claim.least_bytes for claim in self.live}
        self._fit_inherited(moment)
        self._set_base(moment)

    def disarmed(self) -> None:
        """The tracer is paused: what is known stays."""
        self._low = None
        self._slack = self._slack + self._slack_now if self.live else 0
        self._slack_now = 0

    def lost(self) -> None:
        """The tracer is gone with its frames: what it told is now inherited."""
        self.inherited, self.live = self.claims, ()
        self._floors = {}
        self.disarmed()

    def kept(self, moment: Moment, place: Place, blind: str = "") -> KeptClaims:
        """What goes into the file."""
        base = self.base_bytes if self.base_bytes is not None else moment.residual_bytes
        return KeptClaims(
            boot_id=place.boot_id,
            written_at_unix_seconds=place.unix_seconds,
            base_residual_bytes=base,
            residual_bytes=moment.residual_bytes,
            blind=blind,
            claims=tuple(filter(tellable, self.claims)),
        )

    def _arm(self, moment: Moment) -> None:
        self._low = moment.residual_bytes - sum(claim.bytes for claim in self.live)
        self._looked = moment.seconds
        if self.base_bytes is None:
            self.base_bytes = moment.residual_bytes

    def _note_low(self, moment: Moment) -> None:
        without = moment.residual_bytes - sum(claim.bytes for claim in self.live)
        if self._low is not None and without < self._low - moment.error_bytes:
            self._low = without
            self._keep_slack(moment.error_bytes)  # it is in the low point from here on

    def _keep_slack(self, most_bytes: int) -> None:
        """The error is granted once, not again after every change of the low point."""
        self._slack = min(self._slack + self._slack_now, most_bytes)
        self._slack_now = 0

    def _fit_inherited(self, moment: Moment) -> None:
        """What fell does not come back: nobody saw it being taken again."""
        if not self.inherited or self.base_bytes is None:
            return
        over = moment.residual_bytes - self.base_bytes
        over -= sum(claim.bytes for claim in self.live)
        _, fitted = _risen(self.inherited, {}, max(0, over) + moment.error_bytes)
        # Within the error there may be nothing at all, unless nothing has fallen.
        error = moment.error_bytes
        self.inherited = tuple(c for c in fitted if c.least_bytes or min(over, c.bytes) > error)

    def _set_base(self, moment: Moment) -> None:
        if self.base_bytes is None or self.inherited:
            return
        held = sum(claim.bytes for claim in self.live)
        # The frames are still held, so whatever else fell was of others.
        self.base_bytes = min(self.base_bytes, moment.residual_bytes - held)
        if not self.live and self._low is None:
            self.base_bytes = None


def _risen(
    drafts: Sequence[KeptClaim], claimed: dict[Key, int], room: int
) -> tuple[int, tuple[KeptClaim, ...]]:
    """The claims such that together they are over ``claimed`` by ``room`` at most; by how
    much they are.
    """
    had = [min(claimed.get(key_of(draft), 0), draft.bytes) for draft in drafts]
    parts = [
        Part(max(0, draft.least_bytes - old), draft.bytes - old, draft.most_bytes - old)
        for draft, old in zip(drafts, had, strict=True)
    ]
    cut = capped(parts, room)
    fitted = [
        replace(
            draft, bytes=old + part.best, least_bytes=min(draft.least_bytes, old + part.least),
            most_bytes=old + part.most,
        )
        for draft, old, part in zip(drafts, had, cut, strict=True)
    ]  # fmt: skip
    return sum(part.best for part in cut), tuple(filter(worth, fitted))


def fitted_to(kept: KeptClaims, residual_bytes: int, error_bytes: int) -> tuple[KeptClaim, ...]:
    """Kept claims held against the residual of now, whoever reads them."""
    watch = Watch(kept)
    watch.see(Moment(0.0, residual_bytes, error_bytes))
    return watch.inherited
