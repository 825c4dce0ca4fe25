# SPDX-License-Identifier: Apache-2.0
"""Every topic there is, found by folder: what ``capture`` has to ask."""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, get_args

import seawall.accounts
import seawall.readings
from seawall.accounts import (
    cache,
    cgroup_memory,
    claims,
    devices,
    drivers,
    limits,
    node_memory,
    pods,
    tracing,
)
from seawall.host.host import Unread

_HOMES: Final = (
    seawall.readings, seawall.accounts, cache, cgroup_memory, claims, devices, drivers, limits,
    node_memory, pods, tracing,
)  # fmt: skip
"""Folders whose modules may be topics; the others' are not imported."""


def all_topics() -> list[type[Any]]:
    """The classes that a ``read(host)`` or an ``account(...)`` gives, by name of module."""
    topics = []
    for home in _HOMES:
        for found in pkgutil.iter_modules(home.__path__, home.__name__ + "."):
            module = import_module(found.name)
            for name in ("read", "account"):
                function = getattr(module, name, None)
                if function is not None and function.__module__ == module.__name__:
                    topics.append(_given_by(function))
    return topics


def _given_by(function: Callable[..., Any]) -> Any:
    """The topic in the annotation ``Topic`` or ``Topic | Unread``."""
    given = function.__annotations__["return"]
    return next((part for part in get_args(given) if part is not Unread), given)
