# SPDX-License-Identifier: Apache-2.0
"""The probes about the page cache, asked through an expendable child of their own.

``residency ITEM``         one file: a path, or JSON ``{"open": [...], "pid", "name", "inode"}``
``residency_each ITEMS``   many of them, as a JSON list; a list of rows and unreads in order
``residency_walk REQUEST`` one slice of a folder (``residency_walk.py``)
``page_owners ITEM``       which cgroups are charged for a file's pages (``page_owners.py``)

An answer is a row of ``Meter.measure``; one that did not come is ``{"why", "detail"}``.  One
file that hangs costs its own deadline and no other file its answer; after a few on one
filesystem the others there are not asked any more.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from seawall.host.expendable import Expendable
from seawall.host.host import JSON, READ_LIMIT_BYTES, Unread

_FILE_SECONDS: Final = 0.2
_FOLDER_SECONDS: Final = 5.0
"""Beyond the slice: a slow disk is no hung one."""
_READY_SECONDS: Final = 2.0
_LOSSES_MOST: Final = 3
_SEEDS_A_QUESTION: Final = 200
_OVER: Final = "the time given by --timeout was over"


class ResidencyAsker:
    """The parent's side.  ``open_path`` is used in the child only."""

    def __init__(
        self,
        open_path: Callable[[str, int], int],
        kept: Callable[[], Iterable[int]],
        seconds_left: Callable[[], float],
        root: str,
    ) -> None:
        """``root``: where the host's root is seen; empty when it is our own."""
        self._child = _Child(open_path, root)
        self._expendable = Expendable(self._child.answer, kept)
        self._seconds_left = seconds_left
        self._lost: Counter[str] = Counter()
        self._seen: dict[tuple[int, int], None] = {}

    def ask(self, probe: str, argument: str) -> JSON | Unread:
        """The probe's answer; Unread when there is none at all."""
        try:
            asked: Any = json.loads(argument) if argument[:1] in "{[" else {"open": [argument]}
        except ValueError:
            return Unread(probe, "malformed", "the question is no JSON")
        if probe == "residency_each":
            return [self._row(self._one("one", item)) for item in asked]
        if probe == "residency_walk":
            answer = self._walk(asked)
        else:
            answer = self._one("one" if probe == "residency" else "owners", asked)
        if isinstance(answer, Unread):
            return Unread(_name(asked), answer.why, answer.detail)
        return answer

    def close(self) -> None:
        """End the expendable child that is asked about the page cache."""
        self._expendable.close()

    @staticmethod
    def _row(answer: JSON | Unread) -> JSON:
        if isinstance(answer, Unread):
            return {"why": answer.why, "detail": answer.detail}
        return answer

    def _one(self, verb: str, item: dict[str, Any]) -> JSON | Unread:
        place = str(item.get("place", ""))
        if self._lost[place] >= _LOSSES_MOST:
            words = f"not asked: {self._lost[place]} files beside it did not answer"
            return Unread(_name(item), "no_answer", words)
        wait = _FILE_SECONDS if verb == "one" else _READY_SECONDS
        answer = self._question({"verb": verb, "item": item}, wait)
        if isinstance(answer, Unread) and answer.why == "no_answer":
            self._lost[place] += 1
        return answer

    def _walk(self, request: dict[str, Any]) -> JSON | Unread:
        """One slice.  ``seen`` is kept here too: a new child has to be told."""
        self._learn(request.pop("seen", ()))
        wait = float(request["seconds"]) + _FOLDER_SECONDS
        question = {"verb": "walk", "item": {**request, "seeds": len(self._seen)}}
        answer = self._question(question, wait)
        if isinstance(answer, dict) and answer.get("needs_seeds"):
            for at in range(0, len(self._seen), _SEEDS_A_QUESTION):
                seeds = list(islice(self._seen, at, at + _SEEDS_A_QUESTION))
                self._question({"verb": "seed", "item": seeds}, _READY_SECONDS)
            answer = self._question(question, wait)
        if isinstance(answer, dict):
            links = answer.pop("links", [])
            if isinstance(links, list):
                self._learn(links)
        return answer

    def _learn(self, pairs: Iterable[Any]) -> None:
        """What is counted already: a file once."""
        self._seen |= {(int(device), int(inode)): None for device, inode in pairs}

    def _question(self, question: dict[str, Any], wait: float) -> JSON | Unread:
        if not self._seconds_left():
            return Unread(_name(question["item"]), "not_reached", _OVER)
        self._expendable.losses.clear()  # counted here, by filesystem
        if not self._expendable.is_running:
            # Its imports are not the file's fault.
            ready = self._expendable.read(json.dumps({"verb": "ready"}), 1, _READY_SECONDS)
            if isinstance(ready, Unread):
                return Unread("residency", "no_answer", "the reading child was too slow to start")
        answer = self._expendable.read(json.dumps(question), READ_LIMIT_BYTES, wait)
        if isinstance(answer, Unread):
            return answer
        told: JSON = json.loads(answer)
        return told


def _name(item: Any) -> str:
    """What a question was about, for an Unread."""
    if not isinstance(item, dict):
        return "residency"
    opens = item.get("open") or [""]
    return str(item.get("name") or item.get("folder") or opens[0] or "residency")


class _Child:
    """What the child does; nothing of it is made before the fork."""

    def __init__(self, open_path: Callable[[str, int], int], root: str) -> None:
        self._open_path = open_path
        self._root = root
        self._owner = 0
        self._meter: Any = None
        self._walk: Any = None

    def answer(self, question: str, _limit_bytes: int) -> bytes:
        """The JSON answer to a JSON question; OSError with the reason there is none."""
        asked = json.loads(question)
        verb, item = asked["verb"], asked.get("item")
        self._start()
        if verb == "one":
            return json.dumps(self._meter.measure(item)).encode()
        if verb == "owners":
            from seawall.host.page_owners import owners  # noqa: PLC0415 - seldom asked

            return json.dumps(owners(self._meter, item)).encode()
        if verb in ("walk", "seed"):
            return json.dumps(self._walked(verb, item)).encode()
        return b""

    def _start(self) -> None:
        if self._owner == os.getpid():
            return
        from seawall.host.residency import Meter  # noqa: PLC0415 - ctypes: the child's alone

        self._owner = os.getpid()
        self._meter = Meter(self._open_path, self._root)
        self._walk = None

    def _walked(self, verb: str, item: Any) -> Any:
        if self._walk is None:
            from seawall.host.residency_walk import ResidencyWalk  # noqa: PLC0415 - as above

            self._walk = ResidencyWalk(self._meter, is_rooted=bool(self._root))
        if verb == "seed":
            self._walk.seen.update((device, inode) for device, inode in item)
            return {}
        if item["seeds"] > len(self._walk.seen):
            return {"needs_seeds": True}
        return self._walk.slice(item)
