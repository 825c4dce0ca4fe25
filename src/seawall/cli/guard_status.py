# SPDX-License-Identifier: Apache-2.0
"""``seawall guard status``: the guard's own page, and whether it can still be believed."""

import json
import os
import time
from argparse import Namespace
from typing import Any, Final, NamedTuple

from seawall.cli import statuses
from seawall.guard.lock_file import FOLDER, NAME, holder
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.guard_processes import GuardProcesses, read_guard_processes
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.views.document import head, render
from seawall.views.documents.guard_status_document import STATUS, GuardAnswer
from seawall.views.guard_line import AHEAD_SECONDS, OLD_SECONDS, memory_words
from seawall.views.terminal import Console, plain
from seawall.words import duration

_PAGE_MOST: Final = 64 << 10


def run(arguments: Namespace) -> int:
    """Print what the guard says of itself; the exit status."""
    return status(as_json=arguments.json, fail_on=arguments.fail_on)


def status(*, as_json: bool, fail_on: str | None = None, folder: str = FOLDER) -> int:
    """Print it.  0: answered, whatever was found; with ``fail_on`` see ``exit_status``."""
    pid, text, age, is_earlier, words = _look(folder)
    host = LiveHost("/")
    held = _held(host, pid)
    if as_json:
        top = head("guard-status", Snapshot(host).get(Kernel), None)
        answer = _answer(pid, age, words, folder, held, is_earlier=is_earlier)
        print(render(STATUS.of(top, answer)))
    else:
        print("\n".join(Console().wrap(words, "  ", "")))
        for line in (text or "").rstrip().splitlines():
            print(plain(line.rstrip()))
        if pid:
            print("\n".join(Console().wrap(memory_words(held), "  ", "")))
    if fail_on is None:
        return 0
    return exit_status(pid, None if is_earlier else age, _json_page(folder), fail_on)


def exit_status(
    pid: int | None, age: float | None, page: dict[str, Any] | None, fail_on: str
) -> int:  # fmt: skip
    """10: none runs, or it hangs, or it should kill and cannot; with ``warning`` also when it
    tells of a problem of its own.  11: that could not be seen, for ``age`` None neither: nobody
    knows then whether the page still holds.
    """
    if pid == 0 or (age is not None and age > OLD_SECONDS):
        return statuses.FIRES
    if pid is None or page is None or age is None:
        return statuses.BLIND
    if page.get("mode") == "enforce" and page.get("can_kill") is not True:
        return statuses.FIRES
    has_problem = bool(page.get("problems")) or bool(page.get("mode_why"))
    return statuses.FIRES if fail_on == "warning" and has_problem else 0


class _GuardLook(NamedTuple):
    """At the guard's lock and its page."""

    pid: int | None
    """Of who holds the lock; 0: nobody; None: it could not be seen."""
    text: str | None
    age_seconds: float | None
    is_earlier: bool
    """The page is of a guard before the one that runs."""
    words: str


def _look(folder: str) -> _GuardLook:
    pid = holder(folder)
    text, age = _page(f"{folder}/status")
    is_earlier = bool(pid) and _is_of_an_earlier_guard(folder)
    words = _state_words(pid, text, age, folder, is_earlier=is_earlier)
    return _GuardLook(pid, text, age, is_earlier, words)


def health(folder: str = FOLDER) -> tuple[bool, str]:
    """Whether a guard runs, writes, and can do what its mode says; and the sentence about it.
    What could not be seen is not well.
    """
    pid, _, age, is_earlier, words = _look(folder)
    words = words.rstrip(":;")
    page = _json_page(folder)
    status = exit_status(pid, None if is_earlier else age, page, "critical")
    is_killer = page is None or page.get("mode") != "enforce" or page.get("can_kill") is True
    return status == 0, words if is_killer else f"{words}; it cannot kill"


def _is_of_an_earlier_guard(folder: str) -> bool:
    """Whether the guard that runs took its lock just now and has written no page since.  One
    that should have written long ago hangs, whoever wrote the page.
    """
    try:
        written, locked = (os.stat(f"{folder}/{name}").st_mtime for name in ("status", NAME))
    except OSError:
        return False
    return written < locked and time.time() - locked <= OLD_SECONDS


def _state_words(
    pid: int | None, text: str | None, age: float | None, folder: str, *, is_earlier: bool
) -> str:  # fmt: skip
    """The first line: who runs, and how old what it says is."""
    if pid is None:
        who = f"Whether a guard runs could not be seen: {folder} is root's"
    elif not pid:
        who = "No guard runs on this machine"
    else:
        who = f"A guard runs (pid {pid})" if pid > 0 else "A guard runs"
    if text is None:
        return f"{who}; {folder}/status is not there or not ours to read."
    if age is None:
        return f"{who}; the clock was set back, so when this was written cannot be told:"
    if pid == 0:
        return f"{who}; the last one wrote this {duration(age)} ago:"
    if is_earlier:
        return f"{who}, but it has written nothing yet; one before it wrote this:"
    if age > OLD_SECONDS:
        return f"{who}, but it has not written for {duration(age)}: do not believe this:"
    return f"{who}; written {duration(age)} ago:"


def _page(path: str) -> tuple[str | None, float | None]:
    """The text and its age; None, None when it cannot be read.  An age of None alone: it cannot
    be told, for the file is from the future.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None, None
    try:
        data = os.read(fd, _PAGE_MOST)
        age = time.time() - os.fstat(fd).st_mtime
    except OSError:
        return None, None
    finally:
        os.close(fd)
    return data.decode("utf-8", "replace"), None if age < -AHEAD_SECONDS else max(0.0, age)


def _answer(
    pid: int | None, age: float | None, words: str, folder: str, held: GuardProcesses | Unread,
    *, is_earlier: bool,
) -> GuardAnswer:  # fmt: skip
    return GuardAnswer(
        runs=None if pid is None else bool(pid),
        pid=pid if pid and pid > 0 else None,
        age_seconds=None if age is None else round(age, 1),
        is_old=is_earlier or age is None or age > OLD_SECONDS,
        words=words.rstrip(":"),
        page=_json_page(folder),
        memory=held,
    )


def _held(host: LiveHost, pid: int | None) -> GuardProcesses | Unread:
    if pid == 0:
        return GuardProcesses(())
    if pid is None or pid < 0:
        return Unread("/proc", "refused", "its pid is not known here")
    return read_guard_processes(host, pid)


def _json_page(folder: str) -> dict[str, Any] | None:
    text, _ = _page(f"{folder}/status.json")
    try:
        page = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return page if isinstance(page, dict) else None
