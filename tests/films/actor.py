"""One group of a film, as it really is."""

from collections import deque
from dataclasses import dataclass, field

from seawall.guard.tick_facts import BURSTABLE, GUARANTEED, NOTHING_OUTSIDE, Group, Outside

CLAIMS_ALL = "packet rings (PACKET_DIAG)"
TRACED = "kernel pages traced page by page"
MAPPED = "surface memory of mlx5 counted by the kernel"


@dataclass
class Actor:
    """One group as it really is.  Bytes, bytes a second, seconds."""

    name: str
    path: str
    class_rank: int = BURSTABLE
    adj: int | None = None
    limit: int | None = None
    request: int | None = None
    pod: str = ""
    protected_by: str = ""
    anon: float = 0.0
    """In memory or in swap."""
    swapped: float = 0.0
    """Of that, what is in swap alone."""
    kept_in_swap: float = 0.0
    """Of the rest, what was read back, and its place in swap is kept."""
    cache: float = 0.0
    outside: float = 0.0
    anon_rate: float = 0.0
    cache_rate: float = 0.0
    outside_rate: float = 0.0
    starts: float = 0.0
    """From then on it takes."""
    anon_most: float = float("inf")
    outside_most: float = float("inf")
    sources: str = CLAIMS_ALL
    is_asked_late: bool = False
    """Told of only near a shortage, or once much has grown that nobody owns."""
    restarts: float = float("inf")
    """Then it begins anew in a new cgroup, and takes within a second what it had."""
    born: float = float("-inf")
    certainty: float = 1.0
    """Share of what it holds outside that certain evidence shows; the rest is only likely."""
    suspected: float = 0.0
    """Bytes of ``most`` that it does not hold."""
    suspected_rate: float = 0.0
    """They grow by so much."""
    wobble: float = 0.0
    """Its anonymous memory goes up and down by so much: a fork storm."""
    driver_keeps: bool = False
    """What it held outside stays when it ends."""
    gives_back: bool = True
    """False: its memory (a tmpfs of the host) stays when it ends."""
    lets_go: float = float("inf")
    """Then it gives back what it holds outside."""
    stuck_seconds: float = 0.0
    """So long its end takes, in the kernel."""
    term_seconds: float | None = 1.0
    """It ends so long after SIGTERM; None: it ignores it."""
    inode: int = 0
    is_frozen: bool = False
    frozen_at: float = 0.0
    ends: float | None = None
    """When its memory begins to come back; None: it lives."""
    is_gone: bool = False
    sees: Group = field(init=False)
    told: Outside = NOTHING_OUTSIDE
    past: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=256))
    """When it held how much outside; proof may be older than the bound."""

    def __post_init__(self) -> None:
        self.inode = self.inode or abs(hash(self.path)) % 10**9 + 10
        self.sees = Group(self.path, self.inode, self.name)
        self.sees.class_rank, self.sees.adj = self.class_rank, self.adj
        self.sees.limit_bytes, self.sees.request_bytes = self.limit, self.request
        self.sees.pod, self.sees.protected_by = self.pod, self.protected_by
        self.sees.processes = 3

    def begin_anew(self, now: float) -> None:
        """With nothing, as another cgroup of the same path."""
        self.restarts, self.born, self.starts = float("inf"), now, now
        self.anon_most = self.anon_rate = self.anon
        self.outside_most = self.outside_rate = self.outside
        self.anon = self.swapped = self.kept_in_swap = self.cache = self.outside = 0.0
        self.inode += 10**6
        self.told = NOTHING_OUTSIDE
        self.past.clear()
        self.__post_init__()
        self.sees.started_seconds = now

    @property
    def is_in_reach(self) -> bool:
        """Of a guard with the usual scope; told here once more, not asked of the judge."""
        is_adj_low = self.adj is not None and (
            self.adj < -997 or (self.adj == -997 and self.class_rank != GUARANTEED)
        )
        return self.path.startswith("/kubepods/") and not self.protected_by and not is_adj_low

    def take(self, now: float, seconds: float) -> None:
        """What it takes in ``seconds``; its charge never passes its limit."""
        if now < self.starts or self.is_frozen or self.ends is not None:
            return
        if now >= self.lets_go:
            self.outside_most = 0.0
        self.outside = min(self.outside_most, self.outside + self.outside_rate * seconds)
        self.suspected += self.suspected_rate * seconds
        self.anon = min(self.anon_most, self.anon + self.anon_rate * seconds)
        self.cache += self.cache_rate * seconds
        if self.limit is not None:
            self.anon = min(self.anon, float(self.limit))
            self.cache = min(self.cache, self.limit - self.anon)
