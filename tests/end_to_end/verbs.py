"""Running verbs as a user does: a process, its output, its time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[2] / "src"
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if k != "COLUMNS"},
    "PYTHONPATH": str(SOURCES),
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    status: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def document(self) -> dict[str, Any]:
        page = json.loads(self.out)
        assert isinstance(page, dict)
        return page

    def answered(self) -> "Ran":
        """The same, when it answered: status 0 and no traceback; else the test fails."""
        words = self.err.decode(errors="replace")
        assert self.status == 0, f"exit {self.status}\n{words}"
        assert "Traceback" not in words, words
        return self


def run(command: Sequence[str], *, most_seconds: float = 60) -> Ran:
    """Run to the end; a command that outlives ``most_seconds`` fails the test."""
    began = time.monotonic()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=most_seconds,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def seawall(*words: str, most_seconds: float = 60) -> Ran:
    """``seawall WORDS`` with the interpreter that runs the tests."""
    return run([sys.executable, "-m", "seawall", *words], most_seconds=most_seconds)


def rules_without(ids: Iterable[str]) -> str:
    """A file for ``--rules`` in which these are muted."""
    rows = ("mute = true", 'reason = "a test"', "until = 2999-01-01")
    return "".join("\n".join((f"[{id_}]", *rows, "")) for id_ in sorted(ids))
