# SPDX-License-Identifier: Apache-2.0
"""The kinds of evidence behind a group's uncounted memory, by the watcher's words."""

from seawall.guard.tick_facts import Group

ALWAYS_ASKED = ("packet rings", "socket buffers", "kernel pages")
"""In peace too, once a minute at least; the last of them are traced as they are taken.  What
drivers have mapped is asked for only near a shortage, or once 256 MiB have grown."""


def sources_of(group: Group) -> tuple[str, ...]:
    """Sources of what is told of a group's uncounted memory, one for each kind."""
    return tuple(part.strip() for part in group.outside.sources.split(",") if part.strip())


def is_asked_late(group: Group) -> bool:
    """Some of it may have been there for weeks before anybody asked."""
    return any(not source.startswith(ALWAYS_ASKED) for source in sources_of(group))
