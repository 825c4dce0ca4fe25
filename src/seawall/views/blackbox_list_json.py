# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox list --json``: ``seawall.blackbox-list/1``."""

from typing import Any

from seawall.blackbox.overview import BootSummary, Stretch
from seawall.views.blackbox_page import BoxPage
from seawall.views.blackbox_show_json import event_object
from seawall.views.document import taken_at


def document(top: dict[str, Any], page: BoxPage) -> dict[str, Any]:
    """Boots in the order in which they were written."""
    return {
        **top,
        "path": page.path,
        "bytes": page.size_bytes,
        "missing_bytes": page.missing_bytes,
        "torn": page.torn,
        "boots": [_boot(boot) for boot in page.boots],
        "events": [event_object(event) for event in page.events],
    }


def _boot(boot: BootSummary) -> dict[str, Any]:
    return {
        "boot_id": boot.boot_id,
        **_stretch(boot.span),
        "frames": boot.frames,
        "bytes": boot.bytes,
        "gaps": [_stretch(gap) for gap in boot.gaps],
        "bursts": [_stretch(burst) for burst in boot.bursts],
    }


def _stretch(stretch: Stretch) -> dict[str, Any]:
    return {
        "from": taken_at(stretch.first_unix_seconds),
        "to": taken_at(stretch.last_unix_seconds),
        "seconds": round(stretch.seconds, 3),
    }
