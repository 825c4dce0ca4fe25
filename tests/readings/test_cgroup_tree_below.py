"""One tenant's cgroups by the thousand do not hide the others'."""

import pytest

from seawall.readings import cgroup_tree

FIRST, LAST = (f"/kubepods/pod{n}{n}/{str(n) * 64}" for n in (1, 2))
MANAGER = "/user.slice/user-1000.slice/user@1000.service"
JOBS = "/slurm/uid_1"


class Tree:
    """Folders of a set of paths."""

    def __init__(self, *leaves: str) -> None:
        self.below: dict[str, dict[str, None]] = {}
        for leaf in leaves:
            parts = leaf.strip("/").split("/")
            for n, part in enumerate(parts):
                self.below.setdefault("/" + "/".join(parts[:n]), {})[part + "/"] = None

    def names(self, path: str) -> tuple[str, ...]:
        below = self.below.get(path.removeprefix("/cg") or "/", {})
        return ("/", *sorted(below), "cgroup.procs")


@pytest.mark.parametrize(
    ("many", "owner", "last"),
    [
        (FIRST, FIRST, LAST),
        (f"{FIRST}/deep/er", FIRST, LAST),
        (f"{MANAGER}/app.slice", MANAGER, "/user.slice/user-1001.slice"),
        (f"{JOBS}/job_1/step", f"{JOBS}/job_1", f"{JOBS}/job_2"),
    ],
)
def test_below_one_owner_the_walk_ends(
    many: str, owner: str, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup_tree, "BELOW_MOST", 50)
    leaves = [f"{many}/s{n:04}" for n in range(400)]
    walk = cgroup_tree.CgroupWalk(Tree(*leaves, last), "/cg")  # type: ignore[arg-type]
    paths = [found.path for found in walk.results()]
    assert last in paths
    assert len([path for path in paths if path.startswith(owner + "/")]) == 50
    (unread,) = walk.unread
    assert (unread.path, unread.why) == ("/cg" + owner, "too_big")


def test_each_owner_has_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "BELOW_MOST", 50)
    leaves = [f"{owner}/s{n:04}" for owner in (FIRST, LAST) for n in range(50)]
    walk = cgroup_tree.CgroupWalk(Tree(*leaves), "/cg")  # type: ignore[arg-type]
    assert {found.path for found in walk.results()} >= set(leaves)
    assert not walk.unread


def test_what_the_host_made_itself_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_tree, "BELOW_MOST", 5)
    leaves = [f"/system.slice/s{n}.service" for n in range(60)]
    walk = cgroup_tree.CgroupWalk(Tree(*leaves), "/cg")  # type: ignore[arg-type]
    assert {found.path for found in walk.results()} >= set(leaves)
