"""``seawall cache --json`` in tests: rows by path, and the peers that count the same pages."""

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from tests.end_to_end.warm_verbs import seawall

SCHEMA = json.loads((files("seawall.views") / "schemas/cache.json").read_text())
PAGE = os.sysconf("SC_PAGE_SIZE")

# Maps or opens the file, says so, and waits until its stdin is closed.
MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
held[0]
print("held", flush=True)
sys.stdin.read()
"""
OPENS = """
import sys
held = open(sys.argv[1], "rb")
print("held", flush=True)
sys.stdin.read()
"""


def cache(*words: str, most_seconds: float = 60) -> dict[str, Any]:
    """The document, held against its schema and its own sums."""
    ran = seawall("cache", "--json", *words, most_seconds=most_seconds)
    page = ran.answered().document
    jsonschema.validate(page, SCHEMA)
    assert set(SCHEMA["properties"]) >= set(page), "every field is in the schema"
    if "files" in page:
        known = [row.get("cached_bytes", 0) for row in page["files"]]
        assert known == sorted(known, reverse=True)
        assert sum(known) <= page["total_cached_bytes"]
        keys = [(row["device"], row["inode"]) for row in page["files"]]
        assert len(keys) == len(set(keys)), "each file once"
    return page


def row_of(page: dict[str, Any], path: Path | str) -> dict[str, Any]:
    """The row of one path."""
    found = [row for row in page["files"] if row["path"] == str(path)]
    assert len(found) == 1, [row["path"] for row in page["files"]]
    row = found[0]
    assert isinstance(row, dict)
    return row


def fill(path: Path, pages: int, *, sync: bool = True) -> Path:
    """A file of so many pages, all of them in memory."""
    with open(path, "wb") as file:
        file.write(os.urandom(pages * PAGE))
        file.flush()
        if sync:
            os.fsync(file.fileno())
    return path


def keep_only(path: Path, pages: range) -> None:
    """Give up a written file and read these pages of it back, one by one.

    Giving up a part would not do: it leaves large folios whole.
    """
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no readahead
    for page in pages:
        os.pread(fd, 1, page * PAGE)
    os.close(fd)


def hold(script: str, path: Path, *before: str) -> "subprocess.Popen[bytes]":
    """A process that holds the file; end it with ``communicate()``."""
    held = subprocess.Popen(
        [*before, sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdout
    assert held.stdout.readline() == b"held\n"
    return held


def fincore_pages(path: Path) -> int | None:
    """Pages in memory as util-linux counts them; None where it is missing or counts wrong."""
    if not shutil.which("fincore") or filesystem(path) == "overlayfs":
        return None  # it takes cachestat's 0 there
    command = ["fincore", "--bytes", "--raw", "--noheadings", "--output", "PAGES", str(path)]
    return int(subprocess.check_output(command))


def vmtouch_pages(path: Path) -> int | None:
    """The same by vmtouch."""
    if not shutil.which("vmtouch"):
        return None
    for line in subprocess.check_output(["vmtouch", str(path)], text=True).splitlines():
        if "Resident Pages:" in line:
            return int(line.split()[2].partition("/")[0])
    raise AssertionError("vmtouch said nothing")


def filesystem(path: Path) -> str:
    """Its kind as coreutils calls it: ``ext2/ext3``, ``tmpfs``, ``overlayfs``."""
    return subprocess.check_output(["stat", "-f", "-c", "%T", str(path)], text=True).strip()


def forgets(folder: Path) -> str | None:
    """Why pages of files here cannot be given up: a tmpfs has no disk to read them back from."""
    kind = filesystem(folder)
    if kind in ("tmpfs", "ramfs"):
        return f"{folder} is a {kind}: give pytest --basetemp on a disk"
    return None
