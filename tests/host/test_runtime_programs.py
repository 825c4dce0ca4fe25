"""Programs are asked for their version: what they say, and what must not hold us."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from seawall.host import runtime_versions as asked

needs_root = [
    pytest.mark.system,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only root's programs are run: sudo make test-system"
    ),
]


def program(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that is looked at, empty."""
    for name in ("_BUNDLES", "_FOLDERS", "_SYSTEMD"):
        monkeypatch.setattr(asked, name, (str(tmp_path / name),))
    monkeypatch.setattr(asked, "_BOOTED", str(tmp_path / "booted"))
    monkeypatch.setattr(asked, "_UNITS_LOAD", str(tmp_path / "loaded"))
    monkeypatch.setattr(asked, "_GENERATED", (str(tmp_path / "generator"),))
    (tmp_path / "_FOLDERS").mkdir()
    return tmp_path


def answer() -> dict[str, Any]:
    told = asked.runtime_versions()
    assert isinstance(told, dict)
    return told


def test_a_machine_without_any(folder: Path) -> None:
    assert folder
    assert answer() == {"runtimes": [], "told": [], "systemd": None, "units_loaded": None}


def test_who_is_not_roots_alone_is_not_run(folder: Path) -> None:
    path = program(folder / "_FOLDERS" / "runc", f"touch {folder}/ran", 0o777)
    ((named, told),) = answer()["runtimes"]
    assert named == path
    assert told["problem"][0] == "refused"
    assert not (folder / "ran").exists()


def test_when_systemd_loaded_its_units(folder: Path) -> None:
    (folder / "booted").mkdir()
    assert answer()["units_loaded"] is None
    (folder / "generator").mkdir()
    os.utime(folder / "generator", (1, 1_500_000_000))
    assert answer()["units_loaded"] == 1_500_000_000
    (folder / "loaded").touch()
    os.utime(folder / "loaded", (1, 1_600_000_000.5))
    assert answer()["units_loaded"] == 1_600_000_000.5


class TestRun:
    pytestmark = needs_root

    def test_what_a_bundle_names_comes_first(self, folder: Path) -> None:
        path = program(folder / "_FOLDERS" / "runc", "echo runc version 9; env")
        named = program(folder / "own-runc", "echo runc version 8; exec sleep 60")
        wrapper = program(folder / "nvidia-container-runtime", f"touch {folder}/ran")
        home = folder / "_BUNDLES" / "k8s.io"
        for key in "ab":
            (home / key).mkdir(parents=True)
            (home / key / "runtime").write_text(named)
        os.mkfifo(home / "fifo")
        assert answer()["told"] == [named]
        for text in ("", "runc", wrapper):
            (home / "b/runtime").write_text(text)
            told = answer()
            assert told["told"] == sorted([named, path]), "the PATH's runs some of them"
        rows = dict(told["runtimes"])
        assert set(rows) == {named, path}
        assert not (folder / "ran").exists()
        assert rows[path].startswith("runc version 9\n")
        assert "HOME" not in rows[path], "an environment of its own"

    def test_one_that_is_silent_and_one_that_never_ends(self, folder: Path) -> None:
        program(folder / "_FOLDERS" / "runc", "exec sleep 60")
        program(folder / "_FOLDERS" / "crun", "exec yes crun")
        began = time.monotonic()
        told = dict(answer()["runtimes"])
        assert time.monotonic() - began < 2
        assert told[str(folder / "_FOLDERS" / "runc")]["problem"][0] == "no_answer"
        assert len(told[str(folder / "_FOLDERS" / "crun")]) <= 4096
