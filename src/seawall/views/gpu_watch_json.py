# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu --watch --json``: one document a line, schema ``seawall.gpu-event/1``."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Final

from seawall.accounts.devices.watch.device_watch_events import (
    AccessEvent,
    Begun,
    Blind,
    DeviceKey,
    DeviceMoment,
    Line,
    Stand,
    WatchEnded,
    stand_words,
)
from seawall.readings.device_writers import DeviceWriter
from seawall.version import VERSION
from seawall.views.document import render
from seawall.views.gpu_page import errno_name
from seawall.views.gpu_watch_words import event_words

SCHEMA: Final = "seawall.gpu-event/1"


def json_lines(line: Line) -> Iterator[str]:
    """Of one thing that is to be told; each is written out on its own."""
    for values in _documents(line):
        yield render(values, indent=None)


def _documents(line: Line) -> Iterator[dict[str, Any]]:
    if isinstance(line, Begun):
        yield {**_head("started", line.at), "containers": len(line.names),
               "devices": len(line.stands), "every_seconds": line.every_seconds}  # fmt: skip
        for key, stand in line.stands.items():
            yield _stands(line, key, stand)
        for path, words in line.nodes.items():
            yield {**_head("stands", line.at), "device": path, "to": words, "layer": "node"}
        for words in line.unseen:
            yield {**_head("blind", line.at), "words": words}
    elif isinstance(line, Blind):
        yield {**_head("blind", line.at), "words": line.words}
    elif isinstance(line, WatchEnded):
        yield {**_head("ended", line.at), "lasted_seconds": round(line.seconds, 3),
               "events": line.events, "looks": line.looks}  # fmt: skip
    else:
        yield from map(_event, line)


def _head(event: str, at: DeviceMoment) -> dict[str, Any]:
    """Every field that an event of a device has; null where it has none."""
    return {
        "schema": SCHEMA, "tool_version": VERSION, "event": event, "at": _time(at),
        "workload": None, "cgroup": None, "device": None, "from": None, "to": None,
        "errno": None, "errno_name": None, "layer": None, "lasted_seconds": None,
        "lasted_at_least": False, "is_back": False, "writer": None, "writers": [],
        "undid_writer": None, "files": [], "why": "", "words": "",
    }  # fmt: skip


def _stands(begun: Begun, key: DeviceKey, stand: Stand) -> dict[str, Any]:
    return {
        **_head("stands", begun.at),
        "workload": begun.names.get(key.cgroup),
        "cgroup": key.cgroup,
        "device": key.path,
        "to": stand_words(stand),
        "errno": stand.errno,
        "errno_name": errno_name(stand.errno) or None,
        "why": stand.why,
    }


def _event(one: AccessEvent) -> dict[str, Any]:
    seconds = one.lasted_seconds
    undid = one.lasted.writers if one.lasted and one.is_back else ()
    return {
        **_head(one.kind, one.at),
        "workload": one.workload,
        "cgroup": one.cgroup,
        "device": one.device,
        "from": one.before,
        "to": one.after,
        "errno": one.errno,
        "errno_name": errno_name(one.errno) or None,
        "layer": one.layer,
        "lasted_seconds": None if seconds is None else round(seconds, 3),
        "lasted_at_least": one.lasted is not None and one.lasted.is_first,
        "is_back": one.is_back,
        "writer": _writer(one.writers[0]) if len(one.writers) == 1 else None,
        "writers": [_writer(writer) for writer in one.writers],
        "undid_writer": _writer(undid[0]) if len(undid) == 1 else None,
        "files": list(one.files),
        "why": one.why,
        "words": event_words([one]),
    }


def _writer(writer: DeviceWriter) -> dict[str, Any]:
    return {
        "pid": writer.pid,
        "comm": writer.comm,
        "program": writer.exe,
        "start_ticks": writer.start_ticks,
        "cgroup": writer.cgroup,
        "workload": writer.workload,
        "parent_pid": writer.parent_pid,
        "parent_comm": writer.parent_comm,
    }


def _time(at: DeviceMoment) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(at.unix, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
