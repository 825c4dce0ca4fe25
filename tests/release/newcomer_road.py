"""A newcomer's road: lines of the README, pasted where nothing of Seawall is, to the first answer.

What only carries a file to the node is the test's to do: the file that a line names lies in the
folder where the line is pasted, as after a download, and of ``scp FILE node: && ssh node COMMAND``
the command is what is pasted, on the node.
"""

import contextlib
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from release.shipped_files import REPOSITORY
from tests.release.debian_roots import ENVIRONMENT, FRESH, kept, sheet_over

MOST_SECONDS = 60
ROAD = "newcomer"
"""Of the lines in the end of a test run (conftest.py)."""


def line_with(part: str) -> str:
    """The one line of code below the README's "Install" that has this in it."""
    readme = (REPOSITORY / "README.md").read_text()
    shown = readme.partition("\n## Install\n")[2].partition("\n## ")[0].splitlines()
    (line,) = (line for line in shown if line[:4] == "    " and part in line)
    return line.partition("  # ")[0].strip()


def on_the_node(line: str) -> str:
    """``COMMAND`` of ``scp FILE node: && ssh node COMMAND``."""
    return re.sub(r"^scp \S+ node: && ssh node ", "", line)


def first_question() -> str:
    """What the README says to type."""
    readme = (REPOSITORY / "README.md").read_text()
    return next(line.strip() for line in readme.splitlines() if line.startswith("    "))


def walk(
    way: str, lines: Sequence[str], enter: Sequence[str], record: Callable[[str, object], None]
) -> None:
    """The lines, pasted into one shell that ``enter`` begins; timed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with timed(way, "; ".join(lines), record):
        done = subprocess.run(
            [*enter, "sh", "-ec", "\n".join(lines)], capture_output=True, text=True, check=False,
            env=ENVIRONMENT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, (lines, done.stdout, done.stderr)
        check(done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert processor < MOST_SECONDS, "no machine walks it in time"


def check(answer: str) -> None:
    """The head of ``why``, and below it what it found."""
    lines = answer.splitlines()
    assert any(re.match(r"\S.*  Linux \d", line) for line in lines[:-1]), answer


@contextlib.contextmanager
def timed(way: str, line: str, record: Callable[[str, object], None]) -> Iterator[None]:
    """Says how long it took; over MOST_SECONDS the mark is missed."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    record(ROAD, f"{way}: {seconds:.1f} s: {line}")
    if seconds >= MOST_SECONDS:
        missed = f"mark missed: {way}: {seconds:.0f} s to the first answer, wanted {MOST_SECONDS}"
        if os.environ.get("SEAWALL_MARKS"):
            pytest.fail(missed)
        pytest.skip(missed)


@contextlib.contextmanager
def fresh_node(folder: Path, file: Path) -> Iterator[tuple[str, ...]]:
    """Debian's newest with the downloaded file in root's home: how to enter it."""
    with sheet_over(kept(*FRESH), folder) as root:
        shutil.copy(file, root / "root")
        script = (
            'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"'
        )
        yield (
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, str(root),
            "env", "--chdir=/root",
        )  # fmt: skip
