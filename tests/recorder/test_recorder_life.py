# SPDX-License-Identifier: Apache-2.0
"""The black box in the guard's status: what the recorder says of it, in one line."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.recorder.pair import Guard

from seawall.guard.judge.judge import Judge
from seawall.guard.recorder_life import RecorderLife
from seawall.guard.settings import Settings


class _Life(Guard):
    """A recorder that says what the test says."""

    def __init__(self) -> None:
        super().__init__()
        beside: Any = SimpleNamespace(pid=0, is_alive=False, event=print, is_due=False)
        self.life = RecorderLife(beside, self.link, beside, Settings(), is_second=False)

    def words(self, **state: object) -> str:
        self.theirs.send(json.dumps({"t": "state", **state}).encode())
        self.life.hear(time.monotonic(), Judge(Settings(), "b"), Settings())
        return self.life.words()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"frame": 0, "unix": 0.0}, "/var/lib/seawall/blackbox, nothing written yet"),
        ({"frame": 41, "unix": 9e9, "monotonic": 9e9},
         "/var/lib/seawall/blackbox, last frame 41, at most 0 s old"),
        ({"frame": 41, "unix": 9e9, "monotonic": 9e9, "remark": "goes on with its 64 MiB"},
         "/var/lib/seawall/blackbox, last frame 41, at most 0 s old; goes on with its 64 MiB"),
        ({"frame": 41, "unix": 9e9, "remark": "x", "problem": "the disk is full"},
         "nothing is written to /var/lib/seawall/blackbox: the disk is full"),
        ({"frame": "x", "unix": None, "problem": 0, "remark": None},
         "/var/lib/seawall/blackbox, nothing written yet"),
    ],
)  # fmt: skip
def test_what_it_says_is_in_the_status(state: dict[str, object], words: str) -> None:
    assert _Life().words(**state) == words


def test_how_old_it_is_no_set_clock_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was written for 23 h, and the clock was set back by a day."""
    life, now = _Life(), time.time()
    monkeypatch.setattr("time.time", lambda: now - 86_400)
    monotonic = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: monotonic + 23 * 3600)
    words = life.words(frame=9, unix=now, monotonic=monotonic - 0.5)
    assert words == "/var/lib/seawall/blackbox, last frame 9, at most 82801 s old"
    told_none = life.words(frame=9, unix=now)
    assert told_none == "/var/lib/seawall/blackbox, last frame 9, how old is not told"
