# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --watch --json``: one document a line."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final, Literal, NamedTuple

from seawall.accounts.devices.watch.device_watch_events import (
    AccessEvent,
    Begun,
    Blind,
    DeviceMoment,
    EventKind,
    EventLayer,
    Line,
    WatchEnded,
    stand_words,
)
from seawall.readings.device_writers import DeviceWriter
from seawall.views.document import render
from seawall.views.documents.document_fields import Document, known, shown
from seawall.views.gpu_page import errno_name
from seawall.views.gpu_watch_words import event_words


class GpuEvent(NamedTuple):
    """How a watch begins or ends, how a device stands then, or what changed."""

    event: EventKind | Literal["started", "stands", "blind", "ended"]
    """stands: how a device is when the watch begins; access: what a try of it answers changed;
    kernel: a rule changed and no answer did; written: somebody wrote to its device cgroup and
    nothing changed; promised, configured, systemd: that layer; node: of the host; plugin: its own
    /dev; container: it came or went; blind: what cannot be seen from now on."""
    at: DeviceMoment
    """Of the write where one was seen, of the load of the device program (v2), else of the look
    that found the change."""
    workload: str | None = None
    """None: the host."""
    cgroup: str | None = None
    device: str | None = None
    before: str | None = None
    """allowed, an errno's name, not tried; yes, no, none of a layer; there, missing or another
    number of a node; None: it was not there before."""
    to: str | None = None
    errno: int | None = None
    """Of the try now; 0: it may be used; None: not tried."""
    layer: EventLayer | None = None
    """What changed; None: that was not seen."""
    lasted_seconds: float | None = None
    """How long it had been as before, by the monotonic clock; of ended: how long the watch was."""
    lasted_at_least: bool = False
    """It began before the watch."""
    is_back: bool = False
    """As it had been before that: what somebody gave or took was undone."""
    writers: tuple[DeviceWriter, ...] = ()
    """All who wrote since the look before; of several it is not known which of them changed it."""
    undone: tuple[DeviceWriter, ...] = ()
    files: tuple[str, ...] = ()
    why: str = ""
    words: str = ""
    """The line as a person reads it."""
    containers: int | None = None
    """Of started."""
    devices: int | None = None
    """Of started."""
    every_seconds: float | None = None
    """Of started."""
    events: int | None = None
    """Of ended."""
    looks: int | None = None
    """Of ended."""


def precise(at: DeviceMoment) -> str:
    """RFC 3339, UTC, milliseconds."""
    moment = datetime.fromtimestamp(at.unix, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def errno_word(one: GpuEvent) -> str | None:
    """None: it was not tried, or it works."""
    return errno_name(one.errno) or None


def writer(one: GpuEvent) -> DeviceWriter | None:
    """Who wrote to the device cgroup, where exactly one process did."""
    return one.writers[0] if len(one.writers) == 1 else None


def undid_writer(one: GpuEvent) -> DeviceWriter | None:
    """With is_back: who had written what is undone now."""
    return one.undone[0] if len(one.undone) == 1 else None


EVENT: Final = Document(
    name="gpu-event",
    verb="seawall gpu --watch --json",
    about="One document a line: how the watch begins, how each device stands then, each change, "
    "how it ends. Additive within a major number.",
    is_of_host=False,
    pages=(GpuEvent,),
    shapes={
        GpuEvent: (
            *shown("event"),
            *shown("at", turn=precise),
            *shown("workload cgroup device from=before to errno", {"errno_name": errno_word}),
            *shown("layer lasted_seconds:3 lasted_at_least is_back", writer, "writers"),
            *shown(undid_writer, "files why words"),
            *known("containers devices every_seconds events looks"),
        ),
        DeviceWriter: shown(
            "pid comm program=exe start_ticks cgroup workload parent_pid parent_comm"
        ),
    },
)


def json_lines(line: Line) -> Iterator[str]:
    """Of one thing that is to be told; each is written out on its own."""
    for event in _events(line):
        yield render(EVENT.alone(event), indent=None)


def _events(line: Line) -> Iterator[GpuEvent]:
    if isinstance(line, Begun):
        yield GpuEvent(
            "started", line.at, containers=len(line.names), devices=len(line.stands),
            every_seconds=line.every_seconds,
        )  # fmt: skip
        for key, stand in line.stands.items():
            yield GpuEvent(
                "stands", line.at, line.names.get(key.cgroup), key.cgroup, key.path,
                to=stand_words(stand), errno=stand.errno, why=stand.why,
            )  # fmt: skip
        for path, words in line.nodes.items():
            yield GpuEvent("stands", line.at, device=path, to=words, layer="node")
        for words in line.unseen:
            yield GpuEvent("blind", line.at, words=words)
    elif isinstance(line, Blind):
        yield GpuEvent("blind", line.at, words=line.words)
    elif isinstance(line, WatchEnded):
        yield GpuEvent(
            "ended", line.at, lasted_seconds=line.seconds, events=line.events, looks=line.looks
        )
    else:
        yield from map(_changed, line)


def _changed(one: AccessEvent) -> GpuEvent:
    return GpuEvent(
        one.kind, one.at, one.workload, one.cgroup, one.device, one.before, one.after, one.errno,
        one.layer, one.lasted_seconds,
        lasted_at_least=one.lasted is not None and one.lasted.is_first, is_back=one.is_back,
        writers=one.writers, undone=one.lasted.writers if one.lasted and one.is_back else (),
        files=one.files, why=one.why, words=event_words([one]),
    )  # fmt: skip
