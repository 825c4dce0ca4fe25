"""A world over fake time for films of the watcher: holders, a residual, and a tracer that sees
what is taken while it is armed.
"""

from collections import Counter
from collections.abc import Iterable

from seawall.accounts.claim import RESIDUAL
from seawall.accounts.tracing.trace_rows import TracedProcess, TracedRow
from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.accounts.watch.watched_claims import ClaimPlace
from seawall.accounts.watch.watching import MemoryWatch
from seawall.readings.saved_claims import SavedClaim, SavedClaims

MIB = 1 << 20
GIB = 1 << 30
ERROR = 16 * MIB
EVERY = 2.0
BOOT = "00000000-0000-4000-8000-000000000000"


def row(
    holder: str, size: int, *, least: int | None = None, inode: int = 7, lives: bool = True
) -> TracedRow:
    return TracedRow(
        holder=holder, workload=holder, cgroup=f"/{holder}", cgroup_inode=inode, is_gone=False,
        kind="ring", what="packet ring", driver=None, within=RESIDUAL, bytes=size,
        least_bytes=size if least is None else least, most_bytes=size, mapped_bytes=0,
        processes=(TracedProcess(7, holder, size, lives),), stack=("packet_set_ring",),
    )  # fmt: skip


def place(seconds: float = 0.0) -> ClaimPlace:
    return ClaimPlace(BOOT, 1_700_000_000.0 + seconds, "/sys/fs/cgroup")


def sizes(claims: Iterable[SavedClaim]) -> dict[str, int]:
    """MiB by holder."""
    return {claim.holder: claim.bytes // MIB for claim in claims}


class Film:
    """The machine, and one watcher on it at a time."""

    def __init__(self, base: int = 2 * GIB) -> None:
        self.seconds = 0.0
        self.base = base
        self.held: Counter[str] = Counter()
        self.traced: Counter[str] = Counter()
        """What the tracer knows of it."""
        self.churn: Counter[str] = Counter()
        """What a tracer that errs would charge an innocent with."""
        self.ended: set[str] = set()
        """Holders whose processes that took it are gone."""
        self.noise = 0
        self.watch = MemoryWatch()
        self.steps: list[tuple[float, str]] = []
        self.is_followed = False

    @property
    def moment(self) -> LedgerMoment:
        residual = self.base + self.held.total() + self.noise
        return LedgerMoment(self.seconds, residual, ERROR)

    def take(self, who: str, size: int) -> None:
        """A negative size gives back."""
        self.held[who] += size
        if self.is_followed and size > 0:
            self.traced[who] += size
        self.traced[who] = min(self.traced[who], self.held[who])

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.seconds += EVERY
            for step in self.watch.see(self.moment):
                self.steps.append((self.seconds, step))
                self._do(step)

    def _do(self, step: str) -> None:
        if step == "arm":
            self.is_followed = True
        elif step == "look":
            self.look()
        else:
            self.is_followed = False
            self.watch.disarmed()

    def look(self) -> None:
        # While frees are not followed the tracer is certain of nothing.
        rows = [row(who, size, least=None if self.is_followed else 0, lives=who not in self.ended)
                for who, size in sorted(self.traced.items()) if size]  # fmt: skip
        rows += [row(who, size, least=0) for who, size in sorted(self.churn.items())]
        self.watch.learn(self.moment, rows, place(self.seconds))

    def file(self) -> SavedClaims:
        return self.watch.saved_claims(self.moment, place(self.seconds))

    def restart(self) -> None:
        """The watcher is killed, and another one begins with its file."""
        kept = self.file()
        self.traced.clear()
        self.is_followed = False
        now = place(self.seconds).unix_seconds
        self.watch = MemoryWatch(kept if kept.claims else None, now_unix_seconds=now)

    def count(self, step: str) -> int:
        return sum(1 for _, done in self.steps if done == step)
