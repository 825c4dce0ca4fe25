"""What must hold of every ranking and every tick, whatever the numbers."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from tests.guard.judge_scene import CALM, MIB, done, group_of, hog, judge_of, scene, short

from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.protection import Protection
from seawall.guard.judge.ranking import rank, rows_of
from seawall.guard.judge.row import PROVED
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Outside

SIZES = st.integers(0, 2000)
OWN = "/kubepods/burstable/own/x"
PROTECTION = Protection(Settings(scope=("/",)), OWN)
PATHS = (
    "/kubepods/burstable/own", OWN, "/kubepods/a", "/kubepods/b", "/kubepods/burstable/c",
    "/kubepods/burstable/d", "/kubepods/besteffort/e", "/system.slice/f", "/", "/kubepods2/g",
)  # fmt: skip


@dataclass
class Drawn:
    """A group in both looks; sizes in MiB."""

    path: str
    before: int
    charge: int
    certain: int
    vague: int
    limit: int | None
    request: int | None
    hard: int | None
    klass: int
    adj: int | None
    role: str

    def group(self, *, then: bool = False) -> Group:
        group = Group(self.path, len(self.path), self.path)
        group.charge_bytes = (self.before if then else self.charge) * MIB
        group.limit_bytes = None if self.limit is None else self.limit * MIB
        group.request_bytes = None if self.request is None else self.request * MIB
        group.gives_back_bytes = None if self.hard is None else self.hard * MIB
        if not then:
            sure, most = self.certain * MIB, (self.certain + self.vague) * MIB
            group.outside = Outside(sure, sure, most, "packet rings")
        group.class_rank, group.adj, group.protected_by = self.klass, self.adj, self.role
        group.charge_slope = 1.0 * MIB
        return group


def drawn(path: str) -> st.SearchStrategy[Drawn]:
    return st.builds(
        Drawn, st.just(path), SIZES, SIZES, st.sampled_from([0, 0, 0, 70, 400, 1500]), SIZES,
        st.none() | SIZES, st.none() | SIZES, st.none() | SIZES, st.integers(0, 3),
        st.none() | st.integers(-1000, 1000), st.sampled_from(["", "", "", "CNI"]),
    )  # fmt: skip


SCENES = st.tuples(*(drawn(path) for path in PATHS))
HEADROOMS = st.integers(0, 200)
NEEDS = st.integers(0, 2000).map(lambda mib: mib * MIB)


def protected(group: Group) -> bool:
    is_inside = group.path.startswith("/kubepods/")
    is_own = group.path in (OWN, "/kubepods/burstable/own")
    adj = group.adj
    by_adj = adj is not None and (adj < -997 or (adj == -997 and group.class_rank != 2))
    return not is_inside or is_own or by_adj or bool(group.protected_by)


@given(SCENES, HEADROOMS, st.integers(0, 500), st.integers(0, 600))
def test_over_time_only_who_may_be_and_never_twice(
    scene_: tuple[Drawn, ...], headroom: int, slope: int, unexplained: int
) -> None:
    judge = judge_of(scope=("/kubepods",))
    judge.step(CALM, scene(*(d.group(then=True) for d in scene_)))
    groups = scene(*(d.group() for d in scene_))
    aimed: list[str] = []
    killed: list[tuple[float, str]] = []
    for tick in range(60):
        node = short(
            1004 + tick / 2, headroom, slope, unexplained_growth_bytes=unexplained * MIB,
            residual_bytes=(40 + unexplained + sum(d.certain for d in scene_)) * MIB,
        )  # fmt: skip
        verdict = judge.step(node, groups)
        if verdict is None:
            continue
        for order in verdict.orders:
            group = groups[order.target.path]
            assert not protected(group)
            if order.step in ("kill", "terminate"):
                killed.append((node.seconds, order.target.path))
            if order.step == "kill":
                aimed.append(order.target.path)
            judge.learn(done(order), node)
    assert len(aimed) == len(set(aimed))
    # No pods here: a workload is a group.
    assert len({path for seconds, path in killed}) <= 6


@given(SCENES, st.integers(0, 9), st.integers(1, 2000), HEADROOMS, NEEDS)
def test_more_certain_overrun_never_makes_it_go_later(
    scene_: tuple[Drawn, ...], at: int, more: int, headroom: int, need: int
) -> None:
    def place(extra: int) -> tuple[int, int] | None:
        window = LookHistory()
        window.tick(CALM, scene(*(d.group(then=True) for d in scene_)), is_short=False)
        groups = [d.group() for d in scene_]
        sure = (scene_[at].certain + extra) * MIB
        groups[at].outside = Outside(sure, sure, sure, "packet rings")
        node = short(1005, headroom)
        rows, causes = rows_of(node, groups, window, ())
        able = rank(rows, causes, PROTECTION, node.total_bytes, need)
        found = [n for n, row in enumerate(able) if row.group is groups[at]]
        return (found[0], able[found[0]].tier) if found else None

    less, later = place(0), place(more)
    if less is not None:
        assert later is not None
        assert later[0] <= less[0]


@given(SCENES, HEADROOMS, NEEDS)
def test_vague_evidence_changes_no_place(
    scene_: tuple[Drawn, ...], headroom: int, need: int
) -> None:
    def order(vague: int) -> list[tuple[str, int]]:
        window = LookHistory()
        window.tick(CALM, scene(*(d.group(then=True) for d in scene_)), is_short=False)
        groups = [d.group() for d in scene_]
        for group, one in zip(groups, scene_, strict=True):
            sure = one.certain * MIB
            group.outside = Outside(sure, sure + vague * MIB, sure + vague * MIB, "packet rings")
        rows, causes = rows_of(short(1005, headroom), groups, window, ())
        able = rank(rows, causes, PROTECTION, CALM.total_bytes, need)
        assert all(row.certain for row in able if row.tier == 0)
        assert all(row.tier > PROVED or row.grown or row.certain for row in able)
        return [(row.group.path, row.tier) for row in able]

    assert order(0) == order(5000)


@dataclass
class Taker:
    """One whose bound grows; how fast, how much more than it takes, and when it is proved."""

    rate: int
    """MiB a second."""
    excess: int
    proof_tick: int
    role: str
    is_in_scope: bool

    def group(self, number: int, seconds: float, tick: int) -> Group:
        holds = int(self.rate * seconds)
        sure = holds if tick >= self.proof_tick else 0
        group = group_of(f"g{number}", 5, limit=100, certain=sure, most=holds * self.excess)
        group.protected_by = self.role
        if not self.is_in_scope:
            group.path = f"/system.slice/g{number}"
        return group


TAKERS = st.lists(
    st.builds(
        Taker, st.sampled_from([0, 5, 30, 100, 200]), st.sampled_from([1, 1, 2, 10]),
        st.sampled_from([0, 5, 15, 25, 1000, 1000]), st.sampled_from(["", "", "", "CNI"]),
        st.sampled_from([True, True, True, False]),
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@given(TAKERS, st.integers(0, 150), st.integers(20, 80))
def test_holds_are_short_rare_and_end_nobody(
    takers: list[Taker], leak: int, headroom: int
) -> None:  # fmt: skip
    judge = judge_of()
    judge.step(CALM, scene(*(taker.group(n, 0.0, 0) for n, taker in enumerate(takers))))
    since: dict[str, float] = {}
    ended: dict[str, float] = {}
    rate = leak + sum(taker.rate for taker in takers)
    for tick in range(300):
        seconds = 1005 + tick / 10
        groups = scene(*(t.group(n, 5 + tick / 10, tick) for n, t in enumerate(takers)))
        certain = sum(group.outside.certain_bytes for group in groups.values())
        taken = int(rate * (5 + tick / 10)) * MIB
        node = short(
            seconds, headroom, rate, residual_bytes=40 * MIB + taken, claims_seconds=0.2,
            residual_slope_bytes_per_second=float(rate * MIB),
            unexplained_growth_bytes=max(0, taken - certain),
        )  # fmt: skip
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            path, group = order.target.path, groups[order.target.path]
            assert not group.protected_by
            assert path.startswith("/kubepods")
            if order.step == "kill":
                assert group.outside.certain_bytes, "nobody is killed on a bound"
            elif order.why == "suspected" and order.step == "freeze":
                assert path not in since
                assert seconds - ended.get(path, 0.0) >= 10 - 1e-6
                since[path] = seconds
            elif order.why == "suspected":
                assert seconds - since.pop(path) <= 2.0
                ended[path] = seconds
            judge.learn(done(order), node)
        assert all(seconds - at <= 2.0 for at in since.values())


def test_everybody_who_was_looked_at_stands_in_the_ranking_once() -> None:
    pods = [
        group_of(f"pod-{n:03}", 4, request_bytes=3 * MIB if n % 2 else 8 * MIB) for n in range(150)
    ]
    groups, judge = scene(hog(), *pods), judge_of()
    judge.step(CALM._replace(seconds=900.0), scene(*pods))
    verdict = judge.step(short(1000.0), groups)
    assert verdict is not None
    leaders, rest = verdict.ranking, judge.rest
    assert len(leaders) == 32
    assert leaders[0].name == "ns/hog"
    everybody = [*leaders, *rest]
    assert sorted(one.path for one in everybody) == sorted(groups)
    places = sorted(one.place for one in everybody if one.place)
    assert places == [*range(1, len(places) + 1)]
    assert all(one.against for one in everybody if not one.place)
