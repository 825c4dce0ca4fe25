# SPDX-License-Identifier: Apache-2.0
"""Claims of an earlier watcher: their frames are not known, so nobody can look again.

What it learned is certain for as long as a guard needs to come back when it was killed in the
middle of an emergency; then it is told on, and proves nothing.
"""

from dataclasses import replace
from typing import Final

from seawall.readings.saved_claims import SavedClaim

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
        """Whatever the time is."""
        return self._claims


def _told_on(claim: SavedClaim) -> SavedClaim:
    return replace(claim, least_bytes=0)
