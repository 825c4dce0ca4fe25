"""The guard's file changes and nobody sends a signal: seen by the kernel's word, taken if it does
no more than before.
"""

import json
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.guard.test_reload import Scene, until

from seawall.guard import aide_process
from seawall.guard.config_watch import SETTLED_SECONDS, ConfigWatch, way_steps
from seawall.guard.handover import to_json
from seawall.guard.loop import Loop
from seawall.guard.reload import Reload, bolder
from seawall.guard.settings import Settings
from seawall.guard.tell.failures import Failures

ENFORCE = Settings(mode="enforce", protect=("/shop",), over_limit_opt_in=("/a",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "etc/seawall/guard.toml"
    found.parent.mkdir(parents=True)
    found.write_text('mode = "observe"\n')
    found.chmod(0o644)
    return found


def opened(path: Path) -> ConfigWatch:
    watch = ConfigWatch(str(path))
    assert not watch.problem
    watch.open()
    return watch


@pytest.fixture
def watch(path: Path) -> Iterator[ConfigWatch]:
    found = opened(path)
    yield found
    found.close()


def is_ready(watch: ConfigWatch) -> bool:
    return bool(select.select([watch.fd], [], [], 0)[0])


def is_seen(watch: ConfigWatch) -> bool:
    """Whether what was done is noticed, a second later and once."""
    now = time.monotonic()
    assert not watch.is_changed(now, is_ready=is_ready(watch)), "whoever writes is let finish"
    later = now + SETTLED_SECONDS
    found = watch.is_changed(later, is_ready=False)
    assert not watch.is_changed(later + 5, is_ready=is_ready(watch)) or not found
    return found


def replace(path: Path) -> None:
    new = path.with_name("guard.toml.new")
    new.write_text('mode = "enforce"\n')
    new.rename(path)


def replace_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("old"))
    path.parent.mkdir()
    path.write_text("")


CHANGES: dict[str, Callable[[Path], Any]] = {
    "written in place": lambda path: path.write_text('mode = "enforce"\n'),
    "another one in its place": replace,
    "gone": lambda path: path.unlink(),
    "open to others": lambda path: path.chmod(0o666),
    "another folder in its place": replace_folder,
    "a hard link to it is written to": lambda path: (
        os.link(path, path.with_name("other")), path.with_name("other").write_text("x"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(watch: ConfigWatch, path: Path, change: str) -> None:
    assert not is_ready(watch)
    CHANGES[change](path)
    assert is_seen(watch)


def test_it_is_noticed_where_it_was_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none/yet/guard.toml"
    watch = opened(path)
    path.parent.mkdir(parents=True)
    assert is_seen(watch)
    watch.close()


def test_reading_it_and_its_neighbours_are_no_change(watch: ConfigWatch, path: Path) -> None:
    path.read_text()
    path.with_name("policy.toml").write_text("x")
    (path.parent.parent / "hosts").write_text("x")
    assert is_ready(watch)
    assert not is_seen(watch)


def test_who_makes_files_beside_it_wakes_nobody_more_than_once_a_second(
    watch: ConfigWatch, path: Path
) -> None:
    now = time.monotonic()
    path.with_name("x").write_text("x")
    assert watch.polled(now) == watch.fd
    assert not watch.is_changed(now, is_ready=True)
    assert watch.polled(now + 0.5) == -1
    assert watch.pause(now + 0.25, 20.0) == pytest.approx(0.75)
    assert watch.polled(now + 1.1) == watch.fd
    assert watch.pause(now + 1.1, 20.0) == 20.0
    # A change in that second is seen at its end.
    path.write_text("")
    assert not watch.is_changed(now + 1.1, is_ready=is_ready(watch))
    assert watch.pause(now + 1.1, 20.0) == pytest.approx(1.0)
    assert watch.is_changed(now + 2.2, is_ready=is_ready(watch))


def config_map(tmp_path: Path) -> Path:
    """As the kubelet has it: a link to a link to a folder, of which only the middle one changes."""
    first = tmp_path / "..2026_a"
    first.mkdir()
    (first / "guard.toml").write_text('mode = "enforce"\n')
    (tmp_path / "..data").symlink_to("..2026_a")
    (tmp_path / "guard.toml").symlink_to("..data/guard.toml")
    return tmp_path / "guard.toml"


def swap(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / "guard.toml").write_text(text)
    (folder / "..data_tmp").symlink_to(name)
    (folder / "..data_tmp").rename(folder / "..data")


def test_a_config_map_that_is_swapped_is_noticed_each_time(tmp_path: Path) -> None:
    path = config_map(tmp_path)
    assert [name for _, name in way_steps(str(path))][-4:] == [
        "guard.toml", "..data", "..2026_a", "guard.toml",
    ]  # fmt: skip
    watch = opened(path)
    for name in ("..2026_b", "..2026_c"):
        swap(tmp_path, name, 'mode = "observe"\n')
        assert is_seen(watch)
        time.sleep(0.01)
    watch.close()


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    watch = opened(tmp_path / "a")
    (tmp_path / "a").unlink()
    assert is_seen(watch)
    watch.close()


def test_a_reading_watches_the_new_way(tmp_path: Path) -> None:
    """A real aide: its child adds to the guard's descriptor, and the guard looks nothing up."""
    first, other = tmp_path / "first", tmp_path / "other"
    for folder in (first, other):
        folder.mkdir()
        (folder / "x.toml").write_text('mode = "observe"\n')
        (folder / "x.toml").chmod(0o644)
    link = tmp_path / "guard.toml"
    link.symlink_to("first/x.toml")
    watch = opened(link)
    aide = aide_process.start(config_fd=watch.fd)
    try:
        link.unlink()
        link.symlink_to("other/x.toml")
        assert is_seen(watch)
        aide.send({"do": "config", "path": str(link)})
        answers: list[dict[str, Any]] = []
        until(lambda: answers.append(aide.take("config") or {}) or answers[-1])
        assert json.loads(answers[-1]["settings"])["mode"] == "observe"
        is_seen(watch)
        (other / "x.toml").write_text('mode = "enforce"\n')
        assert is_seen(watch)
    finally:
        aide.close()
        watch.close()


# --- what is taken -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "changes", "keys"),
    [
        (Settings(), {"mode": "enforce"}, ["mode"]),
        (Settings(), {"scope": ("/",), "over_limit": "kill", "over_limit_opt_in": ("*",)}, []),
        (ENFORCE, {"mode": "observe", "scope": ("/",)}, []),
        (ENFORCE, {"scope": ("/",)}, ["scope"]),
        (ENFORCE, {"scope": ("/kubepods.slice/x", "/kubepods/")}, []),
        (ENFORCE, {"scope": ("/kubepods.slicer",)}, ["scope"]),
        (ENFORCE, {"protect": ("/shop", "/db")}, []),
        (ENFORCE, {"protect": ("/db",)}, ["protect"]),
        (ENFORCE, {"unprotect": ("/x",)}, ["unprotect"]),
        (ENFORCE, {"over_limit": "kill"}, ["over_limit"]),
        (ENFORCE._replace(over_limit="kill"), {"over_limit": "report"}, []),
        (ENFORCE, {"over_limit_opt_in": ("/a", "/b")}, ["over_limit_opt_in"]),
        (ENFORCE, {"over_limit_opt_in": ()}, []),
        (ENFORCE, {"act_at_most_bytes": 4 << 30, "act_fraction": 0.1},
         ["act_fraction", "act_at_most"]),
        (ENFORCE, {"act_fraction": 0.02, "stuck": False, "hold_suspects": False}, []),
        (ENFORCE._replace(stuck=False), {"stuck": True}, ["stuck"]),
        (ENFORCE, {"terminate_seconds": 0.0, "stuck_seconds": 5.0},
         ["stuck_seconds", "terminate_seconds"]),
        (Settings(), {"rescue": True}, ["rescue"]),
        (Settings(rescue=True), {"scope": ("/",)}, ["scope"]),
        (Settings(rescue=True), {"rescue": False, "scope": ("/",)}, []),
        (ENFORCE, {"mode": "observe", "rescue": True}, []),
        (ENFORCE, {"quarantine": True}, ["quarantine"]),
        (ENFORCE, {"job_end_whole": True}, ["job_end_whole"]),
        (ENFORCE, {"textfile": "/x.prom", "tick_most_seconds": 5.0, "run_after_kill": "/x"}, []),
    ],
)  # fmt: skip
def test_what_does_more_than_before(
    now: Settings, changes: dict[str, Any], keys: list[str]
) -> None:
    assert bolder(now, now._replace(**changes)) == keys


def test_every_key_is_weighed_or_does_no_harm() -> None:
    """A new key has to be put on one side or the other."""
    from seawall.guard.reload import _LESS, _LISTS, _MORE

    weighed = {*_MORE, *_LESS, *_LISTS, "mode", "scope", "protect", "over_limit", "rescue"}
    harmless = {
        "tick_least_seconds", "tick_most_seconds", "self_test_seconds", "watch", "pin",
        "pin_at_most_bytes", "pin_slices", "blackbox", "blackbox_size_bytes", "run_after_kill",
        "run_on_decision", "job_output", "job_comment", "slurm_commands", "slurm_conf",
        "textfile", "termination_message", "kubelet_root", "datagram_to", "pmsg", "user_slices",
    }  # fmt: skip
    assert weighed | harmless == set(Settings._fields)


def scene_of(started: Settings) -> tuple[Scene, list[Settings]]:
    scene, used = Scene(), list[Settings]()
    del scene.loop._take_config  # the real one
    handed: Any = SimpleNamespace(settings=started, other_guard_pid=0)
    scene.loop.handed, scene.loop.configured = handed, started

    def use(settings: Settings) -> None:
        used.append(settings)
        scene.loop.configured = settings

    scene.loop._use = use  # type: ignore[method-assign]
    return scene, used


def change(scene: Scene, settings: Settings | None, **answer: Any) -> None:
    scene.loop._reload.ask(by_file=True)
    scene.hear()
    scene.hear(said={"settings": to_json(settings), **answer} if settings else answer)


def test_observe_is_taken_without_a_signal_and_enforce_waits_for_one() -> None:
    scene, used = scene_of(ENFORCE)
    change(scene, ENFORCE._replace(mode="observe"))
    assert [one.mode for one in used] == ["observe"]
    assert "read anew, mode observe" in scene.events[-1]
    change(scene, ENFORCE)
    assert len(used) == 1
    assert "waits for a reload (mode: it would do more than now)" in scene.events[-1]
    assert any("waits for a reload" in words for words in scene.parts.teller.failures.words)
    change(scene, ENFORCE)
    assert len(scene.events) == 2, "it is said once"
    scene.hear(hups=1)
    scene.hear(said={"settings": to_json(ENFORCE)})
    assert [one.mode for one in used] == ["observe", "enforce"]
    assert scene.parts.teller.failures.words == []


def test_a_signal_during_a_reading_for_the_file_is_answered_as_a_signal() -> None:
    scene, used = scene_of(Settings())
    scene.loop._reload.ask(by_file=True)
    scene.hear()
    scene.hear(hups=1)
    scene.hear(said={"settings": to_json(ENFORCE)})
    assert used == []
    scene.hear(said={"settings": to_json(ENFORCE)})
    assert [one.mode for one in used] == ["enforce"]


def test_nothing_is_said_of_a_file_that_says_the_same() -> None:
    scene, used = scene_of(ENFORCE)
    change(scene, ENFORCE)
    assert (scene.events, used) == ([], [])
    scene.hear(hups=1)
    scene.hear(said={"settings": to_json(ENFORCE)})
    assert len(scene.events) == 1, "who sent a signal is answered"


def test_a_broken_file_keeps_what_was_and_says_so_until_it_is_mended() -> None:
    scene, used = scene_of(ENFORCE)
    for _ in range(2):
        change(scene, None, problem="guard.toml:1: mod: no such key")
    assert used == []
    assert len(scene.events) == 1
    assert "the old one stays: guard.toml:1" in scene.events[0]
    failures: Failures = scene.parts.teller.failures
    assert failures.is_held("config")
    change(scene, ENFORCE)
    assert not failures.is_held("config")
    assert len(scene.events) == 2


def test_the_brake_in_a_file_that_is_broken_holds() -> None:
    scene, used = scene_of(ENFORCE)
    change(scene, None, problem="guard.toml:2: x: no such key", mode="observe")
    assert used == [ENFORCE._replace(mode="observe")]


def test_a_guard_that_starts_afresh_hands_on_no_signal_that_nobody_sent() -> None:
    import signal

    come: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: come.append(number))
    try:
        scene = Scene()
        scene.loop._reload.ask(by_file=True)
        scene.loop._reload.hand_on()
        scene.hear()
        scene.loop._reload.hand_on()
        assert come == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_fleet_is_disarmed_by_a_file(path: Path) -> None:
    """A real aide and a real file; the loop hears as it does between two looks."""
    path.write_text('mode = "enforce"\nwatch = false\n')
    watch = opened(path)
    aide = aide_process.start(config_fd=watch.fd)
    scene, used = scene_of(Settings(mode="enforce", watch=False))
    loop: Loop = scene.loop
    scene.parts.aide, scene.parts.config_watch = aide, watch
    loop._reload = Reload(scene.parts, str(path))
    began = time.monotonic()
    try:
        new = path.with_name("new")
        new.write_text('mode = "observe"\nwatch = false\n')
        new.rename(path)

        def hear() -> bool:
            loop.hear(time.monotonic(), select.select([watch.fd, aide.fd], [], [], 0)[0])
            return bool(used)

        until(hear)
    finally:
        aide.close()
        watch.close()
    assert [one.mode for one in used] == ["observe"]
    assert time.monotonic() - began < 15.0
