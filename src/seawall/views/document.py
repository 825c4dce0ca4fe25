# SPDX-License-Identifier: Apache-2.0
"""What every JSON document begins with, and how values become JSON.

Unlimited is null; a field that could not be read is absent and named in its object's
``unread``.  Additive within a major schema number.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.reading import Unlimited
from seawall.version import VERSION


def head(name: str, kernel: Kernel | Unread, window_seconds: float | None) -> dict[str, Any]:
    """schema, tool_version, window_seconds and host of a ``seawall.NAME/1``, and taken_at when
    it is known; otherwise ``unread`` names it.  window_seconds is null without a window.
    """
    known = None if isinstance(kernel, Unread) else kernel
    host = {
        "node": known and known.node_name,
        "boot_id": known and known.boot_id,
        "kernel": known and known.release,
        "page_size": known and known.page_size,
    }
    moment = taken_at(known.taken_at_unix_seconds if known else None)
    return {
        "schema": f"seawall.{name}/1",
        "tool_version": VERSION,
        **with_unread({"taken_at": moment}),
        "window_seconds": None if window_seconds is None else round(window_seconds, 3),
        "host": with_unread(host),
    }


def taken_at(unix_seconds: float | None) -> str | None:
    """RFC 3339, UTC.

    To the second; None when the clock was not captured or is absurd.
    """
    if unix_seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(unix_seconds, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def with_unread(values: Mapping[str, Any]) -> dict[str, Any]:
    """The object for ``values``: Unread and None ones are left out and named in ``unread``."""
    shown: dict[str, Any] = {}
    missing: list[str] = []
    for name, value in values.items():
        if value is None or isinstance(value, Unread):
            missing.append(name)
        else:
            shown[name] = None if isinstance(value, Unlimited) else value
    return {**shown, "unread": missing}


def render(document: Mapping[str, Any], indent: int | None = 2) -> str:
    """The document as text; bytes that are not UTF-8 in names are written out as ``\\xNN``.

    Without an indent all is one line, which is many times faster to write.
    """
    return json.dumps(_clean(document), indent=indent, ensure_ascii=True, allow_nan=False)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        try:
            raw = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # a surrogate that stands for no byte: from a bundle's JSON
            raw = value.encode("utf-8", "backslashreplace")
        return raw.decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
