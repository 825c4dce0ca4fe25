"""The verb, and the pinner as the guard starts it: changed with its file, ended with it."""

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import guard_room
from tests.end_to_end.guard_room import Room, within
from tests.end_to_end.verbs import run
from tests.pinner.text_program import copied, running

from seawall.actions import undo as undoing
from seawall.actions.journal import Journal
from seawall.cli.guard_pins import computed, published
from seawall.guard.settings import Settings
from seawall.pinner.memory_low_setting import V1, MemoryLowSetting
from seawall.views import pins_text
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/guard-pins.json").read_text())
MIB = 1 << 20


def verb(*words: str) -> Any:
    return run([sys.executable, "-m", "seawall", "guard", "pins", *words])


def page_of(text: str) -> dict[str, Any]:
    page = json.loads(text)
    jsonschema.validate(page, SCHEMA)
    return dict(page)


# --- without a pinner ------------------------------------------------------------------


def test_what_would_be_pinned(tmp_path: Path) -> None:
    path = copied(tmp_path, "would-be")
    config = tmp_path / "guard.toml"
    config.write_text(f'pin = ["{path}"]\npin_at_most = "1 MiB"\n')
    config.chmod(0o644)
    with running(path):
        page = page_of(verb("--json", "--config", str(config)).answered().text)
        text = verb("--config", str(config)).answered().text
    assert not page["is_pinning"]
    assert page["budget_bytes"] == MIB == page["would_bytes"]
    assert page["pinned_bytes"] == 0
    (row,) = page["programs"]
    assert row["name"] == "would-be"
    assert row["processes"] == 1
    assert row["would_bytes"] + row["refused_bytes"] == row["before_bytes"] <= row["mapped_bytes"]
    assert page["refused"][0]["why"] == "the budget is used up"
    assert max(map(len, text.splitlines())) <= 80
    assert "No pinner runs on this machine" in text
    assert "the budget is used up" in text


def test_as_it_comes_it_suggests(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    config.write_text("")
    config.chmod(0o644)
    page = page_of(verb("--json", "--config", str(config)).answered().text)
    assert page["asked_for"] == []
    assert page["pin"] == ["node"]
    text = verb("--config", str(config)).answered().text
    assert 'With pin = ["node"] this would be held' in " ".join(text.split())
    config.write_text("pin = 7\n")
    wrong = verb("--config", str(config))
    assert wrong.status == 2
    assert wrong.err.count(b"\n") == 1


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = copied(tmp_path, "a\x1b[31m\nb")
    config = tmp_path / "guard.toml"
    config.write_text('pin = ["a*b"]\n')
    config.chmod(0o644)
    with running(path):
        text = verb("--config", str(config)).answered().text
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_what_cannot_be_seen_is_not_called_nothing(tmp_path: Path) -> None:
    """A pinner that runs and whose page cannot be read is not the same as none."""
    folder = str(tmp_path)
    assert published(folder) == ""
    (tmp_path / "pins.lock").write_text("1\n")
    assert published(folder) == ""
    with open(tmp_path / "pins.lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "has told nothing yet" in str(published(folder))
        for text, why in (
            ("[1]", "something else"), ('{"schema": "seawall.pins-page/9"}', "another version"),
            ('{"schema": "seawall.pins-page/1", "written_unix_seconds": "x"}', "something else"),
        ):  # fmt: skip
            (tmp_path / "pins").write_text(text)
            hidden = published(folder)
            assert why in str(hidden)
    page = computed(Settings())
    text = "\n".join(pins_text.lines(page, Console(), str(hidden)))
    assert "cannot be seen" in " ".join(text.split())
    assert "No pinner runs" not in text


# --- memory.low ------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(str(tmp_path / "pins.undo"))
    made.open()
    yield made
    made.close()


def group(tmp_path: Path, name: str, low: str, current: int) -> Path:
    """A folder with the two files; a real one is in tests/kernels/test_pins_61.py."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "memory.low").write_text(low)
    (folder / "memory.current").write_text(f"{current}\n")
    return folder / "memory.low"


def test_low_is_raised_once_and_put_back(tmp_path: Path, journal: Journal) -> None:
    low = group(tmp_path, "system.slice", "0", 30 * MIB)
    more = group(tmp_path, "other.slice", "0", 999 * MIB)
    owners = group(tmp_path, "owners.slice", "max", 5 * MIB)
    lows = MemoryLowSetting(journal, str(tmp_path), 2, 1000 * MIB)
    lows.keep(("/system.slice", "/other.slice", "/owners.slice", "/nobody.slice", "/../x"))
    assert low.read_text() == str(30 * MIB)
    assert more.read_text() == str(70 * MIB), "a tenth of the memory together"
    assert owners.read_text() == "max"
    words = [row["words"] for row in lows.rows]
    assert words[2:] == [
        "its own memory.low is max, which is not less: left", "No such file or directory",
        "not the path of a cgroup below the root",
    ]  # fmt: skip
    more.write_text("4096000000")  # its owner
    lows.keep(("/system.slice", "/other.slice"))
    assert lows.rows[0]["words"] == "kept"
    assert "somebody wrote" in lows.rows[1]["words"]
    lows.close()
    assert low.read_text().startswith("0")
    assert more.read_text() == "4096000000"
    assert not journal.changes()


def test_what_a_killed_pinner_left_is_put_back(tmp_path: Path, journal: Journal) -> None:
    low = group(tmp_path, "system.slice", "0", 30 * MIB)
    MemoryLowSetting(journal, str(tmp_path), 2, 1000 * MIB).keep(("/system.slice",))
    journal.close()
    assert low.read_text() == str(30 * MIB)
    (words,) = undoing.undo(Journal(journal.path))
    assert words.endswith("memory.low is 0 again")


def test_on_v1_it_says_why_not(tmp_path: Path, journal: Journal) -> None:
    lows = MemoryLowSetting(journal, str(tmp_path), 1, 1000 * MIB)
    lows.keep(("/system.slice",))
    assert lows.rows == [{"path": "/system.slice", "low_bytes": None, "words": V1}]


# --- with the guard --------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    if why := guard_room.missing():
        pytest.skip(why)
    with guard_room.room(tmp_path) as made:
        yield made


def told(own: Room) -> dict[str, Any]:
    path = own.run / "pins"
    return dict(json.loads(path.read_text())) if path.exists() else {}


@pytest.mark.system
def test_it_lives_with_the_guard(own: Room, tmp_path: Path) -> None:
    first, second = copied(tmp_path, "pinned-first"), copied(tmp_path, "pinned-second")
    own.write(pin=["pinned-first"], pin_slices=["/x"], tick_most_seconds=1)
    with running(first), running(second):
        guard = own.begin(tmp_path / "log")
        assert within(20, lambda: told(own).get("pinned_bytes", 0) > 0)
        page = page_of(own.guard("pins", "--json").stdout)
        assert page["is_pinning"]
        assert [row["name"] for row in page["programs"]] == ["pinned-first"]
        assert page["pinned_bytes"] == page["by_kernel_bytes"] > 0
        pid = page["pid"]
        assert int(Path(f"/proc/{pid}/stat").read_text().split()[3]) == guard.pid
        text = own.guard("pins").stdout
        assert f"The pinner (pid {pid})" in " ".join(text.split())
        print(text, page["round_seconds"], page["round_cpu_seconds"])  # noqa: T201
        own.write(pin=["pinned-second"], tick_most_seconds=1)
        assert within(
            60, lambda: [row["name"] for row in told(own)["programs"]] == ["pinned-second"]
        )
        guard.send_signal(signal.SIGKILL)
        guard.wait(20)
        assert within(10, lambda: not os.path.exists(f"/proc/{pid}/maps"))
        assert "No pinner runs" in own.guard("pins", "--config", str(own.config)).stdout
