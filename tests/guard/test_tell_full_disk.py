"""Journal and status on a filesystem without room: whole, in order, and back by themselves."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guard.telling import BOOT, groups, node

from seawall.guard.settings import Settings
from seawall.guard.tell.decisions import Decisions
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only root mounts a small tmpfs; make test-system as root"
    ),
]
SIZE = 1 << 20
PAGE = 4096


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 4 MiB."""
    folder = tmp_path / "run"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> None:
    with (folder / "junk").open("ab", buffering=0) as junk:
        while True:
            try:
                junk.write(bytes(PAGE))
            except OSError:
                return


def opened(folder: Path) -> Decisions:
    made = Decisions(str(folder), SIZE)
    made.open()
    return made


def line(number: int) -> bytes:
    words = {"decision": f"5eed0000-{number:04d}", "sentence": "x" * 200}
    return json.dumps(words).encode() + b"\n"


def ids(folder: Path) -> list[int]:
    text = (folder / "decisions.jsonl").read_bytes()
    return [int(json.loads(one)["decision"][-4:]) for one in text.splitlines()]


def test_what_was_there_stays_when_no_block_can_be_had(small: Path) -> None:
    """The older file is gone, and others have taken the room."""
    first = opened(small)
    for number in range(1, 9):
        assert first.add(line(number))
    first.close()
    (small / "decisions.1.jsonl").unlink()
    fill(small)
    second = opened(small)
    assert "No space left" in second.problem
    assert second.last_id == "5eed0000-0008"
    assert second.add(line(9))
    assert second.problem == ""
    second.close()
    assert ids(small) == [*range(1, 10)]


def test_lines_are_written_as_soon_as_there_is_room(small: Path) -> None:
    fill(small)
    made = opened(small)
    assert not made.add(line(1))
    assert "No space left" in made.problem
    (small / "junk").unlink()
    assert made.add(line(2))
    assert made.problem == ""
    made.close()
    assert ids(small) == [2]


def test_a_full_run_at_the_start_is_said_and_the_status_comes_when_there_is_room(
    small: Path, tmp_path: Path
) -> None:
    fill(small)
    (tmp_path / "kmsg").touch()
    teller = Teller(Settings(), Paths(str(small), kmsg=f"{tmp_path}/kmsg"), BOOT, None)
    teller.open()
    said = (tmp_path / "kmsg").read_text()
    for name in ("status", "status.json", "decisions.jsonl"):
        assert f"<6>seawall-guard: {small}/{name}: No space left on device\n" in said
    teller.status(node(), groups(), "short", {})
    assert f"{small}/status: No space left on device" in teller.problems
    (small / "junk").unlink()
    teller.status(node(seconds=200.0), groups(), "peace", {})
    assert "node is in peace" in (small / "status").read_text()
    assert json.loads((small / "status.json").read_bytes())["state"] == "peace"
    assert (small / "decisions.jsonl").stat().st_blocks * 512 == SIZE
    assert not [words for words in teller.problems if words.startswith(str(small))]
    teller.close()
