# SPDX-License-Identifier: Apache-2.0
"""/proc/vmstat for every tick: who waits in reclaim, and what meminfo leaves out.

``allocstall_*`` (one per zone since 4.10, ``allocstall`` before) counts direct reclaim of the
whole node only: a cgroup at its own limit does not move it (mm/vmscan.c, do_try_to_free_pages:
``if (!cgroup_reclaim(sc))``).  ``oom_kill`` since 4.13, ``nr_zspages`` since 4.8.
"""

from typing import Final

from seawall.guard.sense.files import KernelFile, counter

_MOST_BYTES: Final = 64 << 10
_STALLS: Final = (
    b"\nallocstall_dma ", b"\nallocstall_dma32 ", b"\nallocstall_normal ",
    b"\nallocstall_high ", b"\nallocstall_movable ", b"\nallocstall_device ", b"\nallocstall ",
)  # fmt: skip


class TickVmstat:
    """Counters since boot; None: this kernel has none."""

    __slots__ = ("_file", "_stalls", "kernel_kills", "major_faults", "problem", "stalls", "zspages")

    def __init__(self, proc: str) -> None:
        self._file = KernelFile(f"{proc}/vmstat", _MOST_BYTES)
        self.problem = ""
        self._stalls: tuple[bytes, ...] = ()
        """Those that this kernel has."""
        self.stalls: int | None = None
        self.kernel_kills: int | None = None
        self.major_faults: int | None = None
        self.zspages: int | None = None

    def read(self) -> bool:
        """Whether this moment could be read; ``problem`` says why not."""
        file = self._file
        if not file.read():
            self.problem = file.problem
            return False
        return self.parse(file.buffer, file.size)

    def parse(self, buffer: bytearray, size: int) -> bool:
        """Take the counters out of ``buffer[:size]``."""
        stalls, is_there = 0, False
        try:
            for name in self._stalls or _STALLS:
                count = counter(buffer, size, name)
                if count is not None:
                    stalls, is_there = stalls + count, True
            if not self._stalls:
                self._stalls = tuple(name for name in _STALLS if name in buffer)
            self.kernel_kills = counter(buffer, size, b"\noom_kill ")
            self.major_faults = counter(buffer, size, b"\npgmajfault ")
            self.zspages = counter(buffer, size, b"\nnr_zspages ")
        except ValueError:
            self.problem = f"{self._file.path}: a counter is not a number"
            return False
        self.stalls = stalls if is_there else None
        self.problem = "" if is_there else f"{self._file.path}: no allocstall"
        return True


class Rate:
    """A counter's rise: per second, or since the last tick.  A fall is a reset: no rise."""

    __slots__ = ("_seconds", "was")

    def __init__(self) -> None:
        self.was: int | None = None
        self._seconds = 0.0

    def gained(self, value: int | None, now: float) -> tuple[int, float]:
        """The rise, and the seconds it took; (0, 0.0) the first time."""
        was, seconds = self.was, now - self._seconds
        self.was, self._seconds = value, now
        if was is None or value is None:
            return 0, 0.0
        return max(0, value - was), max(0.0, seconds)

    def per_second(self, value: int | None, now: float) -> float:
        """The rise over the interval; 0.0 the first time."""
        rise, seconds = self.gained(value, now)
        return rise / seconds if seconds > 0.0 else 0.0
