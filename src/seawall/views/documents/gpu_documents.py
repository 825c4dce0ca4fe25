# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --json`` and ``seawall gpu repair --json``."""

from typing import Final, NamedTuple

from seawall.accounts.devices.device_changes import Differs
from seawall.accounts.devices.layers import (
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    LayerAnswer,
    Plugin,
    RefusedPod,
    UnhealthyDevice,
    UpcomingLoss,
)
from seawall.accounts.devices.repairs.step import RepairOutcome, RepairPlan, RepairScope
from seawall.views.document import taken_at
from seawall.views.documents.document_fields import (
    Document,
    one_of,
    shown,
)
from seawall.views.gpu_page import GpuPage, errno_name, state_of
from seawall.views.gpu_repair_page import RepairPage, sentence


class RefusedSince(NamedTuple):
    """From when on a device was refused."""

    at: str
    """RFC 3339, UTC."""
    how: str
    """What tells it."""


class DiagnosisRow(NamedTuple):
    """A diagnosis with the moment from which it holds."""

    diagnosis: Diagnosis
    since: RefusedSince | None
    """None: nothing tells it."""


def diagnosis(one: ContainerDevices) -> DiagnosisRow | None:
    """None: everything that was tried works."""
    if one.diagnosis is None:
        return None
    at = None if one.since is None else taken_at(one.since.at)
    since = None if one.since is None or at is None else RefusedSince(at, one.since.how)
    return DiagnosisRow(one.diagnosis, since)


def host_diagnosis(page: GpuPage) -> list[DiagnosisRow]:
    """What is wrong for every container."""
    return [DiagnosisRow(one, None) for one in page.host_diagnosis]


class DeviceLayers(NamedTuple):
    """In the order in which one follows from the other; the first that disagrees is broken_at."""

    promised: LayerAnswer
    configured: LayerAnswer
    systemd: LayerAnswer
    kernel: LayerAnswer
    access: LayerAnswer


def layers(row: DeviceRow) -> DeviceLayers:
    """Five layers; the first that disagrees is broken_at."""
    return DeviceLayers(**row.layers)


def errno_word(row: DeviceRow) -> str | None:
    """None: it was not tried, or it worked."""
    return errno_name(row.errno) or None


_WHOSE: Final = shown("workload=workload.name cgroup=workload.cgroup")
_FAULTS: Final = "F8 F9 unnamed"

GPU: Final = Document(
    name="gpu",
    verb="seawall gpu --json",
    about="What containers were promised of devices, through five layers: promised, configured, "
    "what systemd believes, the kernel's rule, a real try. Additive within a major number.",
    pages=(GpuPage,),
    shapes={
        GpuPage: (
            *shown("workload=wanted.name opened=opens plugin=plugins containers"),
            *shown("about_to_break=soon host_nodes", host_diagnosis),
            *shown("refused_pods unhealthy_devices could_not_see=unseen bundle_notes moments"),
            *shown("at_last_moment=at_last"),
        ),
        Differs: (*_WHOSE, *shown("device_class mode words")),
        Plugin: (*_WHOSE, *shown("pid lacks names_nodes")),
        ContainerDevices: (
            *_WHOSE,
            *shown("device_class promised_by", {"state": state_of}, "devices", diagnosis, "unseen"),
        ),
        DeviceRow: (
            *shown("path kind major minor is_needed", layers, "errno", {"errno_name": errno_word}),
            *shown("broken_at"),
        ),
        DiagnosisRow: shown(
            "mode=diagnosis.mode headline=diagnosis.headline cause=diagnosis.cause "
            "remedy=diagnosis.remedy since"
        ),
        UpcomingLoss: (*_WHOSE, *shown("device why when remedy")),
        HostNode: (*shown("path driver major minor is_there"), *shown("found:filled")),
        RefusedPod: (
            *shown("namespace pod pod_uid=uid:filled resource refused_at=at:time"),
            *shown("mode", turn=one_of(_FAULTS)),
            *shown("why registered_at:time"),
        ),
        UnhealthyDevice: (
            *shown("resource device since:time xid"),
            *shown("mode", turn=one_of(_FAULTS)),
            *shown("why"),
        ),
    },
)


def broken(page: RepairPage) -> tuple[str, ...]:
    """What is wrong, each in a sentence."""
    return page.plan.headlines if isinstance(page.plan, RepairPlan) else ()


def notes(page: RepairPage) -> tuple[str, ...]:
    """What has to be known before the plan is believed."""
    return page.plan.notes if isinstance(page.plan, RepairPlan) else ()


def verified(page: RepairPage) -> bool | None:
    """None: nothing was to be done."""
    return page.verdict == "verified" if page.is_told and page.results else None


REPAIR: Final = Document(
    name="gpu-repair",
    verb="seawall gpu repair --json",
    about="What mends a container, the device plugin or the host, step by step; and with --do what "
    "was done and verified. Additive within a major number: there may be more kinds.",
    pages=(RepairPage,),
    shapes={
        RepairPage: (
            *shown("target=scope verdict", sentence, broken, notes, "steps", verified),
            *shown("could_not_see=unseen bundle_notes"),
        ),
        RepairScope: shown("what workload=workload.name"),
        RepairOutcome: (
            *shown("id=step.id number=step.number kind=step.kind what=step.what"),
            *shown("command=step.command:filled"),
            *shown("mends=step.mends does_not_mend=step.does_not_mend lasts=step.lasts"),
            *shown("by=step.by state words verified=is_verified"),
        ),
    },
)
