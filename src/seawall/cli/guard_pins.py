# SPDX-License-Identifier: Apache-2.0
"""``seawall guard pins``: what the pinner holds in memory, or what it would hold."""

import errno
import json
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from seawall.cli.verb import Head, Verb
from seawall.findings.blindness import NotSeen
from seawall.guard.config import chosen_path, read
from seawall.guard.guard_leftovers import is_held
from seawall.guard.lock_file import FOLDER
from seawall.guard.settings import Settings
from seawall.host.live import LiveHost
from seawall.pinner.pin_request import FILE, LOCK, PinRequest
from seawall.pinner.pinner_rounds import Rounds
from seawall.pinner.pins_page import SCHEMA
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.document import head
from seawall.views.documents.document_fields import object_of
from seawall.views.terminal import Console

_PAGE_MOST: Final = 4 << 20
_SUGGESTED: Final = ("node",)
_SLICE: Final = "would be raised to its present use, on cgroup v2"


class Pins(NamedTuple):
    """What the pinner tells, or what it would tell."""

    row: dict[str, Any]
    hidden: str
    """Why what it tells cannot be seen; empty: it can, or none runs."""


class GuardPinsVerb(Verb[Pins]):
    """Whether or not a pinner runs."""

    name = "guard-pins"

    def page(self) -> Pins:
        """UsageProblem: a wrong guard.toml."""
        told = published(FOLDER)
        if isinstance(told, str):
            return Pins(computed(read(chosen_path(self.arguments.config))), told)
        return Pins(told, "")

    def head(self, _page: Pins) -> Head:
        return head(self.name, Snapshot(LiveHost("/")).get(Kernel), None)

    def text(self, page: Pins, paper: Console) -> Iterable[str]:
        from seawall.views.pins_text import lines  # noqa: PLC0415 - text alone

        return lines(page.row, paper, page.hidden)

    def document(self, top: Head, page: Pins) -> Head:
        page.row.pop("schema")
        return {**top, **page.row, "could_not_see": object_of(self.unseen(page), {})}

    def unseen(self, page: Pins) -> Sequence[NotSeen]:
        """Of this machine's pins, or of what would be pinned."""
        return _unseen(page.row, page.hidden)


run = GuardPinsVerb.run


def published(folder: str) -> dict[str, Any] | str:
    """What the pinner that runs told; else why that cannot be seen, empty: none runs."""
    lock, path = f"{folder}/{LOCK}", f"{folder}/{FILE}"
    if not is_held(lock):
        is_hidden = os.path.exists(lock) and not os.access(lock, os.R_OK)
        return f"{lock}: {os.strerror(errno.EACCES)}" if is_hidden else ""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            page = json.loads(file.read(_PAGE_MOST))
        if page["schema"] != SCHEMA:
            return f"{path}: of another version of Seawall"
        page["age_seconds"] = round(max(0.0, time.time() - page["written_unix_seconds"]), 1)
        page["asked_for"] = page["pin"]
    except FileNotFoundError:
        return f"a pinner runs, and has told nothing yet in {path}"
    except OSError as error:
        return f"{path}: {error.strerror}"
    except (ValueError, RecursionError, KeyError, TypeError):
        return f"{path}: expected what a pinner tells, found something else"
    return dict(page)


def computed(settings: Settings) -> dict[str, Any]:
    """What would be held on this machine, of ``pin`` or of ``node`` where that is empty."""
    words = settings.pin or _SUGGESTED
    rounds = Rounds(PinRequest(words, settings.pin_at_most_bytes, settings.pin_slices), None)
    try:
        page = rounds.run()
    finally:
        rounds.close()
    return {
        **page, "asked_for": list(settings.pin), "age_seconds": 0.0, "pid": None, "problems": [],
        "since_unix_seconds": None,
        "slices": [{"path": path, "low_bytes": None, "words": _SLICE}
                   for path in settings.pin_slices],
    }  # fmt: skip


def _unseen(page: dict[str, Any], hidden: str) -> list[NotSeen]:
    """Of this machine's pins, or of what would be pinned."""
    is_root = os.geteuid() == 0
    provide = "ask again in a minute" if is_root else "run as root"
    rows = [NotSeen("what is pinned", hidden, provide)] if hidden else []
    if page["is_pinning"] or is_root:
        return rows
    why = "other users' mappings are root's"
    rows.append(NotSeen("text of other users' programs", why, "run as root"))
    why = "mincore(2) tells it to who may write the file; of others all counts as in memory"
    return [*rows, NotSeen("what of a program's file is in memory", why, "run as root")]
