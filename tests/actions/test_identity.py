"""The very cgroup that was judged, or nothing: on folders of an ordinary filesystem."""

from pathlib import Path

import pytest

from seawall.actions.identity import Identity, is_within, own_path
from seawall.actions.orders import Mounts, Target
from seawall.actions.work import Refused


def identity(tree: Path, *scope: str, own: str = "/") -> Identity:
    made = Identity(scope or ("/pods",))
    made.prepare(Mounts(str(tree), 2), f"0::{own}\n")
    return made


def target(tree: Path, path: str) -> Target:
    return Target(path, (tree / path.strip("/")).stat().st_ino, path)


@pytest.mark.parametrize(
    ("path", "scope", "is_in"),
    [
        ("/pods", "/pods", True),
        ("/pods/a", "/pods", True),
        ("/pods/a", "/pods/", True),
        ("/podsicles", "/pods", False),
        ("/", "/pods", False),
        ("/x", "/", True),
    ],
)
def test_scope_ends_at_a_component(path: str, scope: str, is_in: bool) -> None:
    assert is_within(path, scope) is is_in


def test_the_same_folder_opens(tmp_path: Path) -> None:
    (tmp_path / "pods/a\nb").mkdir(parents=True)
    found = identity(tmp_path).open(target(tmp_path, "/pods/a\nb"))
    assert found > 0


def test_a_path_that_came_again_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pods/a").mkdir(parents=True)
    judged = target(tmp_path, "/pods/a")
    (tmp_path / "pods/a").rename(tmp_path / "pods/old")
    (tmp_path / "pods/a").mkdir()
    with pytest.raises(Refused, match="its inode is another one"):
        identity(tmp_path).open(judged)


def test_a_path_that_went_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    with pytest.raises(Refused, match="it is gone"):
        identity(tmp_path).open(Target("/pods/a", 5, "a"))


@pytest.mark.parametrize(
    "path", ["/pods/../system", "/pods/./a", "/pods//a", "/", "/pods/..", "/pods/../pods/a"]
)
def test_only_plain_paths(tmp_path: Path, path: str) -> None:
    (tmp_path / "pods/a").mkdir(parents=True)
    (tmp_path / "system").mkdir()
    with pytest.raises(Refused, match="not a plain cgroup path"):
        identity(tmp_path, "/").open(Target(path, (tmp_path / path[1:]).stat().st_ino, "x"))


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "system/pod").mkdir(parents=True)
    (tmp_path / "pods").symlink_to("system")
    with pytest.raises(Refused, match="refused: "):
        identity(tmp_path).open(target(tmp_path, "/system/pod")._replace(path="/pods/pod"))


def test_outside_the_scope(tmp_path: Path) -> None:
    (tmp_path / "podsicles").mkdir()
    with pytest.raises(Refused, match="outside the scope"):
        identity(tmp_path).open(target(tmp_path, "/podsicles"))
    with pytest.raises(Refused, match="outside the scope"):
        identity(tmp_path).open(Target("/", tmp_path.stat().st_ino, "root"))


def test_one_exact_cgroup_more_and_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "own/test/below").mkdir(parents=True)
    made = identity(tmp_path, "/pods", own="/own")
    made.exactly = "/own/test"
    assert made.open(target(tmp_path, "/own/test")) > 0
    with pytest.raises(Refused, match="outside the scope"):
        made.open(target(tmp_path, "/own/test/below"))


@pytest.mark.parametrize("path", ["/pods/guard/main", "/pods/guard", "/pods"])
def test_never_itself_or_above_it(tmp_path: Path, path: str) -> None:
    (tmp_path / "pods/guard/main").mkdir(parents=True)
    with pytest.raises(Refused, match="the guard's own cgroup or one above it"):
        identity(tmp_path, "/", own="/pods/guard/main").open(target(tmp_path, path))


def test_beside_itself_it_may(tmp_path: Path) -> None:
    (tmp_path / "pods/guard").mkdir(parents=True)
    (tmp_path / "pods/guard2").mkdir()
    assert identity(tmp_path, "/", own="/pods/guard").open(target(tmp_path, "/pods/guard2")) > 0


def test_own_path_by_version() -> None:
    text = "9:name=systemd:/s\n4:cpu,memory:/m:x\n0::/unified\n"
    assert own_path(text, Mounts("/m", 1)) == "/m:x"
    assert own_path(text, Mounts("/m", 2)) == "/unified"
    assert own_path("0::/../sibling\n", Mounts("/m", 2)) == "/"
    assert own_path("", Mounts("/m", 1)) == "/"
