# SPDX-License-Identifier: Apache-2.0
"""All objects of one resource, once and then as they change, whatever happens to the connection.

The first list comes through the watch itself where the server has that (WatchList, KEP-3157), else
page by page.  A watch that ends goes on at the last version heard of; one that the server has
forgotten (410, as status or as an ERROR event) is listed anew, and what is gone by then is told.
"""

import random
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from seawall.cluster.kube.kube_client import (
    SILENCE_SECONDS,
    KubeClient,
    KubeProblem,
    KubeRefusal,
    KubeUnreachable,
    Query,
    RetryDelay,
    WatchStream,
    steady_seconds,
)

T = TypeVar("T")

RELIST_JITTER_SECONDS: Final = 10.0
"""Not all who watch list anew at once after the server forgot."""
WATCH_SECONDS: Final = 3000
"""The server ends a watch after so long, and up to ten minutes more."""
LIST_LIMIT: Final = 100
FIRST_LIST_SECONDS: Final = 120.0
"""A server that ignores the wish for a first list never says that it is over."""
_INITIAL_END: Final = "k8s.io/initial-events-end"


class ObjectEventKind(Enum):
    """What a watch tells."""

    CHANGED = "changed"
    """The object is new, or another one than before."""
    GONE = "gone"
    """It was deleted; ``value`` is as it was last."""
    SYNCED = "synced"
    """All objects have been told."""
    SIGN = "sign"
    """Nothing changed: a bookmark, or a watch that was opened again."""
    BROKEN = "broken"
    """The API cannot be asked; nobody knows what changes meanwhile."""


class ObjectEvent(NamedTuple, Generic[T]):
    """One thing that a watch tells."""

    kind: ObjectEventKind
    at_seconds: float
    """By the API server's clock (``KubeClient.server_seconds``); 0 before that was ever heard."""
    value: T | None = None
    text: str = ""
    """Why it is broken."""


class WatchIdentity(NamedTuple):
    """By what a watch compares two objects."""

    key: str
    uid: str
    version: int
    """0: cannot be compared."""


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the API's names
    next: str = msgspec.field(name="continue", default="")
    annotations: dict[str, str] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Page(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    items: list[msgspec.Raw] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _ErrorStatus(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class _NoFirstList(Exception):
    """The server has no WatchList."""


class ListWatch(Generic[T]):
    """Tells ``sink`` of every object of ``path``, in the thread that calls ``run``.

    decode:    of an object's JSON; ``msgspec.MsgspecError``: it is counted in ``undecodable`` and
               left out
    identity:  of what ``decode`` made
    """

    def __init__(self, client: KubeClient, path: str,
                 decode: Callable[[msgspec.Raw], T], identity: Callable[[T], WatchIdentity],
                 sink: Callable[[ObjectEvent[T]], None], *, query: Query | None = None,
                 relist_jitter_seconds: float = RELIST_JITTER_SECONDS,
                 has_watch_list: bool = True) -> None:  # fmt: skip
        """``has_watch_list``: try it; a server that has none says so, and is listed by pages."""
        self._client, self._path, self._sink = client, path, sink
        self._decode, self._identity = decode, identity
        self._query = dict(query or {})
        self._jitter = relist_jitter_seconds
        self._objects: dict[str, T] = {}
        self._version = ""
        self._has_first_list = has_watch_list
        self._ended = threading.Event()
        self._stream: WatchStream | None = None
        self._was_open = False
        self._heard_at = steady_seconds()
        self.is_synced = False
        """The first list is whole."""
        self.restarts: dict[str, int] = {}
        """How often by reason: ``expired``, ``silent``, ``refused``, ``unreachable``, ``ended``."""
        self.relists = 0
        """Whole lists, the first one too."""
        self.undecodable = 0
        self.problem = ""
        """Why it cannot watch just now; empty: it does."""

    def __len__(self) -> int:
        return len(self._objects)

    def values(self) -> Sequence[T]:
        """All objects, for who knows that the thread which runs is not at work on them."""
        return list(self._objects.values())

    def stale_seconds(self) -> float:
        """Since the last event, bookmark or list."""
        return steady_seconds() - self._heard_at

    def stop(self) -> None:
        """``run`` returns soon; from any thread."""
        self._ended.set()
        if (stream := self._stream) is not None:
            stream.close()

    def run(self) -> None:
        """Until ``stop``.  What ``sink`` raises ends it."""
        delay = RetryDelay()
        while not self._ended.is_set():
            try:
                self._go_on(delay)
            except _NoFirstList:
                self._has_first_list = False
                self._restart("no first list")
            except KubeRefusal as problem:
                if problem.status == 410:
                    self._expire(problem)
                else:
                    self._wait(problem, delay, "refused")
            except KubeProblem as problem:
                self._wait(problem, delay, "unreachable")

    def _go_on(self, delay: RetryDelay) -> None:
        """One watch until it ends, after a list where one is due."""
        if not self._version and not self._has_first_list:
            self._list()
        is_first = not self._version
        query: dict[str, str | int | bool] = {
            **self._query, "allowWatchBookmarks": True,
            "timeoutSeconds": WATCH_SECONDS + random.randrange(600),  # noqa: S311 - no secret
        }  # fmt: skip
        if is_first:
            query |= {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        else:
            query["resourceVersion"] = self._version
        try:
            stream = self._client.watch(self._path, query, silence_seconds=SILENCE_SECONDS)
        except KubeRefusal as problem:
            if is_first and problem.status in {400, 422}:
                raise _NoFirstList from problem
            raise
        self._stream, self._was_open = stream, True
        self.problem = ""
        if self._ended.is_set():
            stream.close()
        try:
            if not is_first:
                self._tell(ObjectEventKind.SIGN)
            self._read(stream, is_first=is_first, delay=delay)
        finally:
            self._stream = None
            stream.close()
        self._restart("ended")

    def _read(self, stream: WatchStream, *, is_first: bool, delay: RetryDelay) -> None:
        listed: set[str] | None = set() if is_first else None
        deadline = steady_seconds() + FIRST_LIST_SECONDS
        for line in stream:
            event = _decoded(line, _EVENT)
            if event.type == "ERROR":
                status = _decoded(event.object, _ERROR)
                raise KubeRefusal(status.code, status.reason, status.message)
            if event.type == "BOOKMARK":
                metadata = _decoded(event.object, _BOOKMARK).metadata
                self._version = metadata.resourceVersion or self._version
                if listed is not None and _INITIAL_END in (metadata.annotations or {}):
                    self._synced(listed)
                    listed = None
                self._tell(ObjectEventKind.SIGN)
            elif event.type == "DELETED":
                self._drop(event.object)
            else:
                self._take(event.object, listed)
            delay.reset()
            if listed is not None and steady_seconds() > deadline:
                self._version = ""
                raise _NoFirstList
        if listed is not None:
            self._version = ""  # half a list: begun again
            if not self._ended.is_set():
                raise KubeUnreachable("the first list of the watch broke off")

    def _list(self) -> None:
        """Page by page; a list that is too old for its next page raises 410."""
        listed: set[str] = set()
        mark = ""
        while not self._ended.is_set():
            query: dict[str, str | int | bool] = {**self._query, "limit": LIST_LIMIT}
            if mark:
                query["continue"] = mark
            page = _decoded(self._client.raw(self._path, query), _PAGE)
            for item in page.items or ():
                self._take(item, listed)
            mark = page.metadata.next
            if not mark:
                self._version = page.metadata.resourceVersion
                self._synced(listed)
                return

    def _synced(self, listed: set[str]) -> None:
        """What was not listed is gone."""
        for key in [key for key in self._objects if key not in listed]:
            self._tell(ObjectEventKind.GONE, self._objects.pop(key))
        self.is_synced = True
        self.relists += 1
        self._tell(ObjectEventKind.SYNCED)

    def _take(self, data: msgspec.Raw, listed: set[str] | None) -> None:
        """``listed``: keys of a list, which is newer than all that was told before it."""
        this = self._object(data)
        if this is None:
            return
        key, uid, version = self._identity(this)
        if listed is not None:
            listed.add(key)
        else:
            self._advance(version)
        before = self._objects.get(key)
        if before is not None:
            _, uid_before, version_before = self._identity(before)
            is_older = listed is None and version < version_before
            if uid == uid_before and version and (version == version_before or is_older):
                return
        self._objects[key] = this
        self._tell(ObjectEventKind.CHANGED, this)

    def _drop(self, data: msgspec.Raw) -> None:
        this = self._object(data)
        if this is None:
            return
        key, uid, version = self._identity(this)
        self._advance(version)
        before = self._objects.get(key)
        if before is None:
            return
        _, uid_before, version_before = self._identity(before)
        if uid == uid_before and not 0 < version < version_before:
            del self._objects[key]
            self._tell(ObjectEventKind.GONE, this)

    def _object(self, data: msgspec.Raw) -> T | None:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            self.undecodable += 1
            return None

    def _advance(self, version: int) -> None:
        if version and self._version:  # while a first list comes, half of it must not count
            self._version = str(version)

    def _tell(self, kind: ObjectEventKind, value: T | None = None, text: str = "") -> None:
        if kind is not ObjectEventKind.BROKEN:
            self._heard_at = steady_seconds()
        try:
            at = self._client.server_seconds(0.0)
        except KubeProblem:
            at = 0.0
        self._sink(ObjectEvent(kind, at, value, text))

    def _expire(self, problem: KubeRefusal) -> None:
        """A list anew; not at once, for all others do the same."""
        self._version = ""
        self.problem = str(problem)
        self._restart("expired")
        self._ended.wait(random.uniform(0.0, self._jitter))  # noqa: S311 - no secret

    def _wait(self, problem: KubeProblem, delay: RetryDelay, reason: str) -> None:
        """A watch that broke off is opened again; only what cannot be opened is broken."""
        if self._ended.is_set():
            return
        text = str(problem)
        self._restart("silent" if "timed out" in text else reason)
        if not self._was_open:
            self.problem = text
            self._tell(ObjectEventKind.BROKEN, text=text)
        self._was_open = False
        self._ended.wait(delay.next_seconds(problem))

    def _restart(self, reason: str) -> None:
        self.restarts[reason] = self.restarts.get(reason, 0) + 1


_EVENT: Final = msgspec.json.Decoder(_Event)
_PAGE: Final = msgspec.json.Decoder(_Page)
_BOOKMARK: Final = msgspec.json.Decoder(_Bookmark)
_ERROR: Final = msgspec.json.Decoder(_ErrorStatus)


def _decoded(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise KubeUnreachable(f"a watch says what is no event: {problem}") from problem
