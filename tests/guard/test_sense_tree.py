"""Which cgroups are workloads, and how their coming and going is seen."""

import gc
import os
from pathlib import Path

import pytest
from tests.guard.sense_trees import ID, FakeTree, container, pod

from seawall.guard.sense import tree as tree_module
from seawall.guard.sense.tree import GroupTree


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "memory", 2)


def opened(fake: FakeTree) -> GroupTree:
    tree = GroupTree(str(fake.mount))
    tree.open(0.0)
    return tree


def paths(folders: list[tree_module.Folder]) -> set[str]:
    found = {folder.path for folder in folders}
    folders.clear()
    return found


def test_what_is_a_workload(fake: FakeTree) -> None:
    scope = f"/kubepods.slice/kubepods-pod0a1b.slice/cri-containerd-{ID(9)}.scope"
    manager = "/user.slice/user-1000.slice/user@1000.service"
    for path in (
        container(1), scope, f"{container(1)}/init/deeper", f"{container(1)}/{ID(77)}",
        "/system.slice/kubelet.service", "/system.slice/foo.service/made/below",
        f"{manager}/app.slice/browser.scope", "/plain/inner/leaf", "/alone", f"/docker/{ID(3)}",
    ):  # fmt: skip
        fake.make(path)
    assert paths(opened(fake).new_folders) == {
        container(1), scope, "/system.slice/kubelet.service", "/system.slice/foo.service",
        f"{manager}/app.slice/browser.scope", "/plain/inner/leaf", "/alone", f"/docker/{ID(3)}",
    }  # fmt: skip


def test_pods_come_and_go(fake: FakeTree) -> None:
    fake.make(container(1))
    tree = opened(fake)
    paths(tree.new_folders)
    fake.make(container(2))
    fake.make(container(3, "besteffort"))
    tree.update(1.0)
    assert paths(tree.new_folders) == {container(2), container(3, "besteffort")}
    fake.remove(pod(2))
    tree.update(2.0)
    assert paths(tree.removed_folders) == {container(2)}
    assert pod(2) not in tree.folders
    assert tree.blind == ""


def test_one_that_came_and_went_between_two_ticks_was_never_there(fake: FakeTree) -> None:
    tree = opened(fake)
    fake.make(container(2))
    fake.remove(pod(2))
    tree.update(1.0)
    assert not tree.new_folders
    assert not tree.removed_folders


def test_a_path_that_comes_again_is_another_one(fake: FakeTree) -> None:
    fake.make(container(1))
    tree = opened(fake)
    before = tree.folders[container(1)].inode
    tree.new_folders.clear()
    fake.remove(container(1))
    fake.make("/keeps-the-inode-taken")
    fake.make(container(1))
    tree.update(1.0)
    assert tree.folders[container(1)].inode != before
    assert paths(tree.removed_folders) == {container(1)}
    assert container(1) in paths(tree.new_folders)


def test_a_plain_cgroup_stops_being_one_when_something_is_made_in_it(fake: FakeTree) -> None:
    fake.make("/hog")
    tree = opened(fake)
    assert paths(tree.new_folders) == {"/hog"}
    fake.make("/hog/child")
    tree.update(1.0)
    assert (paths(tree.removed_folders), paths(tree.new_folders)) == ({"/hog"}, {"/hog/child"})
    fake.remove("/hog/child")
    tree.update(2.0)
    assert (paths(tree.removed_folders), paths(tree.new_folders)) == ({"/hog/child"}, {"/hog"})


def test_hostile_names(fake: FakeTree) -> None:
    name = "/evil\n0::\x1b[31m \udcff"
    fake.make(name)
    assert paths(opened(fake).new_folders) == {name}


def test_without_inotify_the_rescan_finds_them(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.make(container(1))
    tree = GroupTree(str(fake.mount))
    monkeypatch.setattr(tree.watches, "_init", lambda _flags: -1)
    tree.open(0.0)
    assert "max_user_instances" in tree.blind
    tree.new_folders.clear()
    fake.make(container(2))
    fake.remove(pod(1))
    tree.update(30.0)
    assert not tree.new_folders
    tree.update(61.0)
    assert paths(tree.new_folders) == {container(2)}
    assert paths(tree.removed_folders) == {container(1)}


def test_lost_events_are_made_up_for_in_the_same_tick(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = opened(fake)
    fake.make(container(5))
    tree.watches.events()
    monkeypatch.setattr(type(tree.watches), "events", lambda _: [(-1, 0x4000, b"")])
    tree.update(1.0)
    assert paths(tree.new_folders) == {container(5)}


def test_too_many_are_said(fake: FakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "FOLDERS_MOST", 5)
    for number in range(9):
        fake.make(f"/g{number}")
    tree = opened(fake)
    assert len(tree.folders) == 5
    assert "more than 5 cgroups" in tree.blind


MANAGER = "/user.slice/user-{0}.slice/user@{0}.service"
ONE = MANAGER.format(1000)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_users_cgroups_hide_no_pod(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    """Too many below a manager: it is one workload, whatever way they are found."""
    monkeypatch.setattr(tree_module, "FOLDERS_MOST", 16)
    monkeypatch.setattr(tree_module, "OF_A_USER_MOST", 8)
    fake.make(f"{ONE}/app.slice/a.service")
    tree = opened(fake) if is_told else GroupTree(str(fake.mount))
    if not is_told:
        monkeypatch.setattr(tree.watches, "_init", lambda _flags: -1)
        tree.open(0.0)
    assert paths(tree.new_folders) == {f"{ONE}/app.slice/a.service"}
    for number in range(20):
        fake.make(f"{ONE}/app.slice/deep/x{number}")
    fake.make(container(1))
    fake.make(f"{MANAGER.format(1001)}/b.service")
    for now in (61.0, 122.0, 183.0):
        tree.update(now)
    assert paths(tree.removed_folders) == {f"{ONE}/app.slice/a.service"}
    assert paths(tree.new_folders) == {ONE, container(1), f"{MANAGER.format(1001)}/b.service"}
    assert not [path for path in tree.folders if path.startswith(f"{ONE}/")]
    if is_told:
        assert tree.blind == f"{fake.mount}{ONE}: more than 8 cgroups: taken as one"
    fake.make(f"{ONE}/still-more/of-them")
    tree.update(244.0)
    assert not tree.new_folders
    # Until it goes.
    fake.remove(ONE)
    tree.update(305.0)
    assert paths(tree.removed_folders) == {ONE}
    assert "taken as one" not in tree.blind
    fake.make(f"{ONE}/app.slice/a.service")
    tree.update(366.0)
    assert paths(tree.new_folders) == {f"{ONE}/app.slice/a.service"}
    tree.close()


def test_too_many_of_a_user_are_one_from_the_start(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "OF_A_USER_MOST", 8)
    for number in range(20):
        fake.make(f"{ONE}/app.slice/x{number}/y")
    fake.make(container(1))
    tree = opened(fake)
    assert paths(tree.new_folders) == {ONE, container(1)}
    assert not tree.removed_folders
    assert set(tree.watches.by_watch.values()) == {
        path for path, folder in tree.folders.items() if not folder.is_leaf
    }
    tree.close()


def test_a_user_whose_units_come_and_go_has_not_too_many(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "OF_A_USER_MOST", 8)
    fake.make(f"{ONE}/app.slice")
    tree = opened(fake)
    for round_ in range(10):
        fake.make(f"{ONE}/app.slice/x{round_}.service")
        tree.update(round_ + 0.3)
        fake.remove(f"{ONE}/app.slice/x{round_}.service")
        tree.update(round_ + 0.6)
    assert tree._of_users == {ONE: 1}
    assert tree.blind == ""
    fake.remove(ONE)
    tree.update(20.0)
    assert tree._of_users == {}
    tree.close()


def test_many_users_have_no_more_than_a_host(
    fake: FakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "FOLDERS_MOST", 30)
    monkeypatch.setattr(tree_module, "OF_A_USER_MOST", 8)
    for user in range(8):
        for number in range(8):
            fake.make(f"{MANAGER.format(user)}/x{number}")
    tree = opened(fake)
    whole = {path for path in paths(tree.new_folders) if path.endswith(".service")}
    assert len(whole) == len(tree._whole) == 8 - 3
    fake.make(container(1))
    tree.update(1.0)
    assert paths(tree.new_folders) == {container(1)}
    tree.close()


def test_nothing_is_left_of_those_that_went(fake: FakeTree) -> None:
    tree = opened(fake)
    fds = len(os.listdir("/proc/self/fd"))
    gc.collect()
    gc.disable()
    try:
        for round_ in range(50):
            for number in range(3):
                fake.make(container(number + 3 * round_))
            tree.update(round_ + 0.3)
            for number in range(3):
                fake.remove(pod(number + 3 * round_))
            tree.update(round_ + 0.6)
            tree.new_folders.clear()
            tree.removed_folders.clear()
        assert gc.collect() == 0  # no reference cycles
    finally:
        gc.enable()
    assert set(tree.folders) == {"/", "/kubepods", "/kubepods/burstable"}
    assert len(tree.watches.by_watch) == 3
    assert len(os.listdir("/proc/self/fd")) == fds
    tree.close()
