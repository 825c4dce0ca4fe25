# SPDX-License-Identifier: Apache-2.0
"""What the kernel allows a cgroup: its v1 list, or the v2 programs of it and of all above it.

kernel/bpf/cgroup.c: every program that is attached to a cgroup or above it must allow.
"""

import struct
from collections.abc import Iterator
from typing import Final

from seawall.accounts.devices.kernel_rules.bpf import run
from seawall.accounts.devices.kernel_rules.device_rules import USE, RuledDevice, listed
from seawall.accounts.devices.layers import LayerAnswer
from seawall.host.host import Unread
from seawall.readings.device_cgroups import DeviceCgroups

PROGRAMS_MOST: Final = 64
"""Of one cgroup; the kernel's own limit (BPF_CGROUP_MAX_PROGS)."""
_TYPES: Final = {"b": 1, "c": 2}
_ACCESS: Final = {"m": 1, "r": 2, "w": 4}
_M32: Final = (1 << 32) - 1


def allowed(
    groups: DeviceCgroups | Unread, cgroup: str, device: RuledDevice, access: str = USE
) -> LayerAnswer:
    """What the kernel's rule is."""
    if isinstance(groups, Unread):
        return _unread("the device rules", groups)
    if groups.version != 1:
        return decide(groups, cgroup, device, access)
    path = _nearest(groups, cgroup)
    rules = groups.lists.get(path)
    if rules is None or isinstance(rules, Unread):
        return _unread(f"devices.list of {path}", rules)
    return listed(rules, device, access, f"devices.list of {path}")


def _nearest(groups: DeviceCgroups, cgroup: str) -> str:
    """A cgroup of the tree that counts memory, in the tree of devices."""
    for path in _above(cgroup):
        if path in groups.lists:
            return path
    return cgroup


def decide(
    groups: DeviceCgroups, cgroup: str, device: RuledDevice, access: str = USE
) -> LayerAnswer:
    """What the programs of a cgroup and of all above it say together.

    A program that was attached without BPF_F_ALLOW_MULTI counts only where none is below it; who
    attaches to containers (runc, crun, systemd) never leaves that flag out.
    """
    seen: LayerAnswer | None = None
    count = 0
    for number, answer in _answers(groups, cgroup, device, access):
        count += number is not None
        if answer.says == "no":
            return LayerAnswer("no", f"{answer.why} refuses {device} {access}")
        if answer.says == "unread":
            seen = seen or answer
    if seen is not None:
        return seen
    if not count:
        return LayerAnswer("yes", "no device program is attached to its cgroup or above")
    return LayerAnswer("yes", f"all {count} device programs allow {device} {access}")


def refusing(
    groups: DeviceCgroups, cgroup: str, device: RuledDevice, access: str = USE
) -> int | None:  # fmt: skip
    """The first of its programs that says no; None: none does, as far as was seen."""
    answers = _answers(groups, cgroup, device, access)
    return next((number for number, answer in answers if answer.says == "no"), None)


def _answers(
    groups: DeviceCgroups, cgroup: str, device: RuledDevice, access: str
) -> Iterator[tuple[int | None, LayerAnswer]]:
    """Each program's, from the cgroup itself upwards; None: those of one cgroup were not read."""
    context = _context(device, access)
    for path in _above(cgroup):
        ids = groups.attached.get(path)
        if ids is None or isinstance(ids, Unread):
            yield None, _unread(f"the programs of {path}", ids)
            continue
        for number in ids[:PROGRAMS_MOST]:
            yield number, _one(groups, number, path, context)


def _one(groups: DeviceCgroups, number: int, path: str, context: bytes) -> LayerAnswer:
    what = f"program {number} of {path}"
    program = groups.programs.get(number)
    if program is None or isinstance(program, Unread):
        return _unread(what, program)
    result = run(program, context)
    if isinstance(result, str):
        return LayerAnswer("unread", f"{what} cannot be decided: {result}")
    return LayerAnswer("yes" if result else "no", what)


def _unread(what: str, unread: Unread | None) -> LayerAnswer:
    if unread is None:
        return LayerAnswer("unread", f"{what} was not read")
    return LayerAnswer("unread", f"{what} could not be read: {unread.why} {unread.detail}".rstrip())


def _above(cgroup: str) -> Iterator[str]:
    """The cgroup itself, then everything above it, the root last."""
    path = cgroup.rstrip("/")
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield "/"


def _context(device: RuledDevice, access: str) -> bytes:
    bits = sum(_ACCESS[letter] for letter in set(access))
    return struct.pack(
        "<III", bits << 16 | _TYPES[device.kind], device.major & _M32, device.minor & _M32
    )
