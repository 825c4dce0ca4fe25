# SPDX-License-Identifier: Apache-2.0
"""A scope for this machine, from the workloads that are here: ``guard check --suggest-scope``.

Containers first: the subtree in which their manager keeps them, under either cgroup driver and on
either cgroup version.  Where there are none, the services that no role protects, each by itself.
Pure.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from seawall.cgroup_paths import place_of
from seawall.guard.explain import ExplainedWorkload
from seawall.guard.keys import BY_NAME, toml_text
from seawall.words import counted

_KUBEPODS: Final = re.compile(r"(?:[a-z0-9]+-)*kubepods(?:\.slice)?\Z")
_SERVICES_MOST: Final = 16
_NAMED_MOST: Final = 8


class ScopeSuggestion(NamedTuple):
    """One subtree that may be in the scope."""

    path: str
    containers: int
    """In it; 0: it is a service."""
    beside: tuple[str, ...]
    """Services in it that no role protects: the scope reaches them too."""


def suggestions_of(seen: Iterable[ExplainedWorkload]) -> list[ScopeSuggestion]:
    """The subtrees, those with most containers first."""
    rows = [one for one in seen if not place_of(one.path).is_delegated]
    held: dict[str, int] = {}
    for one in rows:
        if root := _root_of(one.path):
            held[root] = held.get(root, 0) + 1
    services = [one.path for one in rows if _is_service(one)]
    if not held:
        return [ScopeSuggestion(path, 0, ()) for path in sorted(services)[:_SERVICES_MOST]]
    roots = sorted(held, key=lambda root: (-held[root], root))
    return [
        ScopeSuggestion(root, held[root], tuple(p for p in services if p.startswith(f"{root}/")))
        for root in roots
    ]


def _root_of(path: str) -> str:
    """Where whoever made this container keeps all of them; empty: it is no container."""
    place = place_of(path)
    if place.kind != "container" or place.cgroup != path:
        return ""
    parts = path.strip("/").split("/")
    for number, part in enumerate(parts, 1):
        if _KUBEPODS.match(part):
            return "/" + "/".join(parts[:number])
    return path.rpartition("/")[0] or path


def _is_service(one: ExplainedWorkload) -> bool:
    is_unit = one.path.startswith("/system.slice/") and one.path.endswith(".service")
    return is_unit and not one.protected_by and not one.own_why


def lines(found: Sequence[ScopeSuggestion]) -> Iterator[str]:
    """As it may be put into guard.toml."""
    if not found:
        yield "# No container is here, and no service but those that a node needs."
        yield '# Name what may be ended, such as scope = ["/system.slice/x.service"]'
        return
    for one in found:
        if one.containers:
            yield f"# {one.path}: {counted(one.containers, 'container', 'containers')}"
        else:
            yield f"# {one.path}: a service"
        if one.beside:
            yield "#   and services, which it reaches too: protect those that must stay, or"
            yield "#   give the containers a slice of their own (docs/guard.md). Here:"
            yield f"#   {', '.join(one.beside[:_NAMED_MOST])}"
            if len(one.beside) > _NAMED_MOST:
                yield f"#   and {len(one.beside) - _NAMED_MOST} more"
    yield f"scope = {toml_text(BY_NAME['scope'], tuple(one.path for one in found))}"
