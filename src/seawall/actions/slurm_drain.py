# SPDX-License-Identifier: Apache-2.0
"""A node drains itself in Slurm, or takes its own drain back; nothing else of Slurm is changed.

Everything that stands in the way (a brake, another's drain, a slurmctld that is away) ends in
words and in no change: a broken node that takes jobs is bad, a cluster that drains itself is worse.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from seawall.accounts import drain_queue
from seawall.accounts.drain_queue import SETTLE_TIMES, TICKET_TIMES, DrainClaim, DrainLimits
from seawall.actions.drain_record import DrainRecord, OwnDrain
from seawall.host.slurm_commands import SlurmCommandProblem
from seawall.readings.slurm_node_rows import SlurmNodeRow

STEADY_SECONDS: Final = 25.0
"""So long a finding that may pass, and a node that is well again, must be what it is."""
JITTER_SECONDS: Final = 4.0


@dataclass(frozen=True, slots=True)
class DrainCause:
    """A finding of a check whose setting is ``drain``."""

    key: str
    """The same in two looks for the same thing, another for another job's."""
    words: str
    """``gpu: 7 of 8 GPUs``."""
    is_lasting: bool
    """It cannot pass by itself: one look is enough."""
    is_until_boot: bool = False
    """What tells of it may be forgotten before it is mended."""


class Slurmctld(Protocol):
    """Whoever is asked and told."""

    seconds: float
    """The deadline of one question."""

    def nodes(self) -> Mapping[str, SlurmNodeRow]: ...
    def update(self, node: str, **fields: str) -> None: ...


class DrainDecision:
    """One run of the check on one node."""

    def __init__(
        self, slurm: Slurmctld, record: DrainRecord, node: str, limits: DrainLimits,
        save: Callable[[DrainRecord], None], boot_id: str,
    ) -> None:  # fmt: skip
        """``save``: writes the record down before something is changed; OSError.  ``boot_id``:
        of this boot.
        """
        self._slurm, self._record, self._node = slurm, record, node
        self._limits, self._save, self._boot_id = limits, save, boot_id

    def run(self, causes: Sequence[DrainCause], *, is_well: bool, now: float) -> list[str]:
        """What was done or refused, in words; nothing where there was nothing to decide.

        ``is_well``: no finding that a drain could be for, and nothing of those checks unseen.
        """
        record = self._record
        record.see({cause.key for cause in causes}, now)
        record.well_since = (record.well_since or now) if is_well else None
        ripe = [
            cause for cause in causes
            if cause.is_lasting or record.age(cause.key, now) >= STEADY_SECONDS
        ]  # fmt: skip
        try:
            self._forget_number()
            if record.drain is not None:
                words = self._with_own_drain(record.drain, ripe, now)
            else:
                words = self._without_drain(causes, ripe)
        except SlurmCommandProblem as silence:
            words = [f"slurmctld was not to be asked, and nothing was changed: {silence}"]
        for line in words:
            record.note(now, line)
        return words

    def _forget_number(self) -> None:
        """Of a run that was killed between its number and its end."""
        if not self._record.claim:
            return
        row = self._slurm.nodes().get(self._node)
        standing = {"Comment": row.comment, "Extra": row.extra} if row is not None else {}
        if drain_queue.is_claim(standing.get(self._record.claim, "")):
            self._slurm.update(self._node, **{self._record.claim: ""})
        self._record.claim = ""

    def _without_drain(
        self, causes: Sequence[DrainCause], ripe: Sequence[DrainCause]
    ) -> list[str]:  # fmt: skip
        yielded = set(self._record.yielded)
        wanted = [cause for cause in ripe if cause.key not in yielded]
        if wanted:
            return self._drain(wanted)
        if ripe:
            return ["not drained: somebody took the drain for it back by hand"]
        if causes:
            return [f"not drained yet: it must be there for {STEADY_SECONDS:.0f} s, in two looks"]
        return []

    def _with_own_drain(
        self, own: OwnDrain, ripe: Sequence[DrainCause], now: float
    ) -> list[str]:  # fmt: skip
        since = self._record.well_since
        is_early = since is None or now - since < STEADY_SECONDS
        if not ripe and (is_early or own.boot_id == self._boot_id):
            return []
        row = self._slurm.nodes().get(self._node)
        if row is not None and own.unix_seconds is None and _has_reason(row, own):
            return [f"it stays drained, and is for people to lift: {own.reason}"]
        if row is None or not drain_queue.is_same_drain(row, own.reason, own.unix_seconds):
            self._record.drain = None
            if row is not None and "drain" in row.states:
                return ["somebody else drained the node meanwhile: it is theirs now"]
            if own.unix_seconds is None:
                return ["the drain that slurmctld did not answer to was not made"]
            self._record.yielded = sorted({*own.keys, *(cause.key for cause in ripe)})
            return ["somebody took the drain back by hand: it stays as they left it"]
        if ripe:
            return [f"it stays drained: {own.reason}"]
        refusal = drain_queue.lift_refusal(
            row, own.reason, own.unix_seconds, self._record.lifts, now
        )
        if refusal:
            return [f"its own drain is not lifted: {refusal}"]
        self._record.lifts.append(now)
        self._record.drain = None
        try:
            self._save(self._record)  # first: a lift that is not counted could be one too many
        except OSError as error:
            self._record.drain = own
            self._record.lifts.pop()
            return [f"its own drain is not lifted: that cannot be written down: {error.strerror}"]
        self._slurm.update(self._node, State="UNDRAIN")
        return [f"its own drain is lifted, it is well: {own.reason}"]

    # --- the queue of accounts/drain_queue.py -----------------------------------------------

    def _drain(self, causes: Sequence[DrainCause]) -> list[str]:
        time.sleep(JITTER_SECONDS * int.from_bytes(os.urandom(2), "big") / 65_536)
        began = time.monotonic()
        rows = self._slurm.nodes()
        refusal = drain_queue.refusal(rows, self._node, self._limits.of(rows))
        if refusal:
            return [f"not drained: {refusal}"]
        field = drain_queue.free_field(rows[self._node])
        claim = drain_queue.next_claim(rows, time.time())
        is_done = False
        self._record.claim = field
        with suppress(OSError):  # a disk that takes nothing may be what it drains for
            self._save(self._record)
        try:
            self._slurm.update(self._node, **{field: claim.text})
            if time.monotonic() - began > TICKET_TIMES * self._slurm.seconds:
                return ["not drained: slurmctld is too slow to queue"]
            time.sleep(SETTLE_TIMES * self._slurm.seconds)
            words = self._by_number(claim, field, causes)
            is_done = not words
        finally:
            if not is_done:
                self._slurm.update(self._node, **{field: ""})
            self._record.claim = ""
        return words or self._read_back()

    def _by_number(
        self, claim: DrainClaim, field: str, causes: Sequence[DrainCause]
    ) -> list[str]:  # fmt: skip
        """Empty: drained."""
        rows = self._slurm.nodes()
        most = self._limits.of(rows)
        before = drain_queue.places_before(rows, self._node, claim, time.time())
        row = rows.get(self._node)
        if row is None or not drain_queue.has_claim(row, claim):
            return ["not drained: its place in the queue is gone"]
        refusal = drain_queue.refusal(rows, self._node, len(rows) + 1)
        if refusal:
            return [f"not drained: {refusal}"]
        if before >= most:
            words = f"{before} are drained or before it, and {most} of {len(rows)} may be"
            return [f"not drained: the brake: {words}"]
        reason = drain_queue.reason_of(cause.words for cause in causes)
        is_until_boot = any(cause.is_until_boot for cause in causes)
        self._record.drain = OwnDrain(
            reason, None, [cause.key for cause in causes], self._boot_id if is_until_boot else ""
        )
        self._slurm.update(self._node, **{"State": "DRAIN", "Reason": reason, field: ""})
        return []

    def _read_back(self) -> list[str]:
        """When slurmctld says that it was: what tells this drain from a later one."""
        own = self._record.drain
        if own is None:
            return []
        words = [f"drained: {own.reason}"]
        try:
            row = self._slurm.nodes().get(self._node)
        except SlurmCommandProblem as silence:
            return [
                *words,
                f"when that was could not be asked, so it will not be lifted: {silence}",
            ]
        if row is None or row.reason != own.reason:
            return [*words, "it has another reason by now, and will not be lifted"]
        own.unix_seconds = row.reason_unix_seconds
        self._record.well_since = None
        return words


def _has_reason(row: SlurmNodeRow, own: OwnDrain) -> bool:
    return "drain" in row.states and row.reason == own.reason
