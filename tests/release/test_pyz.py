"""seawall.pyz where there is no tree: every verb, the guard, old Pythons, and twice the same."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.architecture.test_python_versions import real_old_pythons, stand_in
from tests.end_to_end.guard_room import missing, own_environment, room, within
from tests.release import newcomer_road
from tests.release.copies import copy_of_the_tree, make

from release import pyz
from seawall.cli.main import VERBS

BUNDLE = Path(__file__).parents[2] / "docs/incidents/gpu-node-dies/bundle"
needs_room = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pyz.build(tmp_path_factory.mktemp("node"))


def answer(archive: Path, *words: str, python: str = sys.executable) -> str:
    """On a machine with the one file, asked by its relative path."""
    done = subprocess.run(
        [python, archive.name, *words], cwd=archive.parent, env={"PATH": os.environ["PATH"]},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout


def from_the_tree(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "seawall", *words], env={"PYTHONPATH": "src"}, check=True,
        cwd=BUNDLE.parents[3], capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_it_is_the_same_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    early = copy_of_the_tree(tmp_path / "early", 1_000_000_000, 0o600)
    late = copy_of_the_tree(tmp_path / "some/where.cases/late", 1_700_000_000, 0o664)
    (late / "src/seawall/__pycache__").mkdir()
    (late / "src/seawall/__pycache__/left.pyc").write_text("of an earlier run")
    sums = {
        hashlib.sha256((make(folder, "pyz", **how) / pyz.NAME).read_bytes()).hexdigest()
        for folder, how in (
            (early, {"umask": "077", "seed": "1"}), (late, {"umask": "002", "seed": "2"}),
        )
    }  # fmt: skip
    assert len(sums) == 1
    (late / "src/seawall/words.py").write_text('"""Other words."""\n')
    other = make(late, "pyz") / pyz.NAME
    assert hashlib.sha256(other.read_bytes()).hexdigest() not in sums


def test_it_holds_what_a_node_needs_and_no_cases(archive: Path) -> None:
    assert archive.stat().st_size < 2_800_000
    assert archive.stat().st_mode & 0o111
    names = zipfile.ZipFile(archive).namelist()
    assert names == sorted(set(names))
    assert {"__main__.py", "seawall/guard/entry.py", "seawall/_vendor/yaml/LICENSE"} < set(names)
    assert not [name for name in names if ".case" in name or "__pycache__" in name]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_starts(archive: Path, verb: str) -> None:
    assert answer(archive, verb, "--help") == from_the_tree(verb, "--help")


def test_it_answers_as_the_tree_does(archive: Path) -> None:
    for words in (
        ("why", "--from", str(BUNDLE), "--whole"),
        ("memory", "--from", str(BUNDLE), "--json"),
        ("rules", "list"),
        ("rules", "show", "SW103"),
        ("oom", "predict", "--from", str(BUNDLE)),
    ):
        assert answer(archive, *words) == from_the_tree(*words), words


def test_cases_are_said_to_be_left_out(archive: Path) -> None:
    done = subprocess.run(
        [sys.executable, archive, "rules", "show", "SW103", "--example"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "seawall: SW103: examples are left out here; the sources have them\n"


def test_old_pythons_start_a_newer_one_or_say_one_sentence(archive: Path, tmp_path: Path) -> None:
    ran = 0
    empty = tmp_path / "none"
    empty.mkdir()
    for python in real_old_pythons():
        version = "import sys; print('%d.%02d' % sys.version_info[:2])"
        asked = subprocess.run([python, "-c", version], capture_output=True, text=True, check=False)
        if asked.returncode or not "2.07" <= asked.stdout.strip() < "3.10":
            continue
        ran += 1
        (newer := tmp_path / f"newer{ran}").mkdir()
        (newer / "python3.12").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (newer / "python3.12").chmod(0o755)
        stand_in(tmp_path / "broken", "python3.13")
        (tmp_path / "broken/python3.13").write_text("#!/bin/sh\nexit 127\n")
        found = subprocess.run(
            [python, archive.name, "rules", "show", "SW103"], capture_output=True, text=True,
            cwd=archive.parent, env={"PATH": f"{tmp_path}/broken:{newer}"}, check=False,
        )  # fmt: skip
        assert (found.returncode, found.stderr) == (0, ""), python
        assert found.stdout.startswith("SW103"), python
        if list(Path("/usr/bin").glob("python3.1[0-3]")):
            continue  # that one is found, as it should be
        none = subprocess.run(
            [python, archive, "why"], capture_output=True, text=True, env={"PATH": str(empty)},
            check=False,
        )  # fmt: skip
        assert (none.returncode, none.stdout) == (2, ""), python
        assert re.fullmatch(r"seawall needs Python 3\.10 or later: [^\n]+\n", none.stderr), python
    if not ran:
        pytest.skip("no Python older than 3.10 is here: apt-get install python2.7 (Debian 11)")


@pytest.mark.system
@pytest.mark.beside
@needs_room
def test_the_guard_runs_from_it_with_all_its_processes(archive: Path, tmp_path: Path) -> None:
    """By a relative path, and not in the folder where it lies once it runs."""
    with room(tmp_path) as own:
        own.write(blackbox=str(tmp_path / "box"), blackbox_size="4 MiB")
        with (tmp_path / "out").open("w") as out:
            process = subprocess.Popen(
                [*own.enter, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", archive.parent,
                 sys.executable, archive.name, "guard", "run", "--config", own.config],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True,
                env={k: v for k, v in own_environment().items() if k != "PYTHONPATH"},
            )  # fmt: skip
        own.processes.append(process)
        said = tmp_path / "out"
        assert within(40, lambda: own.page().get("can_kill") is True), said.read_text()
        assert own.page()["pid"] == process.pid
        running = commands(archive)
        assert {words[5] for words in running.values()} >= {"guard", "watcher", "recorder"}
        for words in running.values():
            assert words[1:5] == ["-I", "-S", str(archive), "--guard-process"]
        # A reload reads the file by one more process of the archive.
        own.write(blackbox=str(tmp_path / "box"), blackbox_size="4 MiB", act_fraction=0.031)
        process.send_signal(signal.SIGHUP)
        assert within(20, lambda: "was read anew" in said.read_text()), said.read_text()
        # Its watcher is replaced by one from the same file.
        watcher = next(pid for pid, words in running.items() if "watcher" in words)
        os.kill(watcher, signal.SIGKILL)
        assert within(
            40, lambda: any("watcher" in w and p != watcher for p, w in commands(archive).items())
        ), said.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert within(10, lambda: not commands(archive))
        assert "Traceback" not in said.read_text()


def commands(archive: Path) -> dict[int, list[str]]:
    """The processes that run from it."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if str(archive) in words:
                found[int(entry.name)] = words
    return found


@pytest.mark.system
@pytest.mark.beside
@pytest.mark.timeout(600)
def test_a_newcomers_road(
    archive: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with newcomer_road.fresh_node(tmp_path, archive) as enter:
        line = newcomer_road.on_the_node(newcomer_road.line_with(".pyz"))
        newcomer_road.walk("pyz", [line], enter, record_property)
