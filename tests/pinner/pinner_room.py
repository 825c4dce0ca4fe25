"""A room for one pinner: its folder, its process, what it tells."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seawall.guard import entry
from seawall.pinner.pin_request import FILE, PinRequest

Page = dict[str, Any]


class Room:
    """``start`` a pinner as the launcher does; ``page`` when it says what is waited for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *pin: str, most_bytes: int = 64 << 20, **more: Any) -> None:
        asked = PinRequest(pin, most_bytes, more.pop("slices", ()), str(self.folder), **more)
        fd = os.memfd_create("asked")
        os.write(fd, json.dumps(asked._asdict()).encode())
        os.lseek(fd, 0, os.SEEK_SET)
        self.process = subprocess.Popen(entry.pinner_argv(fd), pass_fds=(fd,))
        os.close(fd)

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def page(self, is_it: Callable[[Page], Any], most_seconds: float = 20) -> Page:
        """The first page of which ``is_it``."""
        until, page = time.monotonic() + most_seconds, None
        while time.monotonic() < until:
            path = self.folder / FILE
            page = json.loads(path.read_text()) if path.exists() else None
            if page and is_it(page):
                return dict(page)
            time.sleep(0.05)
        pytest.fail(f"the pinner told something else: {page}")

    def end(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)
            self.process = None


@contextmanager
def room(folder: Path) -> Iterator[Room]:
    """With a folder of its own below ``folder``; its pinner ends with it."""
    (folder / "run").mkdir()
    here = Room(folder / "run")
    try:
        yield here
    finally:
        here.end()


def of(page: Page, path: Path) -> list[Page]:
    """The rows of one file."""
    return [row for row in page["files"] if row["name"] == str(path)]
