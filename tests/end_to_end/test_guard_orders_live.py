"""What a real guard on this machine does with the files of a person and of the agent."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.guard_room import Room, missing, room, within
from tests.end_to_end.test_guard_live import FOLDERS, HOG, POD

from seawall.guard.judge.rescue import NOT_SHORT
from seawall.role_claims import NOT_NAMED

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
DEEP_PEACE_SECONDS = 25.0
"""The guard looks every 20 s at least."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        yield found


def put(folder: Path, name: str, document: object) -> None:
    part = folder / f".{name}.new"
    part.write_text(json.dumps(document))
    part.chmod(0o600)
    os.rename(part, folder / name)


@pytest.mark.parametrize("name", ["brake", "orders/brake"])
def test_the_brake_disarms_within_seconds_and_its_end_arms_again(
    own: Room, tmp_path: Path, name: str
) -> None:
    own.write(mode="enforce", tick_most_seconds=20)
    own.begin(tmp_path / "out")
    assert within(16, lambda: own.page()["mode"] == "enforce")
    brake = own.run / name
    put(brake.parent, "brake", {})
    time.monotonic()
    assert within(DEEP_PEACE_SECONDS, lambda: own.page()["mode"] == "observe"), own.text()
    page = own.page()
    assert page["brake_since_unix_seconds"] == pytest.approx(brake.stat().st_mtime, abs=1)
    assert page["mode_why"].startswith("brake: on since ")
    assert "brake: on since" in own.text()
    status = own.guard("status")
    assert "brake: on since" in status.stdout
    brake.unlink()
    assert within(DEEP_PEACE_SECONDS, lambda: own.page()["mode"] == "enforce"), own.text()
    assert own.page()["brake_since_unix_seconds"] is None
    assert "the brake is off" in own.sentences()


def test_a_brake_that_others_can_write_is_ignored_with_words(own: Room, tmp_path: Path) -> None:
    own.write(mode="enforce", tick_most_seconds=1)
    own.begin(tmp_path / "out")
    brake = own.run / "brake"
    brake.touch()
    brake.chmod(0o666)
    assert within(20, lambda: "brake is ignored" in " ".join(own.page()["problems"])), own.text()
    assert own.page()["mode"] == "enforce"


def quarantine(own: Room) -> None:
    row = {"name": "ml-hog", "pods": [POD.removeprefix("pod")],
           "until_unix_seconds": time.time() + 600}  # fmt: skip
    put(own.run / "orders", "quarantine", {"quarantines": [row]})


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_pod_in_quarantine_ends_when_it_starts_and_nobody_else(
    own: Room, tmp_path: Path, mode: str
) -> None:
    own.write(mode=mode, quarantine=True, tick_most_seconds=1)
    own.begin(tmp_path / "out")
    quarantine(own)
    for folder in FOLDERS:
        own.make(folder)
    for name in (HOG, "forker"):
        own.make(name)
    beside = own.start("forker", "forks", "200")
    listed = own.start(HOG, "forks", "200")
    decided = lambda: [  # noqa: E731 - asked again and again
        row for row in own.journal()
        if row["kind"] == "verdict" and row["trigger"] == "quarantined"
    ]  # fmt: skip
    # In deep peace the guard hears the watcher every 20 s; the name comes with the second time.
    assert within(90, lambda: bool(decided())), own.text()
    assert "is in quarantine (ml-hog)" in decided()[0]["sentence"]
    if mode == "enforce":
        assert within(10, lambda: listed.poll() is not None), own.text()
        assert listed.returncode == -signal.SIGKILL
    else:
        time.sleep(3)
        assert listed.poll() is None
    assert beside.poll() is None


def test_an_order_on_a_node_that_is_not_short_ends_nobody(own: Room, tmp_path: Path) -> None:
    own.write(mode="observe", rescue=True, tick_most_seconds=1)
    own.begin(tmp_path / "out")
    for folder in FOLDERS:
        own.make(folder)
    own.make(HOG)
    named = own.start(HOG, "forks", "200")
    assert within(20, lambda: any(folder.exists() for folder in own.folders(HOG)))
    time.sleep(3)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    put(own.run / "orders", "rescue", {
        "order": "uid-1", "boot_id": boot, "pods": [POD.removeprefix("pod")], "by": "ops",
        "until_unix_seconds": time.time() + 300,
    })  # fmt: skip
    assert within(20, lambda: (own.page()["rescue"] or {}).get("state") == "waits"), own.page()
    assert own.page()["takes_rescue"] is True
    assert within(45, lambda: own.page()["rescue"]["state"] == "refused"), own.page()
    # In deep peace the name may come later than the 30 s for which an order waits.
    words = own.page()["rescue"]["words"]
    assert words == NOT_SHORT or words.endswith(NOT_NAMED)
    assert named.poll() is None
