# SPDX-License-Identifier: Apache-2.0
"""What judgement sees: one moment, or two of them some seconds apart, and one between them.

A rule that needs a rate takes ``Window[Topic]``; one that asks whether it lasts, ``Middle[Topic]``
beside it.  No rule judges a total since boot.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_args, get_origin

from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot

T = TypeVar("T")

WINDOW_LEAST_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class TopicWindow(Generic[T]):
    """The same topic twice, ``seconds`` apart (at least WINDOW_LEAST_SECONDS)."""

    earlier: T
    later: T
    seconds: float


@dataclass(frozen=True, slots=True)
class Middle(Generic[T]):
    """The topic between the two moments of a ``Window``, ``seconds`` after the earlier one; on a
    live machine and in a black box at least what /proc/meminfo and /proc/vmstat tell is of that
    time, the rest may be as it was at the earlier one.
    """

    value: T
    seconds: float


class Scene:
    """The moments of one host.  ``last`` is None until the window has passed."""

    def __init__(
        self, first: Snapshot, last: Snapshot | None = None, middle: Snapshot | None = None
    ) -> None:
        self.first = first
        self.last = last
        self.middle = middle
        """Between the two; None where nobody looked."""
        self.left_out: set[type[Any]] = set()
        """Topics that were not read at the first moment, for lack of time."""
        self.too_dear: set[type[Any]] = set()
        """Topics that are not asked now, though a rule would like to have them."""

    @classmethod
    def of(cls, moments: Sequence[Snapshot]) -> "Scene":
        """Of one moment or more, in their order: the first, the last, and of those between them
        the one that is nearest to the middle of the window by the clock, where there is one.
        """
        scene = cls(moments[0], moments[-1] if len(moments) > 1 else None)
        half = (scene.window_seconds or 0.0) / 2
        timed = ((scene._seconds_until(one), one) for one in moments[1:-1])
        inside = [(abs(seconds - half), one) for seconds, one in timed if seconds is not None]
        scene.middle = min(inside, key=lambda row: row[0])[1] if inside else None
        return scene

    @property
    def window_seconds(self) -> float | None:
        """Between the two moments by the monotonic clock; None without a second one."""
        return None if self.last is None else self._seconds_until(self.last)

    def _seconds_until(self, moment: Snapshot) -> float | None:
        earlier, later = self.first.get(Kernel), moment.get(Kernel)
        if isinstance(earlier, Unread) or isinstance(later, Unread):
            return None
        if earlier.monotonic_seconds is None or later.monotonic_seconds is None:
            return None
        if earlier.boot_id != later.boot_id:
            return None  # counters of two boots cannot be compared
        seconds = later.monotonic_seconds - earlier.monotonic_seconds
        return seconds if seconds >= 0 else None  # a clock that runs backwards is none

    def get(self, need: Any) -> Any:
        """The value for a topic or a ``Window[topic]``; an Unread with the reason."""
        if get_origin(need) is TopicWindow:
            return self._window(get_args(need)[0])
        if get_origin(need) is Middle:
            return self._middle(get_args(need)[0])
        # One finding must not mix moments: beside a window stands what is true at its end.
        moment = self.last or self.first
        if need in self.too_dear and not moment.has(need):
            return Unread(need.__name__, "not_reached", "left out: too slow here")
        return moment.get(need)

    def lost_below(self, topics: Iterable[type[Any]]) -> Iterator[Unread]:
        """What a bundle that was cut does not hold of these, and of what they are made of."""
        return (self.last or self.first).lost_below(topics)

    def _window(self, topic: type[Any]) -> Any:
        name = topic.__name__
        if self.last is None:
            return Unread(name, "not_captured", "a rate needs two readings some seconds apart")
        seconds = self.window_seconds
        if seconds is None or seconds < WINDOW_LEAST_SECONDS * 0.9:
            words = f"the window is shorter than {WINDOW_LEAST_SECONDS:g} s"
            return Unread(name, "not_captured", words)
        if topic in self.left_out:
            # Read now it would be as late as the second one, and the rate a lie.
            return Unread(name, "not_reached", "its first reading was left out: too slow here")
        earlier, later = self.first.get(topic), self.last.get(topic)
        if isinstance(earlier, Unread):
            return earlier
        if isinstance(later, Unread):
            return later
        return TopicWindow(earlier, later, seconds)

    def _middle(self, topic: type[Any]) -> Any:
        window = self._window(topic)
        if isinstance(window, Unread):
            return window
        seconds = None if self.middle is None else self._seconds_until(self.middle)
        if self.middle is None or seconds is None or not 0 < seconds < window.seconds:
            return Unread(topic.__name__, "not_captured", "nobody looked between the two readings")
        value = self.middle.get(topic)
        return value if isinstance(value, Unread) else Middle(value, seconds)
