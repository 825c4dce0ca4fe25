# SPDX-License-Identifier: Apache-2.0
"""``seawall guard pins``: what the pinner holds in memory, or what it would hold."""

import json
import os
import time
from argparse import Namespace
from typing import Any, Final

from seawall.cli.guard_undo import is_held
from seawall.cli.page import print_page
from seawall.cli.paper import paper_for
from seawall.findings.blindness import NotSeen
from seawall.guard.config import chosen_path, read
from seawall.guard.lock_file import FOLDER
from seawall.host.live import LiveHost
from seawall.pinner.asked import FILE, LOCK, Asked
from seawall.pinner.page import SCHEMA
from seawall.pinner.rounds import Rounds
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.document import head, not_seen_rows, render
from seawall.views.pins_text import lines

_PAGE_MOST: Final = 4 << 20
_SUGGESTED: Final = ("node",)


def pins(arguments: Namespace, folder: str = FOLDER) -> int:
    """Print it.  0: answered, whether or not a pinner runs; UsageProblem: a wrong guard.toml."""
    page = published(folder)
    if page is None:
        page = computed(read(chosen_path(arguments.config)))
    unseen = _unseen(page, folder)
    top = head("guard-pins", Snapshot(LiveHost("/")).get(Kernel), None)
    if arguments.json:
        page.pop("schema")
        print(render({**top, **page, "could_not_see": not_seen_rows(unseen)}))
        return 0
    paper = paper_for("auto")
    print_page(paper, top, (), lines(page, paper), unseen)
    return 0


def published(folder: str) -> dict[str, Any] | None:
    """What the pinner that runs told; None: none runs, or it cannot be read."""
    if not is_held(f"{folder}/{LOCK}"):
        return None
    try:
        fd = os.open(f"{folder}/{FILE}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            page = json.loads(file.read(_PAGE_MOST))
            told = page["written_unix_seconds"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
    if page.get("schema") != SCHEMA:
        return None
    page["age_seconds"] = round(max(0.0, time.time() - told), 1)
    page["asked_for"] = page["pin"]
    return dict(page)


def computed(settings: Any) -> dict[str, Any]:
    """What would be held on this machine, of ``pin`` or of ``node`` where that is empty."""
    words = settings.pin or _SUGGESTED
    rounds = Rounds(Asked(words, settings.pin_at_most_bytes, settings.pin_slices), None)
    try:
        page = rounds.run()
    finally:
        rounds.close()
    return {
        **page, "asked_for": list(settings.pin), "age_seconds": 0.0, "pid": None, "problems": [],
        "since_unix_seconds": None,
        "slices": [{"path": path, "low_bytes": None, "words": "would be raised to its present use"}
                   for path in settings.pin_slices],
    }  # fmt: skip


def _unseen(page: dict[str, Any], folder: str) -> list[NotSeen]:
    if page["is_pinning"] or os.geteuid() == 0:
        return []
    why = f"other users' mappings and {folder} are root's"
    return [NotSeen("text of other users' programs", why, "run as root")]
