"""Names and roles wait for a folder that is about to be found, whatever users make meanwhile."""

from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, look, table

from seawall.guard.sense.merge import Merge
from seawall.guard.sense.residual import TickResidual

ROLE = "CSI driver"


def home(user: int) -> str:
    return f"/user.slice/user-{user}.slice/user@{user}.service"


class Door:
    """A guard that has found nothing yet of what the watcher tells."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeTree(folder / "tree", 2)
        self.fake.make(container(1))
        self.groups = table(self.fake)
        self.merge = Merge(self.groups.members, TickResidual())

    def tell(self, *paths: str, now: float = 100.0) -> None:
        rows = [{"cgroup": path, "inode": 7, "name": path, "role": ""} for path in paths]
        self.merge.hear({"t": "groups", "rows": rows, "gone": []}, now)

    def begin(self, path: str, now: float = 101.0) -> None:
        """The watcher is first to find it."""
        inode = self.fake.make(path).stat().st_ino
        row = {"cgroup": path, "inode": inode, "name": "storage/csi", "role": ROLE}
        self.merge.hear({"t": "groups", "rows": [row], "gone": []}, now)

    def role(self, path: str, now: float = 102.0) -> str:
        look(self.groups, now)
        self.merge.settle(now)
        return self.groups.by_path[path].protected_by

    def waiting(self, *starts: str) -> int:
        return sum(path.startswith(starts) for path in self.merge._waiting)


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


@pytest.mark.parametrize(
    "below", ["c{}", "app.slice/a{}.service", "user.slice/libpod-{:064x}.scope"]
)
def test_no_user_takes_a_pods_place(door: Door, below: str) -> None:
    door.tell(*(f"{home(1000)}/{below.format(n)}" for n in range(3000)))
    door.begin(container(2))
    assert door.role(container(2)) == ROLE


def test_nor_do_many_users(door: Door) -> None:
    door.tell(*(f"{home(user)}/c{n}" for user in range(1000, 1020) for n in range(200)))
    assert 0 < door.waiting(*(home(user) for user in range(1000, 1020))) <= 512
    door.tell(*(container(n) for n in range(10, 1033)), now=100.5)
    door.begin(container(2))
    assert len(door.merge._waiting) == 1024, "users' went for the last of the host's own"
    assert door.role(container(2)) == ROLE


def test_one_user_leaves_room_to_another(door: Door) -> None:
    door.tell(*(f"{home(1000)}/c{n}" for n in range(3000)))
    door.begin(f"{home(1001)}/x.service")
    assert door.waiting(f"{home(1001)}/x.service")
    assert door.waiting(home(1000)) >= 100


def test_those_that_went_leave_their_room(door: Door) -> None:
    paths = [f"{home(1000)}/c{n}" for n in range(500)]
    door.tell(*paths)
    door.merge.hear({"t": "groups", "rows": [], "gone": paths}, 101.0)
    assert not door.merge._waiting
    door.tell(f"{home(1000)}/later", now=102.0)
    assert door.waiting(f"{home(1000)}/later")
    door.merge.hear({"t": "groups", "rows": [], "gone": [f"{home(1000)}/later"]}, 200.0)
    assert not door.merge._waiting
    assert not door.merge._made_up


def test_a_role_waits_as_long_as_its_folder_is_there(door: Door) -> None:
    """Without inotify, on a large node in deep peace, it is minutes before it is found."""
    door.begin(container(2))
    for now in range(120, 7200, 20):
        door.merge.tend(float(now))
        door.merge.settle(float(now))
    assert door.role(container(2), 7200.0) == ROLE
    assert not door.merge._waiting


def test_another_watcher_begins_anew(door: Door) -> None:
    door.merge.hear({"t": "hello", "pid": 1}, 100.0)
    door.tell(container(5), f"{home(1000)}/c")
    door.merge.hear({"t": "hello", "pid": "x"}, 101.0)
    assert len(door.merge._waiting) == 2, "that was no watcher"
    door.merge.hear({"t": "hello", "pid": 2}, 102.0)
    assert not door.merge._waiting
    assert not door.merge._made_up


def test_those_that_are_never_found_keep_nobody_out(door: Door) -> None:
    door.tell(*(container(n) for n in range(10, 2000)))
    door.begin(container(2))
    assert len(door.merge._waiting) == 1024
    assert door.role(container(2)) == ROLE


@pytest.mark.parametrize("users", [1, 20])
def test_nor_another_of_a_users(door: Door, users: int) -> None:
    door.tell(*(f"{home(1000 + user)}/c{n}" for user in range(users) for n in range(128)))
    door.tell(f"{home(1000)}/d")
    assert door.waiting(f"{home(1000)}/d") == 1
    assert door.waiting("/user.slice/") == min(128 * users, 512)


def test_the_same_one_told_again_takes_no_more_room(door: Door) -> None:
    for now in range(100, 300):
        door.tell(f"{home(1000)}/c", container(5), now=float(now))
    assert len(door.merge._waiting) == 2
    assert len(door.merge._made_up) == 1


def test_one_too_deep_to_be_found_does_not_wait(door: Door) -> None:
    door.tell(home(1000) + "/a" * 2000, "/x" * 17)
    assert not door.merge._waiting
    door.tell("/x" * 16)
    assert door.merge._waiting


def test_batch_jobs_are_the_hosts_own(door: Door) -> None:
    door.tell(*(f"/system.slice/slurmstepd.scope/job_{n}" for n in range(600)))
    assert door.waiting("/system.slice/") == 600
