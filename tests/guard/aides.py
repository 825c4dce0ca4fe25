"""What tests of a real aide wait for."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.guard import aide_process
from seawall.guard.aide import Aide
from seawall.guard.tell import spare_children

PATIENCE = 20.0


@contextlib.contextmanager
def started(**options: Any) -> Iterator[Aide]:
    aide = aide_process.start(**options)
    try:
        yield aide
    finally:
        aide.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(aide.pid, 0)


def until(found: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.01)
    pytest.fail(f"not within {PATIENCE:g} s: {what}")


def answer(aide: Aide, request: dict[str, Any]) -> dict[str, Any]:
    assert aide.send(request)
    found: dict[str, Any] = until(lambda: aide.take(request["do"]), f"answer to {request['do']}")
    return found


def below(pid: int) -> list[str]:
    """Children of the aide that have something to do: without its spares.  One that was just forked
    still has the aide's name, as an errand always has: it gets a moment to take its own.
    """
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if any(_name(child) == _name(str(pid)) for child in children):
        time.sleep(0.1)
    return [child for child in children if _name(child) not in ("", spare_children.NAME)]


def _name(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
