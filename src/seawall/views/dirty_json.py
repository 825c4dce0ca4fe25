# SPDX-License-Identifier: Apache-2.0
"""Dirty pages as a part of a JSON document: what ``dirty_text.py`` says, in bytes."""

from typing import Any

from seawall.accounts.cache.dirty import Dirty, Waiter
from seawall.accounts.cache.dirty_groups import DirtyGroup
from seawall.accounts.cache.dirty_thresholds import DirtyLimits
from seawall.views.dirty_text import settings_words
from seawall.views.document import with_unread


def part(dirty: Dirty) -> dict[str, Any]:
    """One object; what could not be read is absent and named in its ``unread``."""
    told = dirty.sysctls
    return with_unread(
        {
            "dirty_bytes": dirty.dirty,
            "writeback_bytes": dirty.writeback,
            "dirtyable_bytes": dirty.dirtyable,
            "limits": _limits(dirty.printed),
            "computed_limits": _limits(dirty.computed),
            "dirty_ratio_percent": told and told.dirty_ratio_percent,
            "dirty_background_ratio_percent": told and told.dirty_background_ratio_percent,
            "dirty_setting_bytes": told and told.dirty_bytes,
            "dirty_background_setting_bytes": told and told.dirty_background_bytes,
            "expire_seconds": dirty.expire_seconds,
            "wakeup_seconds": dirty.wakeup_seconds,
            "workloads": [_group(one) for one in dirty.groups] if dirty.groups_told else None,
            "waiting_processes": dirty.waiting,
            "waiters": [_waiter(one) for one in dirty.waiters],
            "settings": list(settings_words(dirty)),
        }
    )


def _limits(limits: DirtyLimits | None) -> dict[str, int] | None:
    if limits is None:
        return None
    return {
        "background_bytes": limits.background,
        "slowed_from_bytes": limits.freerun,
        "stop_bytes": limits.limit,
    }


def _group(one: DirtyGroup) -> dict[str, Any]:
    return {
        "workload": one.group.name,
        "cgroup": one.group.path,
        **with_unread(
            {
                "dirty_bytes": one.dirty,
                "writeback_bytes": one.writeback,
                "beside_dirty_bytes": one.beside_dirty,
                "beside_writeback_bytes": one.beside_writeback,
                "limits": _limits(one.limits),
                "io_stalled_fraction": one.io_stalled,
            }
        ),
    }


def _waiter(one: Waiter) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "comm": one.comm,
        "where": one.where,
        "is_throttled": one.is_throttled,
        "workload": one.workload,
    }
