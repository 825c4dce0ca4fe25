# SPDX-License-Identifier: Apache-2.0
"""pids.current, pids.max and pids.events of every cgroup (both versions)."""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread
from seawall.readings.reading import Unlimited


@dataclass(frozen=True, slots=True, kw_only=True)
class PidsCgroup:
    path: str
    current: int
    limit: int | Unlimited
    max_events: int | None
    """How often a fork was refused here (pids.events ``max``)."""


@dataclass(frozen=True, slots=True)
class PidsCgroups:
    by_path: Mapping[str, PidsCgroup]


def read(host: Host) -> PidsCgroups | Unread:
    raise NotImplementedError
