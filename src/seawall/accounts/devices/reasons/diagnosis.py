# SPDX-License-Identifier: Apache-2.0
"""Why a container cannot use what it was promised: the first layer that disagrees, with evidence.

Nobody is blamed without evidence: what fits no known failure is ``unnamed`` and tells what each
layer says.
"""

import errno as errnos
from collections.abc import Iterable, Sequence

from seawall.accounts.devices.device_inputs import ContainerSide, HostSide
from seawall.accounts.devices.device_questions import spec_device
from seawall.accounts.devices.device_rows import is_for_all
from seawall.accounts.devices.kernel_rules.device_rules import USE, device_of
from seawall.accounts.devices.layers import LAYERS, DeviceRow, Diagnosis, Layer
from seawall.accounts.devices.reasons.blame import (
    RESTART,
    hook_words,
    left_out,
    missing_on_host,
    numbers,
    reload_words,
    stale_cdi,
)
from seawall.accounts.devices.reasons.upcoming_loss import missing_link
from seawall.accounts.devices.reasons.versions import (
    VersionVerdict,
    rewrites_on_update,
    skips_links,
)
from seawall.readings.device_access import Tried


def diagnose(
    rows: Sequence[DeviceRow], side: ContainerSide, host: HostSide
) -> Diagnosis | None:  # fmt: skip
    """None: everything that was seen works."""
    broken = [row for row in rows if row.broken_at is not None]
    broken = [row for row in broken if row.is_needed] or broken
    if not broken:
        return None
    found = [(row, _of_row(row, side, host)) for row in broken]
    # Named before unnamed: one control node that was left out explains the devices too.
    first = next((one for _, one in found if one.mode != "unnamed"), found[0][1])
    others = [row.path for row, one in found if one.mode == first.mode]
    return _with_count(first, others, broken)


def _with_count(
    first: Diagnosis, others: Sequence[str], broken: Sequence[DeviceRow]
) -> Diagnosis:  # fmt: skip
    if len(broken) == 1:
        return first
    same = len(others) - 1
    words = [f"the same of {same} more"] if same else []
    if rest := len(broken) - len(others):
        words.append(f"{rest} more {'fails' if rest == 1 else 'fail'} otherwise")
    return first._replace(headline=f"{first.headline} ({', '.join(words)})")


def _of_row(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis:
    return (
        _stale(row, side, host)
        or missing_on_host(row, side, host)
        or left_out(row, side, host)
        or _lost_by_systemd(row, side, host)
        or _rewritten(row, side, host)
        or _mode(row, side)
        or _unnamed(row)
    )


def says(row: DeviceRow, layer: Layer) -> str:
    """What one layer says of a device: ``yes``, ``no``, ``none`` or ``unread``."""
    return row.layers[layer].says


# --- F10 --------------------------------------------------------------------------------


def _stale(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis | None:
    """A node or a rule that has another number than the driver has now."""
    majors = host.majors(row.path)
    if not majors or row.major is None:
        return None
    old = sorted({major for major in _majors_of_old(row, side) if major not in majors})
    if not old:
        return None
    anew = stale_cdi(side, row.path, old, host)
    remedy = (
        "Recreate the pod (or the container): what it was started with keeps the old number, so a"
        f" restart of its process does not mend it. {RESTART}"
    )
    if anew:
        remedy = f"First {anew}. {remedy}"
    return Diagnosis(
        "F10",
        f"{row.path} has major {old[0]} in this container, and the driver has {majors[0]} now",
        "The module was loaded again and got another major number. What this container was given is"
        " for the one before.",
        remedy,
    )


def _majors_of_old(row: DeviceRow, side: ContainerSide) -> Iterable[int]:
    """Majors under which this container knows the path."""
    if (made := spec_device(row.path, side)) is not None:
        yield made.major
    if (node := side.own_node(row.path)) is not None:
        yield node.major
    tried = side.access.tried.get(row.path) if side.access else None
    if tried is not None and tried.major is not None:
        yield tried.major


# --- F3, F4 -----------------------------------------------------------------------------


def _lost_by_systemd(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis | None:
    """It was configured or injected; systemd has no such rule, and neither has the kernel now."""
    found = host.unit_of(side.cgroup)
    if says(row, "systemd") != "no" or not _is_refused(row) or found is None:
        return None
    unit, device = found[0], device_of(row)
    if device is not None and host.slice_that_refuses(side.cgroup, device, USE):
        return None  # somebody wrote that rule: nothing was lost
    skips, is_configured = skips_links(host.versions), says(row, "configured") == "yes"
    if is_configured and skips.is_possible and (link := missing_link(row, host)):
        return _without_link(row, link, unit, skips)
    hook = side.hook()
    if is_configured or (hook and says(row, "configured") == "none"):
        return Diagnosis(
            "F3",
            f"{row.path}{numbers(row)} is refused: systemd's list of devices lacks it",
            f"{hook_words(hook)} DeviceAllow= of {unit} does not have it, so the last daemon-reload"
            " put systemd's own list in place of what was there. Any package upgrade causes such a"
            f" reload.{reload_words(host)}",
            "Recreate the pod. So that it lasts: give the devices by CDI, or let the device plugin"
            " name them in its answer (for NVIDIA PASS_DEVICE_SPECS=true), or use the cgroupfs"
            " driver. Writing into the cgroup by hand lasts only until the next reload."
            f" {RESTART}",
        )
    return None


def _without_link(row: DeviceRow, link: str, unit: str, skips: VersionVerdict) -> Diagnosis:
    return Diagnosis(
        "F4",
        f"{row.path}{numbers(row)} is refused: systemd's list of devices lacks it",
        f"The container's config has it, DeviceAllow= of {unit} does not, and {link} is missing on"
        " the host. runc 1.1.3 to 1.1.6, and any runc with systemd before 240, leave out the rules"
        " of devices without such a link; the next daemon-reload then takes the device away."
        f"{f' Here: {skips.who}.' if skips.who else ''}",
        "Make the links (nvidia-ctk system create-dev-char-symlinks --create-all; for another"
        f" device ln -s {row.path} {link}), or upgrade runc to 1.1.7 or later with systemd 240 or"
        " later; then recreate the pod. The links alone do not mend a container that runs."
        f" {RESTART}",
    )


def _is_refused(row: DeviceRow) -> bool:
    """By the device cgroup, as far as is seen."""
    return says(row, "kernel") == "no" or row.errno == errnos.EPERM


# --- F6 ---------------------------------------------------------------------------------


def _rewritten(row: DeviceRow, side: ContainerSide, host: HostSide) -> Diagnosis | None:
    """The config has it, systemd has it or has no say, and the kernel's rules lack it."""
    hook = side.hook()
    # A hook that made the node allowed it, too.
    is_hooked = bool(hook) and says(row, "configured") == "none" and row.errno == errnos.EPERM
    good = is_hooked or says(row, "configured") == "yes"
    if not good or says(row, "systemd") not in ("yes", "none") or says(row, "kernel") != "no":
        return None
    who = f"{hook} gave" if is_hooked else "the container's config"
    has_unit = says(row, "systemd") == "yes"
    return Diagnosis(
        "F6",
        f"{row.path}{numbers(row)} is refused by the cgroup, although {who}"
        f"{'' if is_hooked else ' and systemd both have' if has_unit else ' has'} it",
        f"Somebody rewrote the rules of the running cgroup: {_by_whom(host)}. Who did is not told"
        " by what is there now.",
        "Recreate the pod. If it comes again within seconds, look at the version of runc and at the"
        f" kubelet's static CPU manager. {RESTART}",
    )


def _by_whom(host: HostSide) -> str:
    """Whom to suspect, with what runs here."""
    by_hand = "a write by hand"
    rewrites = rewrites_on_update(host.versions)
    if rewrites.says == "no":
        return (
            f"{by_hand} or another program's; an update of the container by {rewrites.who} does not"
        )
    here = f" (here: {rewrites.who})" if rewrites.who else ""
    return (
        "an update of the container by a runc before 1.0 (CPU manager, resize in place) does"
        f"{here}, and so does {by_hand}"
    )


# --- the rest ---------------------------------------------------------------------------


def _mode(row: DeviceRow, side: ContainerSide) -> Diagnosis | None:
    if row.errno != errnos.EACCES:
        return None
    tried = side.access.tried.get(row.path) if side.access else None
    if tried is not None and is_for_all(tried):
        return _by_another(row, tried)
    return Diagnosis(
        "mode",
        f"{row.path} is refused by its mode or owner (EACCES), not by the device cgroup",
        "The node in the container's /dev may not be read and written by who tried: its mode, its"
        " group or a user namespace that maps its owner to nobody.",
        "Give the container's user the node's group (supplementalGroups, --group-add), or the node"
        " the mode 0666 on the host and recreate the pod. Restarting the device plugin does not"
        " mend it.",
    )


def _by_another(row: DeviceRow, tried: Tried) -> Diagnosis:
    """Neither the cgroup (that is EPERM) nor the mode."""
    nodev = "" if tried.errno else " It was refused on opening alone, as a nodev mount does."
    return Diagnosis(
        "unnamed",
        f"{row.path} is refused (EACCES) although its mode lets everybody read and write",
        "Not its mode, and not the device cgroup, which says EPERM: a mount with nodev above it, or"
        f" a security module (SELinux, AppArmor).{nodev}",
        "Look for nodev in /proc/PID/mountinfo of the container, and for what a module denied:"
        " ausearch -m avc -ts recent, or dmesg (lines with DENIED). A new mode or group of the"
        " node does not mend it, nor does restarting the device plugin.",
    )


def _unnamed(row: DeviceRow) -> Diagnosis:
    """What the layers say, and no name for it."""
    told = [
        f"{layer}: {row.layers[layer].says}, {row.layers[layer].why}"
        for layer in LAYERS
        if row.layers[layer].says in ("yes", "no")
    ]
    cause = "It fits no known failure. " + "; ".join(told) + "."
    if says(row, "kernel") != "no" and row.errno == errnos.EPERM:
        cause += (
            " The rules that could be read do not refuse it: a cgroup inside the container, a"
            " hidden exception of an allow-all group or a security module may."
        )
    return Diagnosis(
        "unnamed",
        f"{row.path}{numbers(row)} does not work: {row.layers[row.broken_at or 'access'].why}",
        cause,
        "Recreate the pod and look again; if it comes back, keep a bundle (seawall capture) from"
        f" before and after. {RESTART}",
    )
