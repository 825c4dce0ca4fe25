# SPDX-License-Identifier: Apache-2.0
"""The probe ``gpu_query_inside``: what the driver tells a container, by the host's libraries.

Whatever stands in the answer may come from the container: libraries of a driver load others later,
and those would be its files.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread
from seawall.readings.gpu_query import GpuQuery, Library, query_of
from seawall.readings.probe_answer import each, number, numbers, reason, text

PROBE: Final = "gpu_query_inside"
_VERSION: Final = re.compile(r"\.so\.([0-9]{2,8}(?:\.[0-9]{1,8}){1,3})\Z")


class OwnLibrary(NamedTuple):
    """A driver library that the container has."""

    path: str
    """As the container calls it."""
    file: str | None
    """Its name once links are followed; None: not that of a library."""
    number: tuple[int, ...]
    """Device and inode: the same file is the same library."""

    @property
    def version(self) -> str | None:
        """As the name of the file tells; None: it does not."""
        found = _VERSION.search(self.file or "")
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Inside:
    """The answer of the probe ``gpu_query_inside``: the driver, asked as a container's process."""

    query: GpuQuery | Unread
    uid: int | None
    """As this host numbers it; None: it was not come so far."""
    own: Mapping[str, tuple[OwnLibrary, ...]] | Unread
    """``nvml``, ``cuda``; nothing for a process that has this host's files."""
    host_files: Mapping[str, tuple[int, ...]]
    """Device and inode of the host's."""
    left_behind: tuple[int, ...]
    """Processes of ours that the kernel did not let go of."""


def ask(host: Host, pid: int, start_ticks: int, seconds: float) -> Inside | Unread:
    """As that process; takes at most two seconds longer."""
    answer = host.ask(PROBE, json.dumps([pid, start_ticks, seconds]))
    if isinstance(answer, Unread):
        return answer
    return parsed(host, answer) or Unread(PROBE, "malformed", "expected libraries and devices")


def parsed(host: Host, answer: JSON) -> Inside | None:
    """Nothing escapes from any answer."""
    told = answer if isinstance(answer, dict) else {}
    problem = reason(PROBE, told.get("problem"))
    libraries = _mapping(told.get("libraries"))
    runtime: JSON = {"name": "libcudart.so", "path": None, "tried": []}
    query = problem or query_of(host, {**told, "libraries": {**libraries, "runtime": runtime}})
    if query is None:
        return None
    files = {key: numbers(_mapping(row).get("file"), 2) for key, row in libraries.items()}
    return Inside(
        query=query,
        uid=number(told.get("uid")),
        own=_owns(_mapping(told.get("own"))),
        host_files={key: found for key, found in files.items() if found},
        left_behind=numbers(told.get("left_behind")) or (),
    )


def _mapping(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _owns(told: dict[str, JSON]) -> Mapping[str, tuple[OwnLibrary, ...]] | Unread:
    if (problem := reason("its files", told.get("problem"))) is not None:
        return problem
    return {key: each(rows, _own) or () for key, rows in told.items()}


def _own(value: JSON) -> OwnLibrary | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    path, found = text(value[0]), numbers(value[2], 2)
    return None if path is None or found is None else OwnLibrary(path, text(value[1]), found)


def own_words(inside: Inside, library: Library | None) -> str:
    """How the container's libcuda stands to the one that was asked; empty: it is that one."""
    host = inside.host_files.get("cuda")
    if host is None or library is None:
        return ""
    if isinstance(inside.own, Unread):
        words = inside.own.detail or inside.own.why
        return f"whether the container has a libcuda of its own could not be seen: {words}"
    own = inside.own.get("cuda")
    if own is None:  # it has our files
        return ""
    if not own:
        return (
            "the container has no libcuda.so.1 in the usual folders: a program that wants CUDA "
            "does not start there, unless it brings its own (NVIDIA_DRIVER_CAPABILITIES without "
            "compute leaves it out)"
        )
    theirs = OwnLibrary("", (library.path or "").rpartition("/")[2], host).version
    words_of_each = [_other(one, theirs) for one in own if one.number != host]
    return "; ".join(word for word in words_of_each if word)


def _other(one: OwnLibrary, theirs: str | None) -> str:
    if one.version is not None and one.version == theirs:
        return ""
    version = f"libcuda {one.version}" if one.version else "a libcuda of unknown version"
    return (
        f"the container has {version} of its own ({one.path}), the host {theirs or 'another'}: "
        "the container's was not asked, for it is its own code; run seawall gpu query in it"
    )
