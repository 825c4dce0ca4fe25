# SPDX-License-Identifier: Apache-2.0
"""Rules over a black box: what is known at a moment, and rates over passes that asked anew.

Each topic's window is the one that can be honest for it: the last seconds before the moment, when
both of their passes asked everything that it is made of; else the last two whole passes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from seawall.accounts.scene import Middle, Scene, TopicWindow
from seawall.blackbox.moments import Moments, Pass
from seawall.host.bundle import BundleHost
from seawall.host.host import JSON, READ_LIMIT_BYTES, Unread
from seawall.host.recording import Round, overlay_passes
from seawall.readings.snapshot import Snapshot

T = TypeVar("T")

NOT_RECORDED: Final = "the black box does not record it"


class BoxScene(Scene):
    """``known``: everything at the moment.  ``first`` and ``last`` are that too: what is
    unread in a window that was not taken is nobody's loss.
    """

    def __init__(self, known: Snapshot, moments: Moments) -> None:
        super().__init__(known, known)
        self._near = moments.near and _fresh_scene(moments.near, moments)
        self._whole = moments.whole and _whole_scene(moments.whole, moments.whole_middle)

    @property
    def window_seconds(self) -> float | None:
        """Of the window nearest to the moment; None without one."""
        scene = self._near or self._whole
        return scene.window_seconds if scene else None

    def _window(self, topic: type[Any]) -> Any:
        scene = self._scene_of(topic)
        if scene is not None:
            return scene.get(TopicWindow[topic])  # type: ignore[valid-type]
        words = "a rate needs two passes, and the black box has only one of it before this moment"
        return Unread(topic.__name__, "not_captured", words)

    def _middle(self, topic: type[Any]) -> Any:
        scene = self._scene_of(topic)
        if scene is not None:
            return scene.get(Middle[topic])  # type: ignore[valid-type]
        return self._window(topic)

    def _scene_of(self, topic: type[Any]) -> Scene | None:
        """The one whose window is honest for it."""
        if self._near:
            found = self._near.get(TopicWindow[topic])  # type: ignore[valid-type]
            if not isinstance(found, Unread) and not _is_old(self._near, topic):
                return self._near
        return self._whole


class FreshHost:
    """One pass; counts the questions that only an older pass answers."""

    def __init__(self, fresh: Round, known: Round) -> None:
        self._fresh = BundleHost(fresh, NOT_RECORDED)
        self._asked, self._known = fresh, known
        self.missed = 0

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        self.missed += path in self._known.files and path not in self._asked.files
        return self._fresh.read(path, limit_bytes)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        for path in paths:
            yield self.read(path)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        self.missed += path in self._known.names and path not in self._asked.names
        return self._fresh.names(path)

    def link(self, path: str) -> str | Unread:
        self.missed += path in self._known.links and path not in self._asked.links
        return self._fresh.link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        key = (probe, argument)
        self.missed += key in self._known.probes and key not in self._asked.probes
        return self._fresh.ask(probe, argument)


class FreshSnapshot(Snapshot):
    """Of a FreshHost; knows which topics would need an older answer, parts of parts included."""

    def __init__(self, host: FreshHost) -> None:
        super().__init__(host)
        self._fresh_host = host
        self._old: set[type[Any]] = set()
        self._open: list[bool] = []

    def is_old(self, topic: type[Any]) -> bool:
        """Whether it was asked for, and this pass does not hold all of it."""
        return topic in self._old

    def get(self, topic: type[T]) -> T | Unread:
        value = super().get(topic)
        if self._open and topic in self._old:
            self._open[-1] = True
        return value

    def fetch(self, topic: type[Any]) -> Any:
        self._open.append(False)
        before = self._fresh_host.missed
        value = super().fetch(topic)
        if self._open.pop() or self._fresh_host.missed > before:
            self._old.add(topic)
        return value


def _fresh_scene(pair: tuple[Pass, Pass], moments: Moments) -> Scene:
    known = moments.known
    earlier, later = (FreshSnapshot(FreshHost(one.round, known)) for one in pair)
    return Scene(earlier, later, _middle_snapshot(pair[0], moments.near_middle))


def _whole_scene(pair: tuple[Pass, Pass], middle: Pass | None) -> Scene:
    earlier, later = (Snapshot(BundleHost(one.round, NOT_RECORDED)) for one in pair)
    return Scene(earlier, later, _middle_snapshot(pair[0], middle))


def _middle_snapshot(begin: Pass, middle: Pass | None) -> Snapshot | None:
    """What the pass asked, and all else as it was at the begin of the window."""
    if middle is None:
        return None
    return Snapshot(BundleHost(overlay_passes((begin.round, middle.round)), NOT_RECORDED))


def _is_old(scene: Scene, topic: type[Any]) -> bool:
    return any(
        isinstance(moment, FreshSnapshot) and moment.is_old(topic)
        for moment in (scene.first, scene.last)
    )
