"""What the watcher tells, malformed and hostile words included."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container

from seawall.actions.orders import Mounts
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.merge import Merge
from seawall.guard.sense.residual import TickResidual
from seawall.guard.sense.tick_meminfo import TickMeminfo
from seawall.guard.tick_facts import GUARANTEED, NOT_TOLD, NOTHING_OUTSIDE, Outside

MIB = 1 << 20


class Scene:
    def __init__(self, folder: Path) -> None:
        self.fake = fake = FakeTree(folder / "tree", 2)
        for number in (1, 2):
            fake.make(container(number))
        self.groups = GroupTable(Mounts(str(fake.mount), 2))
        self.groups.open(0.0)
        self.residual = TickResidual()
        self.merge = Merge(self.groups.members, self.residual)
        self.one, self.two = (self.groups.by_path[container(n)] for n in (1, 2))

    def row(self, number: int, **told: object) -> dict[str, object]:
        group = self.groups.by_path[container(number)]
        return {"cgroup": group.path, "inode": group.inode, **told}

    def claim(self, number: int, certain: int) -> dict[str, object]:
        return self.row(number, certain=certain, likely=certain, most=certain, sources="rings")

    def hear(self, kind: str, now: float = 100.0, **told: object) -> int:
        """How much was dropped."""
        before = self.merge.dropped
        message = {"t": kind, "seconds": now, **told}
        self.merge.hear(json.loads(json.dumps(message)), now)
        return self.merge.dropped - before


def meminfo() -> TickMeminfo:
    """This machine's."""
    memory = TickMeminfo("/proc")
    assert memory.read()
    return memory


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_who_is_never_told_is_left_alone_for_a_minute(scene: Scene) -> None:
    scene.merge.settle(59.0)
    assert scene.one.protected_by == NOT_TOLD
    scene.hear("groups", 60.0, rows=[scene.row(2, name="storage/csi", role="CSI driver")])
    scene.merge.settle(65.0)
    assert (scene.one.protected_by, scene.two.protected_by) == ("", "CSI driver")


def test_why_the_watcher_learns_less_is_known(scene: Scene) -> None:
    counts = {
        "residual": MIB,
        "error": 0,
        "quick": MIB,
        "armed": False,
        "unexplained": 0,
        "grown": 0,
    }
    locked = "the kernel is locked down (confidentiality): no tracing"
    assert scene.hear("ledger", blind=locked, **counts) == 0
    assert scene.merge.unlearned == locked
    assert scene.hear("blind", blind="/proc/meminfo: Permission denied") == 0
    assert scene.merge.unlearned == "/proc/meminfo: Permission denied"
    assert scene.hear("ledger", 101.0, blind="", **counts) == 0
    assert scene.merge.unlearned == ""


def test_claims_are_all_of_now(scene: Scene) -> None:
    assert scene.hear("claims", rows=[scene.claim(1, 5 * MIB), scene.claim(2, MIB)]) == 0
    assert scene.one.outside == Outside(5 * MIB, 5 * MIB, 5 * MIB, "rings")
    assert scene.merge.certain_bytes == 6 * MIB
    assert scene.hear("claims", 102.0, rows=[scene.claim(1, 9 * MIB)], refused=["no tracefs"]) == 0
    assert scene.one.outside_slope == 2 * MIB
    assert scene.two.outside == NOTHING_OUTSIDE
    assert scene.merge.refusals == ("no tracefs",)
    assert scene.merge.claims_seconds == 102.0


def test_parts_belong_together(scene: Scene) -> None:
    scene.hear("claims", rows=[scene.claim(1, MIB), scene.claim(2, MIB)])
    scene.hear("claims", 101.0, rows=[scene.claim(2, 3 * MIB)], part=0, parts=2)
    assert scene.one.outside.certain_bytes == MIB  # the other part may have it
    assert scene.merge.claims_seconds == 100.0
    scene.hear("claims", 101.0, rows=[], part=1, parts=2)
    assert scene.one.outside == NOTHING_OUTSIDE
    assert scene.two.outside.certain_bytes == 3 * MIB
    assert scene.merge.claims_seconds == 101.0


def test_another_inode_is_another_workload(scene: Scene) -> None:
    row = scene.claim(1, MIB) | {"inode": scene.one.inode + 1}
    assert scene.hear("claims", rows=[row]) == 0
    assert scene.one.outside == NOTHING_OUTSIDE
    named = scene.row(1, name="innocent", role="") | {"inode": 1}
    assert scene.hear("groups", rows=[named]) == 0
    scene.merge.settle(101.0)
    assert scene.one.name == container(1)


def test_a_role_told_before_the_folder_was_found_is_not_lost(scene: Scene) -> None:
    """It is told once, and a new pod is often known to the watcher first: a CSI driver that
    nobody knew as one could be killed.
    """
    path = container(3)
    scene.fake.make(path)
    inode = (scene.fake.mount / path[1:]).stat().st_ino
    row = {"cgroup": path, "inode": inode, "name": "storage/csi", "role": "CSI driver"}
    assert scene.hear("groups", rows=[row]) == 0
    scene.merge.settle(100.1)
    scene.groups.look(100.2, 1 << 30, is_near=False, has_swap=False)
    assert scene.groups.by_path[path].protected_by == NOT_TOLD, "found, but not named yet"
    scene.merge.settle(100.2)
    found = scene.groups.by_path[path]
    assert (found.name, found.protected_by) == ("storage/csi", "CSI driver")


def test_what_is_never_found_takes_a_bounded_room(scene: Scene) -> None:
    rows = [{"cgroup": f"/kubepods/x{n}", "inode": n} for n in range(5000)]
    assert scene.hear("groups", rows=rows) == 0
    assert list(scene.merge._waiting) == [f"/kubepods/x{n}" for n in range(5000 - 1024, 5000)]
    scene.hear("groups", rows=[], gone=["/kubepods/x4999"])
    assert "/kubepods/x4999" not in scene.merge._waiting


def test_names_and_roles(scene: Scene) -> None:
    told = scene.row(
        1, name="shop/cart/app", pod="uid", class_rank=GUARANTEED, adj=-997, request=7, role="CNI"
    )
    assert scene.hear("groups", rows=[told], gone=["/x"]) == 0
    one = scene.one
    assert (one.name, one.pod, one.class_rank, one.adj, one.request_bytes, one.protected_by) == (
        "shop/cart/app", "uid", GUARANTEED, -997, 7, "CNI",
    )  # fmt: skip
    # What is absurd leaves what was known.
    wrong = scene.row(1, name=7, class_rank=True, adj=-5000, request=-1, role=None)
    scene.hear("groups", rows=[wrong])
    assert (one.name, one.class_rank, one.adj, one.request_bytes, one.protected_by) == (
        "shop/cart/app", GUARANTEED, -997, 7, "CNI",
    )  # fmt: skip
    scene.hear("groups", rows=[scene.row(1, role="")])
    assert one.protected_by == ""


def test_stuck_does_not_hold_for_ever(scene: Scene) -> None:
    assert scene.hear("stuck", rows=[scene.row(1, why="1,280 processes", returns=9)]) == 0
    assert (scene.one.hopeless_why, scene.one.gives_back_bytes) == ("1,280 processes", 9)
    scene.merge.tend(120.0)
    assert scene.one.hopeless_why
    scene.merge.tend(131.0)
    assert scene.one.hopeless_why == ""


@pytest.mark.parametrize(
    ("busy", "taken"), [(0.004, 0.004), (0, 0.0), (None, None), ("0", None), (-1, None),
                        (float("nan"), None), (float("inf"), None)],
)  # fmt: skip
def test_what_the_guard_does_not_count_the_watcher_tells(
    scene: Scene, busy: Any, taken: float | None
) -> None:
    """Without cpu.stat the guard would have to ask each of 1,280 processes."""
    member = scene.groups.members[container(1)]
    member.told_progress = 0.7
    row = scene.row(1, why="1,280 processes", returns=9, user_cpus=busy)
    assert scene.hear("stuck", rows=[row]) == 0
    assert member.told_progress == taken
    scene.merge.tend(131.0)
    assert member.told_progress is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"certain": -1}, {"certain": True, "likely": "x"}, {"certain": 10 * MIB}, {"most": None},
        {"certain": 1.5}, {"cgroup": 7}, {"likely": 0}, {"most": 10**400}, {"most": 1 << 62},
    ],
)  # fmt: skip
def test_an_absurd_claim_is_dropped_and_counted(scene: Scene, wrong: dict[str, Any]) -> None:
    assert scene.hear("claims", rows=[scene.claim(1, 5 * MIB) | wrong]) == 1
    assert scene.one.outside == NOTHING_OUTSIDE


@pytest.mark.parametrize(
    "message",
    [
        None, [], "claims", {}, {"t": "claims"}, {"t": ["claims"]}, {"t": "claims", "rows": {}},
        {"t": "claims", "seconds": 1e9, "rows": []}, {"t": "groups", "rows": [None] * 20_000},
        {"t": "claims", "seconds": 1.0, "rows": [], "part": -1}, {"t": "hello", "pid": "x"},
        {"t": "ledger", "seconds": None}, {"t": "stuck"}, {"t": "what"},
        {"t": "claims", "seconds": -(10**400), "rows": []}, {"t": "hello", "pid": 10**400},
        {"t": "ledger", "seconds": -(10**400), "residual": 1, "quick": 1},
        {"t": "ledger", "seconds": 1.0, "residual": 10**400, "quick": 1},
        {"t": "ledger", "seconds": 1.0, "residual": 1, "quick": -(10**400)},
        {"t": "ledger", "seconds": 1.0, "residual": True, "quick": 1},
    ],
)  # fmt: skip
def test_what_is_no_message_is_dropped(scene: Scene, message: object) -> None:
    scene.merge.hear(message, 100.0)
    assert scene.merge.dropped == 1


@pytest.mark.parametrize(
    "absurd", [10**400, -(10**400), 1 << 62, True], ids=["large", "small", "64 bits", "no number"]
)
@pytest.mark.parametrize("key", ["error", "grown", "unexplained"])
def test_what_is_absurd_in_a_ledger_is_not_told(scene: Scene, key: str, absurd: int) -> None:
    """It would come again in every tick: twenty of them, and the guard would end."""
    told = {"residual": -5, "quick": 5, "error": 7, "grown": 8, "unexplained": 9}
    assert scene.hear("ledger", **(told | {key: absurd})) == 0
    assert scene.residual.error_bytes == (None if key == "error" else 7)
    scene.residual.look(101.0, meminfo(), 0, 0)
    assert (scene.residual.bytes or 0) < 1 << 60
    assert scene.residual.grown_bytes < 1 << 60
    assert abs(scene.residual.slope) < 1 << 60


def test_the_past_does_not_come_back(scene: Scene) -> None:
    scene.hear("claims", 100.0, rows=[scene.claim(1, MIB)])
    assert scene.hear("claims", 99.0, rows=[]) == 1
    assert scene.one.outside.certain_bytes == MIB


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([10**400, -(10**400), 1 << 62])
)  # fmt: skip
KEYS = st.sampled_from(
    ["t", "seconds", "rows", "part", "parts", "cgroup", "inode", "certain", "likely", "most",
     "sources", "residual", "quick", "grown", "unexplained", "name", "role", "returns", "refused"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES | st.sampled_from(["claims", "ledger", "groups", "stuck", container(1)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8),
    max_leaves=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=VALUES)
def test_nothing_escapes(scene: Scene, message: object) -> None:
    scene.merge.hear(message, 100.0)
    for group in scene.groups.by_path.values():
        assert 0 <= group.outside.certain_bytes <= group.outside.most_bytes
        assert isinstance(group.name, str)
    scene.residual.look(101.0, meminfo(), 0, 0)
