"""A guard that starts again in the same boot counts on: an id stands for one decision only."""

import json
import subprocess
import sys
from pathlib import Path

from tests.guard.sense_trees import FakeTree
from tests.guard.telling import BOOT, lines_of, verdict

from seawall.actions.journal import Change, Journal
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from types import SimpleNamespace
from seawall.actions.orders import Mounts
from seawall.guard.assembly import assemble
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.handover import GuardHandover
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.watcher_link import WatcherLink
from seawall.guard.settings import Settings
from tests.guard.judge_scene import CALM, hog, scene, short
folder, mount, boot, other_guard_pid = sys.argv[1:]
aide = SimpleNamespace(pid=0, fd=-1, is_alive=False, frozen=None, send=lambda _: False,
                       take=lambda *_, **__: None)
settings = Settings(mode="enforce", scope=("/kubepods",), over_limit="report")
handed = GuardHandover(settings, "/none", Mounts(mount, 2, None, mount), "/own", boot, folder,
                -1, 0, -1, 0, ())
handed = handed._replace(other_guard_pid=int(other_guard_pid))
parts, _ = assemble(handed, aide, WatcherLink(None), RecorderLink(None), ConfigWatch("/none"))
parts.judge.step(CALM, scene(hog(0)))
verdict = parts.judge.step(short(1005), scene(hog()))
parts.teller.verdict(verdict)
sys.stdout.flush()
os._exit(0)
"""


def guard(folder: Path, mount: Path, boot: str = BOOT, *, other_guard_pid: int = 0) -> None:
    """One that is put together as it is, decides once, and is killed."""
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(mount), boot,
         str(other_guard_pid)], cwd=REPOSITORY, check=True,
        env={"PYTHONPATH": "src:."},
    )  # fmt: skip


def ids(folder: Path) -> list[str]:
    return [line["decision"] for line in lines_of(folder / "decisions.jsonl")
            if line["kind"] == "verdict"]  # fmt: skip


def test_ids_go_on_after_a_restart(tmp_path: Path) -> None:
    mount, folder = tmp_path / "tree", tmp_path / "run"
    folder.mkdir()
    FakeTree(mount, 2).make("/kubepods/burstable/web")
    before = Teller(Settings(), Paths(str(folder), kmsg="/none", pmsg="/none"), BOOT, None)
    before.open()
    before.verdict(verdict(decision="5eed0000-0041"))
    before.close()
    for _ in range(2):
        guard(folder, mount)
    assert ids(folder) == ["5eed0000-0041", "5eed0000-0042", "5eed0000-0043"]
    guard(folder, mount, "0ddb0075" + BOOT[8:])
    assert ids(folder)[-1] == "0ddb0075-0001"
    assert json.loads((folder / "decisions.jsonl").read_text().splitlines()[-1])["boot_id"] != BOOT


def test_of_two_guards_none_has_the_others_ids(tmp_path: Path) -> None:
    """Both write to the kernel's log."""
    FakeTree(tmp_path / "tree", 2).make("/kubepods/burstable/web")
    (tmp_path / "second").mkdir()
    for _ in range(2):
        guard(tmp_path / "second", tmp_path / "tree", other_guard_pid=1)
    assert ids(tmp_path / "second") == ["5eed0000-5001", "5eed0000-5002"]


def test_an_id_that_nobody_was_told_of_is_not_given_again(tmp_path: Path) -> None:
    """The guard was ended between its kill and its words: of a kill, or of who stood still."""
    FakeTree(tmp_path / "tree", 2).make("/kubepods/burstable/web")
    journal = Journal(str(tmp_path / "guard.undo"))
    journal.open()
    journal.note(Change("signal", "/c", 7, "", "SIGKILL", "5eed0000-0007"))
    journal.begin(Change("freeze2", "/c", 7, "0", "1", "5eed0000-0008"))
    journal.close()
    guard(tmp_path, tmp_path / "tree")
    assert ids(tmp_path) == ["5eed0000-0009"]
