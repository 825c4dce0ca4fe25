# SPDX-License-Identifier: Apache-2.0
"""What the kernel allows each cgroup: v1 devices.list, v2 the programs that are attached.

v1: security/device_cgroup.c; a group in allow-all mode prints ``a *:* rwm`` and hides its
exceptions.  v2: BPF_PROG_TYPE_CGROUP_DEVICE since 4.15; the programs of a cgroup and of all above
it must allow (kernel/bpf/cgroup.c).  Read through bpf(2) by the probe ``device_programs``.

Asked are the cgroups that have processes and all above them, containers first, at most
CGROUPS_MOST; those beyond are in ``left_out``, and none of them counts as without rules.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from seawall.cgroup_paths import place_of
from seawall.host.host import JSON, Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.cgroup import (
    USUAL_PLACE,
    CgroupLayout,
    Cgroups,
    parse_proc_cgroup,
    read_layout,
)
from seawall.readings.cgroup_tree import CgroupWalk, file_path
from seawall.readings.device_rule import DeviceRule, rule_of
from seawall.readings.probe_answer import number, numbers, reason
from seawall.readings.reading import decode_name, read_each_as

PROBE = "device_programs"
FILE: Final = "devices.list"
CGROUPS_MOST: Final = 3000
LIST_BYTES_MOST: Final = 256 << 10
INSTRUCTION_BYTES: Final = 8
PROGRAM_BYTES_MOST: Final = 1 << 20
"""BPF_COMPLEXITY_LIMIT_INSNS is a million; those of runc and systemd have hundreds."""


@dataclass(frozen=True, slots=True)
class DeviceCgroups:
    """The topic, for cgroups of containers and all above them.  Paths are below the mount point."""

    version: int
    """1: ``lists`` is filled; 2: ``attached`` and ``programs``."""
    lists: Mapping[str, tuple[DeviceRule, ...] | Unread]
    """By the path in the tree that counts memory; the tree of devices may have another for the
    same processes, and its list is read."""
    attached: Mapping[str, tuple[int, ...] | Unread]
    """Program ids that are attached to the cgroup itself."""
    programs: Mapping[int, bytes | Unread]
    """Translated instructions, 8 bytes each (struct bpf_insn)."""
    left_out: int = 0
    """Cgroups beyond CGROUPS_MOST, which were not asked."""
    loaded: Mapping[int, float] = field(default_factory=dict)
    """Program id -> seconds since boot (CLOCK_BOOTTIME) at which it was loaded."""


def parse(data: bytes) -> tuple[DeviceRule, ...]:
    """A devices.list, one rule a line.  An empty one allows nothing."""
    if len(data) > LIST_BYTES_MOST:
        raise ParseProblem(0, f"at most {LIST_BYTES_MOST} bytes", data)
    rules = []
    for at, line in enumerate(data.split(b"\n"), start=1):
        if not line:
            continue
        rule = rule_of(decode_name(line))
        if rule is None:
            raise ParseProblem(at, "'TYPE MAJOR:MINOR ACCESS'", line)
        rules.append(rule)
    return tuple(rules)


def read(host: Host, cgroups: Cgroups | Unread) -> DeviceCgroups | Unread:
    """Without a tree that counts memory, the tree of the devices controller itself is walked."""
    if isinstance(cgroups, Unread):
        layout = read_layout(host)
        if isinstance(layout, Unread):
            return layout
        mount_point = layout.v1.get("devices") or layout.v2
        if mount_point is None:
            return cgroups
        pids: Mapping[str, tuple[int, ...]] = {}
        paths: Sequence[str] = [found.path for found in CgroupWalk(host, mount_point).results()]
    else:
        layout, pids = cgroups.layout, cgroups.pids
        paths = list(pids)
    wanted = _with_all_above(paths)
    left_out = len(wanted) - len(wanted := wanted[:CGROUPS_MOST])
    if "devices" in layout.v1:
        lists = _lists(host, layout, wanted, pids)
        return DeviceCgroups(1, lists, {}, {}, left_out)
    if layout.v2 is None:
        return Unread(USUAL_PLACE, "absent", "no cgroup tree controls devices")
    attached, programs, loaded = _programs(host, layout.v2, wanted)
    return DeviceCgroups(2, {}, attached, programs, left_out, loaded)


def _with_all_above(paths: Iterable[str]) -> list[str]:
    """Containers and what is above them first, so that a bound cuts off others."""
    containers: dict[str, None] = {}
    others: dict[str, None] = {}
    for path in paths:
        into = containers if place_of(path).kind == "container" else others
        above = path
        while above and above not in into:
            into[above] = None
            above = "" if above == "/" else above.rpartition("/")[0] or "/"
    return list(containers | others)


# --- v1 ---------------------------------------------------------------------------------


def _lists(
    host: Host, layout: CgroupLayout, paths: Sequence[str], pids: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[DeviceRule, ...] | Unread]:
    mount_point = layout.v1["devices"]
    root = layout.roots.get(mount_point, "/").rstrip("/")
    places = _places(host, [(path, pids[path][0]) for path in paths if pids.get(path)])
    files = []
    for path in paths:
        place = places.get(path, path) if not root else path
        files.append(file_path(mount_point, place, FILE))
    return dict(zip(paths, read_each_as(host, files, parse), strict=True))


def _places(host: Host, members: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Where in the tree of devices those cgroups' first processes are.

    The trees of v1 are apart: a runtime that was started below some cgroup, or a person, may have
    put the same processes elsewhere there.
    """
    files = [f"/proc/{pid}/cgroup" for _, pid in members]
    found = {}
    for (path, _), told in zip(members, read_each_as(host, files, parse_proc_cgroup), strict=True):
        if not isinstance(told, Unread) and "devices" in told:
            found[path] = told["devices"]
    return found


# --- v2 ---------------------------------------------------------------------------------


def _programs(
    host: Host, mount_point: str, paths: Sequence[str]
) -> tuple[dict[str, tuple[int, ...] | Unread], dict[int, bytes | Unread], dict[int, float]]:
    """One question for all; a kernel or a right that is missing is told of each."""
    folders = {path: file_path(mount_point, path, "").rstrip("/") for path in paths}
    answer = host.ask(PROBE, json.dumps({"folders": list(folders.values())}))
    if isinstance(answer, Unread):
        unread = {path: Unread(f, answer.why, answer.detail) for path, f in folders.items()}
        return dict(unread), {}, {}
    values = answer if isinstance(answer, dict) else {}
    rows, texts = values.get("folders"), values.get("programs")
    rows, texts = (one if isinstance(one, dict) else {} for one in (rows, texts))
    attached = {path: _ids(folder, rows.get(folder)) for path, folder in folders.items()}
    wanted = {i for ids in attached.values() if not isinstance(ids, Unread) for i in ids}
    programs = {i: _instructions(i, texts.get(str(i))) for i in sorted(wanted)}
    return attached, programs, _loaded(values.get("loaded"), wanted)


def _loaded(value: JSON, wanted: Iterable[int]) -> dict[int, float]:
    """A program of which no time is told, or 0 (before 4.15), is not in it."""
    told = value if isinstance(value, dict) else {}
    found = ((i, number(told.get(str(i)))) for i in wanted)
    return {i: since / 1e9 for i, since in found if since}


def _ids(folder: str, value: JSON) -> tuple[int, ...] | Unread:
    if isinstance(value, dict):
        return reason(folder, value.get("problem")) or _malformed(folder, "program ids")
    ids = numbers(value)
    return _malformed(folder, "program ids") if ids is None else ids


def _instructions(number: int, value: JSON) -> bytes | Unread:
    name = f"BPF program {number}"
    if isinstance(value, dict):
        return reason(name, value.get("problem")) or _malformed(name, "instructions")
    if not isinstance(value, str) or len(value) > 2 * PROGRAM_BYTES_MOST:
        return _malformed(name, "instructions")
    try:
        code = bytes.fromhex(value)
    except ValueError:
        code = b""
    whole = code and len(code) % INSTRUCTION_BYTES == 0
    return code if whole else _malformed(name, "instructions of 8 bytes")


def _malformed(path: str, expected: str) -> Unread:
    return Unread(path, "malformed", f"expected {expected}")
