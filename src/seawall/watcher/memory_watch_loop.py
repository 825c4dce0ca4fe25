# SPDX-License-Identifier: Apache-2.0
"""The loop of ``seawall memory --watch``: reads the ledger, runs the tracer, keeps the file."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.ledger_vmalloc import is_pages
from seawall.accounts.tracing.sums import TraceInputs, UncountedGrowth, sum_trace
from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.accounts.watch.watched_claims import ClaimPlace, Key, key_of
from seawall.accounts.watch.watching import MemoryWatch
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.cgroup import Cgroups
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.page_trace import parse_answer
from seawall.readings.saved_claims import PATH, SavedClaim, SavedClaims, document_of
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.replaced_file import replace_file
from seawall.views.memory_watch_lines import all_words, claim_words
from seawall.watcher.alarm import Alarm
from seawall.watcher.inodes import Inodes
from seawall.words import size

if TYPE_CHECKING:
    from seawall.host.page_trace.tracer import PageTracer

TRY_AGAIN_SECONDS: Final = 60.0
"""After the tracer could not be opened."""
WHOLE_SECONDS: Final = 30.0
"""So long every page frame is followed, which tells a burst to the page; then a few of them."""
AREAS_EVERY_SECONDS: Final = 60.0
"""/proc/vmallocinfo takes longer than all else, and tells little where VmallocUsed counts pages."""
SPARE_STEP: Final = 64
"""One frame in so many: a leak of hours needs no more, and must not slow the machine down."""
WRITE_EVERY_SECONDS: Final = 60.0
"""While there are claims, so that their file tells of now."""
_TOLD_LEAST_BYTES: Final = 16 << 20
_TOLD_LEAST_SHARE: Final = 20  # a twentieth


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event that ``seawall memory --watch`` prints, with the claims as they are then."""

    event: str
    """``started``, ``armed``, ``disarmed``, ``claim``, ``gone``, ``blind``, ``ended``."""
    unix_seconds: float | None
    words: str
    kept: SavedClaims | None


class MemoryWatchLoop:
    """One run of ``seawall memory --watch``: what it reads, traces and saves."""

    def __init__(
        self, every_seconds: float, tell: Callable[[WatchEvent], None], alarm: Alarm
    ) -> None:
        self._every = every_seconds
        self._tell_one = tell
        self._alarm = alarm
        self._host = LiveHost("/")
        self._tracer: PageTracer | None = None
        self._opened = 0.0
        self._try_at = 0.0
        self._areas_due = 0.0
        self._troubles: dict[str, str] = {}
        self._buffers = 0
        self._inodes = Inodes(self._host)
        self._told: dict[Key, int] = {}
        self._written = _state(())
        self._write_at = 0.0
        self._mount_point: str | None = None
        self._watch = MemoryWatch()
        self._snapshot = Snapshot(self._host)

    def run(self) -> None:
        """Until the alarm is over."""
        self._begin()
        due = time.monotonic()
        while not self._alarm.is_over:
            due = max(due + self._every, time.monotonic())
            self._wait(due)
            moment = self._look_at_ledger()
            if moment is None or self._alarm.is_over:
                continue
            for step in self._watch.see(moment):
                moment = self._do(step, moment)
            self._tell_claims(moment)
            self._write(moment)
        self._say("ended", "told to end; what is known is kept", self._look_at_ledger())

    def close(self) -> None:
        """Take the tracer's instance away; safe to call twice."""
        self._close_tracer()
        self._host.close()

    # --- what comes first ---------------------------------------------------------------

    def _begin(self) -> None:
        """Go on with what an earlier watcher of this boot knew."""
        kept = self._snapshot.get(SavedClaims)
        if isinstance(kept, Unread):
            self._watch = MemoryWatch()
            told = ""
            if kept.why != "absent":
                told = f"; {kept.path}: {kept.detail or kept.why}"
                self._written = ""  # every verb complains of it until it is replaced
        else:
            self._watch = MemoryWatch(kept, now_unix_seconds=self._place().unix_seconds)
            self._written = _state(kept.claims, kept.blind)
            told = f"; kept: {all_words(self._watch.claims)}" if self._watch.claims else ""
        cgroups = self._snapshot.get(Cgroups)
        self._mount_point = None if isinstance(cgroups, Unread) else cgroups.mount_point
        moment = self._look_at_ledger()
        self._told = {key_of(claim): claim.bytes for claim in self._watch.claims}
        known = "no ledger" if moment is None else (
            f"{size(moment.residual_bytes)} of uncounted memory (+- {size(moment.error_bytes)})"
        )  # fmt: skip
        self._say("started", f"every {self._every:g} s; {known}{told}", moment)

    def _wait(self, due: float) -> None:
        """Until the next look; the tracer's buffers are read meanwhile."""
        while (left := due - time.monotonic()) > 0 and not self._alarm.is_over:
            if self._watch.is_armed and self._tracer is not None:
                if time.monotonic() - self._opened > WHOLE_SECONDS:
                    self._tracer.narrow(SPARE_STEP)
                self._tracer.pump(min(left, 0.5))
            else:
                self._alarm.sleep(left)

    def _next_snapshot(self) -> Snapshot:
        meminfo, now = self._snapshot.get(Meminfo), time.monotonic()
        if now >= self._areas_due or isinstance(meminfo, Unread) or not is_pages(meminfo):
            self._areas_due = now + AREAS_EVERY_SECONDS
            return Snapshot(self._host)
        return Snapshot(self._host, {Vmallocinfo: self._snapshot.get(Vmallocinfo)})

    def _look_at_ledger(self) -> LedgerMoment | None:
        self._snapshot = self._next_snapshot()
        ledger = self._snapshot.get(Ledger)
        if isinstance(ledger, Unread):
            self._hindered("read the ledger", f"{ledger.path}: {ledger.detail or ledger.why}", None)
            return None
        self._hindered("read the ledger", "", None)
        # Our own buffers are uncounted too.
        residual = ledger.residual_bytes - (self._buffers if self._watch.is_armed else 0)
        return LedgerMoment(time.monotonic(), residual, ledger.residual_error_bytes)

    # --- what the order says ------------------------------------------------------------

    def _do(self, step: str, moment: LedgerMoment) -> LedgerMoment:
        if step == "arm":
            self._arm(moment)
        elif step == "look":
            return self._look(moment)
        else:
            self._disarm(moment)
        return moment

    def _arm(self, moment: LedgerMoment) -> None:
        there = self._snapshot.get(Workloads)
        paths = () if isinstance(there, Unread) else tuple(there.by_cgroup)
        self._inodes.begin(paths, self._place(), keeps=bool(self._watch.live))
        if self._tracer is not None:
            self._tracer.resume()
        elif time.monotonic() >= self._try_at and not self._open(moment):
            self._try_at = time.monotonic() + TRY_AGAIN_SECONDS
        if self._tracer is not None:
            new = size(self._watch.growth.grown_bytes)
            words = (
                f"{size(moment.residual_bytes)} of uncounted memory, {new} of it new: who took it "
            )
            self._say("armed", words + "was not seen; tracing from here on", moment)

    def _open(self, moment: LedgerMoment) -> bool:
        from seawall.host.page_trace.options import TraceOptions  # noqa: PLC0415 - when it grows
        from seawall.host.page_trace.tracer import PageTracer  # noqa: PLC0415
        from seawall.host.page_trace.tracing_problem import TracingProblem  # noqa: PLC0415

        try:
            self._tracer = PageTracer.open(TraceOptions())
        except TracingProblem as problem:
            self._hindered("trace", problem.words, moment)
            return False
        except OSError as error:
            self._hindered("trace", f"{error.strerror or error}", moment)
            return False
        self._opened = time.monotonic()
        self._hindered("trace", "", moment)
        return True

    def _look(self, moment: LedgerMoment) -> LedgerMoment:
        """Ask the tracer what is still held, then the ledger: in this order, for what is
        taken in between must not look like growth that nobody claimed.
        """
        if self._tracer is None:
            if self._watch.is_armed and time.monotonic() >= self._try_at:
                self._arm(moment)
            return moment
        trace = parse_answer(self._tracer.look())
        if isinstance(trace, Unread):
            self._hindered("trace", f"its answer cannot be read: {trace.detail}", moment)
            return moment
        self._hindered("trace", "", moment)
        self._buffers = trace.buffer_bytes
        later = self._look_at_ledger() or moment
        sight, cgroups = TraceInputs.of(self._snapshot), self._snapshot.get(Cgroups)
        place = self._place(time.monotonic() - self._opened)
        if isinstance(cgroups, Cgroups):
            trace = self._inodes.with_workload_cgroups(trace, sight.places, cgroups, place)
        self._watch.learn(later, sum_trace(trace, sight, UncountedGrowth()).rows, place)
        return later

    def _disarm(self, moment: LedgerMoment) -> None:
        self._watch.disarmed()
        if self._tracer is None:
            return
        # Without claims there is nothing to look at again.
        self._tracer.pause() if self._watch.live else self._close_tracer()
        self._say("disarmed", f"{size(moment.residual_bytes)} of uncounted memory, steady", moment)

    def _close_tracer(self) -> None:
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.close()

    # --- what is known ------------------------------------------------------------------

    def _place(self, traced_seconds: float = 0.0) -> ClaimPlace:
        kernel = self._snapshot.get(Kernel)
        known = None if isinstance(kernel, Unread) else kernel
        return ClaimPlace(
            boot_id=(known.boot_id if known else None) or "",
            unix_seconds=(known.taken_at_unix_seconds if known else None) or 0.0,
            mount_point=self._mount_point,
            traced_seconds=traced_seconds,
        )

    def _write(self, moment: LedgerMoment) -> None:
        """When what is claimed has changed, and once in a while as long as there is any."""
        kept = self._watch.saved_claims(moment, self._place(), self._blind)
        if not kept.boot_id:
            return
        state = _state(kept.claims, kept.blind)
        is_due = bool(kept.claims) and time.monotonic() >= self._write_at
        if state == self._written and not is_due:
            return
        try:
            replace_file(PATH, document_of(kept))
        except OSError as error:
            self._hindered("keep what is known", f"{PATH}: {error.strerror}", moment)
            return
        self._hindered("keep what is known", "", moment)
        self._written = state
        self._write_at = time.monotonic() + WRITE_EVERY_SECONDS

    # --- what is told -------------------------------------------------------------------

    def _tell_claims(self, moment: LedgerMoment) -> None:
        claims = {key_of(claim): claim for claim in self._watch.claims}
        for key, claim in claims.items():
            before = self._told.get(key)
            least = max(_TOLD_LEAST_BYTES, (before or 0) // _TOLD_LEAST_SHARE)
            if before is None or abs(claim.bytes - before) >= least:
                self._told[key] = claim.bytes
                self._say("claim", claim_words(claim), moment)
        for key in [key for key in self._told if key not in claims]:
            self._say("gone", f"{key[0]} holds no {key[3]} any more that we know of", moment)
            del self._told[key]

    def _hindered(self, what: str, why: str, moment: LedgerMoment | None) -> None:
        """Told once, until it is over or another reason comes; no words: it is over."""
        before, self._troubles[what] = self._troubles.get(what, ""), why
        if why and why != before:
            self._say("blind", f"cannot {what}: {why}", moment)

    @property
    def _blind(self) -> str:
        """Why nothing is learned; that the file cannot be written needs no word in it."""
        return self._troubles.get("trace") or self._troubles.get("read the ledger", "")

    def _say(self, event: str, words: str, moment: LedgerMoment | None) -> None:
        place = self._place()
        kept = None if moment is None else self._watch.saved_claims(moment, place, self._blind)
        self._tell_one(WatchEvent(event, place.unix_seconds or None, words, kept))


def _state(claims: tuple[SavedClaim, ...], blind: str = "") -> str:
    """What a change of is worth a new file; not when each was looked at."""
    rows = [(key_of(c), c.bytes, c.least_bytes, c.most_bytes, c.is_gone) for c in claims]
    return repr((rows, blind))
