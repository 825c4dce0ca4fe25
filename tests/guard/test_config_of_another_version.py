"""The guard's file read by files of another version, and the brake that always works."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.guard.aides import answer, started
from tests.guard.test_loop_ends import ENFORCE, PUT_BACK, Scene
from tests.guard.test_loop_ends import scene as loop_scene  # noqa: F401 - the fixture

from seawall.guard import entry
from seawall.guard.handover import REPLACED, from_json, known_settings, to_json
from seawall.guard.reload import read
from seawall.guard.settings import Settings
from seawall.guard.tell.own_programs import config_answer, is_observe_in_plain

HANDED: Any = SimpleNamespace(settings=ENFORCE, other_guard_pid=0)
SOURCES = Path(entry.root()) / "seawall"


def written(other: Settings, **keys: object) -> str:
    """As another version writes it: with ``keys``; without those that are None."""
    document = {**json.loads(to_json(other)), **keys}
    return json.dumps({key: value for key, value in document.items() if value is not None})


def test_of_another_version_what_is_known_here_is_taken() -> None:
    new = ENFORCE._replace(protect=("/shop",), freeze_seconds=1.0)
    assert known_settings(to_json(new), ENFORCE) == (new, "")
    text = written(new, gentle=True, stuck=None, kills_per_minute="six", over_limit="throttle")
    settings, left = known_settings(text, ENFORCE)
    assert settings == new
    assert left == f"not taken: gentle, kills_per_minute, over_limit, stuck; {REPLACED}"
    settings_, words, problem = read({"settings": text}, HANDED, ENFORCE)
    assert settings_ == new
    assert problem == f"{words}; {left}"
    assert "mode ENFORCE" in words


def test_half_understood_it_brakes_and_never_turns_killing_on() -> None:
    off = ENFORCE._replace(mode="observe")
    assert read({"settings": written(off, gentle=1)}, HANDED, ENFORCE)[0] == off
    settings, words, problem = read({"settings": written(ENFORCE, gentle=1)}, HANDED, off)
    assert (settings, words) == (None, "")
    assert "the old one stays: gentle: of another version" in problem
    assert problem.endswith(REPLACED)
    assert read({"settings": written(ENFORCE, mode="armed")}, HANDED, off)[0] == off


@pytest.mark.parametrize("text", ["[]", "no JSON", "", "null"])
def test_what_is_not_understood_at_all_changes_nothing_but_the_brake_works(text: str) -> None:
    assert read({"settings": text}, HANDED, ENFORCE)[0] is None
    settings, words, problem = read({"settings": text, "mode": "observe"}, HANDED, ENFORCE)
    assert (settings, words) == (ENFORCE._replace(mode="observe"), "")
    assert problem.startswith('it observes and never kills, for the file says mode = "observe"')


def test_whoever_wrote_observe_with_a_slip_is_observed_for_and_told(loop_scene: Scene) -> None:  # noqa: F811
    """What the guard had changed is put back, and the status says what was not taken."""
    loop_scene.loop._take_config({"problem": "/g.toml:7: gentel: no such key", "mode": "observe"})
    assert loop_scene.loop.settings == ENFORCE._replace(mode="observe")
    *put_back, said = loop_scene.said
    assert put_back == PUT_BACK
    assert said.endswith("the old one stays: /g.toml:7: gentel: no such key")
    assert loop_scene.loop.parts.teller.failures.words == [said]


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ('mode = "observe"', True), ("mode='observe' # for now\r\n", True),
        ('\ufeffmode\t=  "observe"\nscope = 7 7', True), ('[broken\nmode = "observe"\n', True),
        ('# mode = "observe"', False), ('mode = "enforce" # not mode = "observe"', False),
        ('over_mode = "observe"', False), ('mode = "observed"', False), ("mode = observe", False),
        ("", False), ("\0\xff", False),
    ],
)  # fmt: skip
def test_observe_in_plain(tmp_path: Path, text: str, is_so: bool) -> None:
    path = tmp_path / "guard.toml"
    path.write_bytes(text.encode("utf-8"))
    path.chmod(0o600)
    assert is_observe_in_plain(str(path)) is is_so
    path.chmod(0o666)
    assert not is_observe_in_plain(str(path)), "what others may write is nobody's word"
    assert not is_observe_in_plain(str(tmp_path / "none"))


def test_an_answer_says_what_failed() -> None:
    assert config_answer(b"\n{}\n", 0, "") == {"settings": "{}"}
    assert config_answer(b"observe\n/g:1: x\n", 2, "") == {"mode": "observe", "problem": "/g:1: x"}
    assert config_answer(b"observe\nx", 70, "")["problem"].startswith("its reader failed with st")
    assert config_answer(b"observe\n{}", 0, "took over 20 s: killed") == {
        "mode": "observe", "problem": f"took over 20 s: killed; perhaps {REPLACED}",
    }  # fmt: skip
    assert config_answer(b"", -9, "")["problem"].endswith(REPLACED)


@pytest.fixture
def replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our files as another version's, under an aide that has this one's in memory."""
    folder = tmp_path / "lib/seawall"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__", "schemas"))
    monkeypatch.setattr(entry, "__file__", str(folder / "guard/entry.py"))
    settings = folder / "guard/settings.py"
    text = settings.read_text()
    settings.write_text(text.replace("    pmsg: bool", "    gentle: bool = True\n    pmsg: bool"))
    (folder / "guard/config.py").write_text(
        "from seawall.guard.handover import NEW\n" + (folder / "guard/config.py").read_text()
    )
    with (folder / "guard/handover.py").open("a") as handed:
        handed.write("\nNEW = 1\n")
    return folder


def test_a_real_aide_reads_by_the_files_that_are_there_now(replaced: Path, tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text('mode = "observe"\nprotect = ["shop/*"]\n')
    path.chmod(0o600)
    request = {"do": "config", "path": str(path)}
    with started() as aide:
        said = answer(aide, request)
        assert known_settings(said["settings"], ENFORCE)[1] == f"not taken: gentle; {REPLACED}"
        settings, _, problem = read(said, HANDED, ENFORCE)
        assert settings is not None
        assert (settings.mode, settings.protect) == ("observe", ("shop/*",))
        assert REPLACED in problem
        (replaced / "guard/keys.py").write_text("half a fi")  # while it is copied
        said = answer(aide, request)
        assert (said["mode"], "settings" in said) == ("observe", False)
        assert read(said, HANDED, ENFORCE)[0] == ENFORCE._replace(mode="observe")
        shutil.rmtree(replaced)
        assert answer(aide, request)["mode"] == "observe"
        path.write_text('mode = "enforce"\n')
        assert read(answer(aide, request), HANDED, ENFORCE)[0] is None


def test_without_an_interpreter_the_brake_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "config_argv", lambda path: ["/none/python", path])
    path = tmp_path / "guard.toml"
    path.write_text('mode = "observe"\n')
    path.chmod(0o600)
    with started() as aide:
        said = answer(aide, {"do": "config", "path": str(path)})
    assert said["mode"] == "observe"
    assert "failed with status 70" in said["problem"]


def test_settings_of_another_version_do_not_end_a_guard_that_starts_afresh(tmp_path: Path) -> None:
    """The file is read then."""
    from seawall.guard.launcher import in_force

    for text, found in ((written(ENFORCE, gentle=1), None), (to_json(ENFORCE), ENFORCE)):
        (tmp_path / "kept").write_text(text)
        assert in_force(os.open(tmp_path / "kept", os.O_RDONLY)) == found
    with pytest.raises(ValueError, match="not the settings of this version"):
        from_json(written(ENFORCE, gentle=1))
