# SPDX-License-Identifier: Apache-2.0
"""The probes ``residency...``: how much of a file is in the page cache.

cachestat(2) since 6.5, mincore(2) before; what each cannot tell is None.  Asked one by one
(``measure``), many at once (``measure_each``) or for a folder slice by slice (``walk``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from seawall.host.host import JSON, Host, Unread, Why

Kind = Literal["file", "shmem", "hugetlb", "folder", "special"]
"""shmem cannot be dropped (tmpfs, memfd, SysV); hugetlb is not in the page cache; folders and
devices, pipes and sockets are not asked."""

_COUNTS: Final = ("cached", "dirty", "writeback", "evicted", "recently_evicted")
_MOST: Final = 1 << 63
_REASONS: Final = frozenset(get_args(Why))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePages:
    """One file.  Counts are pages of the asked kernel; None where it does not tell."""

    kind: Kind
    device: int
    """st_dev of the file whose pages these are; on overlayfs the layer's."""
    inode: int
    size_bytes: int
    cached: int | None
    """None: the kernel tells only the owner (mincore would say "all")."""
    dirty: int | None
    writeback: int | None
    evicted: int | None
    """Pages that were in memory and are not any more, as far as the kernel remembers."""
    recently_evicted: int | None
    """Those of them whose return would count as a refault: pushed out too early."""
    method: str | None
    """cachestat or mincore."""
    deleted: bool
    overlay: bool | None
    """On overlayfs: whether the layer's file was found; None elsewhere."""
    path: str
    """The layer's path on the host, or where the walk met it; empty when not told."""
    held_bytes: int | None = None
    """hugetlbfs: what is allocated to it."""


@dataclass(frozen=True, slots=True)
class WalkSlice:
    """A part of a folder."""

    sums: Mapping[str, int]
    """files, folders, size (bytes), unknown, refused, and pages: cached, shmem, dirty, ..."""
    rows: tuple[FilePages, ...]
    """The largest, by what they hold."""
    rest: tuple[str, ...]
    """Folders that are still to be walked."""
    mounts: tuple[str, ...]
    """Mount points that were not entered."""
    refusals: tuple[str, ...]
    goes_on: bool
    """It ended inside a folder: the next slice is asked for without one."""
    at: str = ""
    """Then that folder."""


_SUMS: Final = (
    "files", "folders", "size", "unknown", "refused", "shmem", "by_mincore", *_COUNTS,
)  # fmt: skip


def measure(host: Host, path: str) -> FilePages | Unread:
    """One file at a path of the host, or behind a magic link of a process."""
    answer = host.ask("residency", path)
    return answer if isinstance(answer, Unread) else _row(answer, path)


def measure_each(host: Host, items: Sequence[Mapping[str, Any]]) -> list[FilePages | Unread]:
    """One answer for each item, in order: ``{"open": [path, ...], "pid", "name", "inode"}``."""
    answers = host.ask("residency_each", json.dumps(items))
    if isinstance(answers, Unread):
        return [answers] * len(items)
    rows = answers if isinstance(answers, list) else []
    if len(rows) != len(items):
        words = f"expected {len(items)} answers, found {len(rows)}"
        return [Unread("residency_each", "malformed", words)] * len(items)
    return [_row(row, str(item.get("name", ""))) for row, item in zip(rows, items, strict=True)]


def walk(host: Host, request: Mapping[str, Any]) -> WalkSlice | Unread:
    """One slice: ``{"folder", "seconds", "keep", "above", "seen"}``."""
    answer = host.ask("residency_walk", json.dumps(request))
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    sums = {name: _count(values.get(name)) for name in _SUMS}
    if None in sums.values():
        return Unread("residency_walk", "malformed", "expected sums over files")
    rows = [_row(row, "") for row in _dicts(values)]
    return WalkSlice(
        sums=cast("dict[str, int]", sums),
        rows=tuple(row for row in rows if isinstance(row, FilePages)),
        rest=_words(values.get("rest")),
        mounts=_words(values.get("mounts")),
        refusals=_words(values.get("first_refused")),
        goes_on=values.get("goes_on") is True,
        at=at if isinstance(at := values.get("at"), str) else "",
    )


def _dicts(values: Mapping[str, JSON]) -> list[dict[str, JSON]]:
    rows = values.get("rows")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _words(value: JSON) -> tuple[str, ...]:
    return tuple(w for w in value if isinstance(w, str)) if isinstance(value, list) else ()


def _row(answer: JSON, name: str) -> FilePages | Unread:
    if not isinstance(answer, dict):
        return Unread(name, "malformed", "expected an object")
    why = answer.get("why")
    if isinstance(why, str):
        reason = cast("Why", why) if why in _REASONS else "malformed"
        return Unread(name, reason, str(answer.get("detail", "")))
    kind, path = answer.get("kind"), answer.get("layer", answer.get("path", ""))
    if kind not in get_args(Kind):
        return Unread(name, "malformed", "expected a kind of file")
    numbers = {key: _count(answer.get(key)) for key in ("device", "inode", "size", *_COUNTS)}
    if kind in ("file", "shmem", "hugetlb") and None in (
        numbers["device"], numbers["inode"], numbers["size"],
    ):  # fmt: skip
        return Unread(name, "malformed", "expected device, inode and size")
    overlay, method = answer.get("overlay"), answer.get("method")
    return FilePages(
        kind=cast("Kind", kind),
        device=numbers["device"] or 0,
        inode=numbers["inode"] or 0,
        size_bytes=numbers["size"] or 0,
        **{key: numbers[key] for key in _COUNTS},
        method=method if isinstance(method, str) else None,
        deleted=answer.get("deleted") is True,
        overlay=overlay if isinstance(overlay, bool) else None,
        path=path if isinstance(path, str) else "",
        held_bytes=_count(answer.get("held")),
    )


def _count(value: JSON) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
    return cast("int", value) if is_count else None
