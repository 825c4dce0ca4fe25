# SPDX-License-Identifier: Apache-2.0
"""Which cgroups ran into their own memory limit during the window.

v2: ``max`` of memory.events.local (5.2+), else of memory.events, where a parent shows its
children's as well.  v1: memory.failcnt and memory.memsw.failcnt, which belong to the cgroup
whose limit it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.readings.memcg import Memcg, Memcgs


@dataclass(frozen=True, slots=True)
class LimitHits:
    """How often, and where it is counted."""

    path: str
    hits: int
    file: str


def limit_hits(window: TopicWindow[Memcgs]) -> list[LimitHits]:
    """Most often first; a cgroup that is new in the window counts from zero."""
    place = window.later.mount_point.rstrip("/")
    found: dict[str, LimitHits] = {}
    for path, memcg in window.later.by_path.items():
        count, name, _ = counter_of(memcg)
        before = window.earlier.by_path.get(path)
        hits = gained(counter_of(before)[0] if before else 0, count)
        if hits:
            folder = place if path == "/" else place + path
            found[path] = LimitHits(path, hits, f"{folder}/{name}")
    kept = [hit for path, hit in found.items() if not _is_echo(path, found, window.later.by_path)]
    return sorted(kept, key=lambda hit: (-hit.hits, hit.path))


def refusals(memcg: Memcg) -> int | None:
    """Charges that v1's two limits refused: where that of memory and swap is as low as that of
    memory, as with Docker's ``--memory-swap`` equal to ``--memory``, it refuses first.
    """
    if memcg.failcnt is None:
        return memcg.memsw_failcnt
    return memcg.failcnt + (memcg.memsw_failcnt or 0)


def refusal_file(memcg: Memcg) -> str:
    """The one of v1's two that counts most of them."""
    both = (memcg.memsw_failcnt or 0) > (memcg.failcnt or 0)
    return "memory.memsw.failcnt" if both else "memory.failcnt"


def counter_of(memcg: Memcg) -> tuple[int | None, str, bool]:
    """The count, its file, and whether descendants are counted in it."""
    if memcg.version == 1:
        return refusals(memcg), refusal_file(memcg), False
    if "max" in memcg.events_local:
        return memcg.events_local["max"], "memory.events.local", False
    return memcg.events.get("max"), "memory.events", True


def _is_echo(path: str, found: Mapping[str, LimitHits], memcgs: Mapping[str, Memcg]) -> bool:
    """Whether an ancestor only repeats what a cgroup below it counted."""
    if not counter_of(memcgs[path])[2]:
        return False
    inside = path.rstrip("/") + "/"
    return any(other != path and other.startswith(inside) for other in found)
