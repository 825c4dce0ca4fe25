# SPDX-License-Identifier: Apache-2.0
"""A host at one moment or two, whatever tells of it; ``box_source.py``: of a black box."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from seawall.accounts.scene import WINDOW_LEAST_SECONDS, Scene
from seawall.host.host import Host
from seawall.host.live import LiveHost
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmstat import Vmstat

if TYPE_CHECKING:
    from seawall.host.bundle import Bundle

NOTES_MOST: Final = 20
NOTE_MOST: Final = 500
"""Characters; a bundle is hostile input."""


class Source:
    """The first moment, and a second one when it is asked for."""

    def __init__(
        self,
        first: Host,
        last: Host | None,
        *,
        live: LiveHost | None,
        notes: tuple[str, ...] = (),
        rounds: Sequence[Host] = (),
        cut: str | None = None,
        known: Mapping[type[Any], Any] | None = None,
    ) -> None:
        self.first = Snapshot(first, known)
        """``known``: values that somebody has already."""
        self.rounds = rounds or (first,)
        """Every pass of a bundle; the machine itself otherwise."""
        self.notes = notes
        """What whoever made a bundle wrote down with it."""
        self.cut = cut
        """Where a bundle breaks off, which the first of the notes says too."""
        self._last = last
        self.live = live
        """Set when a second moment can be had by waiting."""
        self._began = time.monotonic()

    def scene(self) -> Scene:
        """The first moment alone, as a scene for the rules."""
        return Scene(self.first)

    def later_scene(self, seconds: float = WINDOW_LEAST_SECONDS) -> Scene:
        """Both moments; waits until ``seconds`` have passed since the first on a live host."""
        if self.live is not None:
            # Kept even when the time is over: two numbers without a window between them are
            # worth nothing, and on a thrashing node they are all that is to be had.
            until = self._began + seconds
            time.sleep(max(0.0, (until - time.monotonic()) / 2))
            middle = self._middle_of(self.live)
            time.sleep(max(0.0, until - time.monotonic()))
            return Scene(self.first, Snapshot(self.live), middle)
        if self._last is None:
            return Scene(self.first)
        return Scene.of([self.first, *map(Snapshot, self.rounds[1:-1]), Snapshot(self._last)])

    def _middle_of(self, host: Host) -> Snapshot:
        """A moment that costs three small files: all else in it is as it was at the first one."""
        fresh = (Kernel, Meminfo, Vmstat)
        readings = self.first.readings().items()
        moment = Snapshot(host, {topic: value for topic, value in readings if topic not in fresh})
        for topic in fresh:
            moment.get(topic)
        return moment

    def mark_first_moment(self) -> None:
        """The window is counted from here: what rates need has just been read."""
        self._began = time.monotonic()


def notes_of(bundle: "Bundle") -> tuple[str, ...]:
    """Where it was cut, and what whoever made the bundle wrote down with it."""
    cut = (bundle.cut,) if bundle.cut else ()
    notes = bundle.manifest.get("notes")
    if not isinstance(notes, list):
        return cut
    return (*cut, *(str(note)[:NOTE_MOST] for note in notes[:NOTES_MOST]))
