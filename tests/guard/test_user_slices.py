"""Each user of a login node as one workload, of which only the part goes that took the memory."""

from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, short
from tests.guard.sense_trees import ID, FakeTree, look

from seawall.actions.orders import Mounts, Order
from seawall.cli.guard_here import as_judged
from seawall.guard.explain import ExplainedWorkload
from seawall.guard.judge.cooldown import tenant_of
from seawall.guard.judge.judge import Judge
from seawall.guard.sense.details import Details
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.merge import Merge
from seawall.guard.sense.residual import TickResidual
from seawall.guard.sense.users import largest_parts
from seawall.guard.tick_facts import NOT_TOLD, Group, Outside, UserSlice
from seawall.guard.verdict import Verdict

ALICE, ROOT = "/user.slice/user-1000.slice", "/user.slice/user-0.slice"
SESSION, OTHER = f"{ALICE}/session-3.scope", f"{ALICE}/session-4.scope"
MANAGER = f"{ALICE}/user@1000.service"
TMUX = f"{MANAGER}/app.slice/tmux-spawn-1.scope"
ROOTLESS = f"{MANAGER}/user.slice/libpod-{ID(7)}.scope"


# --- what is seen ---------------------------------------------------------------------------


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def fake(tmp_path: Path, version: int) -> FakeTree:
    made = FakeTree(tmp_path / "tree", version)
    for path, mib in (
        (ALICE, 900), (SESSION, 400), (OTHER, 50), (MANAGER, 450), (TMUX, 100), (ROOTLESS, 300),
        (f"{ROOT}/session-1.scope", 5), ("/system.slice/x.service", 7),
    ):  # fmt: skip
        charged(made, path, mib)
    return made


def charged(fake: FakeTree, path: str, mib: int) -> None:
    names = ["memory__current"]
    if "memory.usage_in_bytes" in fake.files:
        names = ["memory__usage_in_bytes", "memory__memsw__usage_in_bytes"]
    fake.make(path, **dict.fromkeys(names, f"{mib * MIB}\n"))


def table(fake: FakeTree, version: int, *, user_slices: bool = True) -> GroupTable:
    groups = GroupTable(Mounts(str(fake.mount), version), user_slices=user_slices)
    groups.open(0.0)
    look(groups, 1.0, swap_cached=0)
    return groups


def user_in(groups: GroupTable) -> UserSlice:
    found = groups.by_path[ALICE]
    assert isinstance(found, UserSlice)
    return found


def row(group: Group, **told: object) -> dict[str, object]:
    return {"cgroup": group.path, "inode": group.inode, **told}


def test_a_user_is_one_and_nothing_counts_twice(fake: FakeTree, version: int) -> None:
    groups = table(fake, version)
    assert set(groups.by_path) == {ALICE, ROOT, ROOTLESS, "/system.slice/x.service"}
    alice = user_in(groups)
    assert {part.path for part in alice.parts} == {SESSION, OTHER, TMUX}
    assert (alice.charge_bytes, groups.by_path[ROOTLESS].charge_bytes) == (600 * MIB, 300 * MIB)
    assert alice.taken_bytes == 600 * MIB, "nothing of it is in swap"
    # A session that came; one that went; and the container, which was charged to her as well.
    charged(fake, f"{ALICE}/session-9.scope", 20)
    charged(fake, ALICE, 620)
    fake.remove(OTHER)
    fake.remove(ROOTLESS)
    look(groups, 2.0, swap_cached=0)
    look(groups, 3.0, swap_cached=0)
    assert {part.path for part in alice.parts} == {SESSION, TMUX, f"{ALICE}/session-9.scope"}
    assert (set(groups.by_path), alice.charge_bytes) == (
        {ALICE, ROOT, "/system.slice/x.service"}, 620 * MIB,
    )  # fmt: skip
    fake.remove(ALICE)
    look(groups, 4.0)
    assert set(groups.by_path) == {ROOT, "/system.slice/x.service"}
    groups.close()


def test_without_the_key_nothing_is_other_than_before(fake: FakeTree, version: int) -> None:
    groups = table(fake, version, user_slices=False)
    assert set(groups.by_path) == {
        SESSION, OTHER, TMUX, ROOTLESS, f"{ROOT}/session-1.scope", "/system.slice/x.service",
    }  # fmt: skip
    assert not any(isinstance(group, UserSlice) for group in groups.by_path.values())
    merge = Merge(groups.members, TickResidual())
    merge.hear({"t": "groups", "rows": [{"cgroup": ALICE, "inode": 1, "name": "user:1000"}]}, 1.0)
    assert not merge._waiting, "no room is taken by who is nobody here"
    groups.close()


def test_uncounted_memory_is_the_sum_of_the_parts_and_counts_once(
    fake: FakeTree, version: int
) -> None:
    groups = table(fake, version)
    merge, alice = Merge(groups.members, TickResidual()), user_in(groups)
    one, two, pod = (groups.members[path].group for path in (SESSION, TMUX, ROOTLESS))
    rows = [
        row(group, certain=mib * MIB, likely=mib * MIB, most=mib * MIB, sources=sources)
        for group, mib, sources in ((one, 200, "rings"), (two, 100, "rings, tap"), (pod, 50, "x"))
    ]
    merge.hear({"t": "claims", "seconds": 1.0, "rows": rows}, 1.0)
    look(groups, 2.0)
    assert alice.outside == Outside(300 * MIB, 300 * MIB, 300 * MIB, "rings, tap")
    assert merge.certain_bytes == 350 * MIB
    # A session ends: what it held is not held by her any more, before anybody tells.
    fake.remove(SESSION)
    look(groups, 3.0)
    assert alice.outside.certain_bytes == 100 * MIB
    merge.hear({"t": "claims", "seconds": 3.0, "rows": []}, 3.0)
    look(groups, 4.0)
    assert (alice.outside.most_bytes, merge.certain_bytes) == (0, 0)
    groups.close()


def test_she_has_the_name_that_is_told_and_the_limit_of_her_slice(
    fake: FakeTree, version: int
) -> None:
    name = "memory__limit_in_bytes" if version == 1 else "memory__max"
    fake.make(ALICE, **{name: f"{800 * MIB}\n"})
    groups = table(fake, version)
    merge, alice = Merge(groups.members, TickResidual()), user_in(groups)
    assert (alice.limit_bytes, alice.protected_by) == (800 * MIB, NOT_TOLD)
    merge.hear({"t": "groups", "rows": [row(alice, name="user:1000@alice", role="")]}, 1.0)
    assert (alice.name, alice.protected_by) == ("user:1000@alice", "")
    groups.close()


# --- what is decided ------------------------------------------------------------------------


def part(path: str, charge: int, certain: int = 0, **values: object) -> Group:
    one = group_of("x", charge, certain=certain, **values)  # type: ignore[arg-type]
    found = Group(path, 7 + len(path), f"unit:{path.rpartition('/')[2]}")
    for name in Group.__slots__:
        if name not in ("path", "inode", "name"):
            setattr(found, name, getattr(one, name))
    return found


def user(*parts: Group, uid: int = 1000, limit: int | None = None) -> UserSlice:
    found = UserSlice(f"/user.slice/user-{uid}.slice", uid, f"user:{uid}@alice")
    found.parts = list(parts)
    add_up(found)
    found.processes = 9
    found.limit_bytes = None if limit is None else limit * MIB
    return found


def add_up(one: UserSlice) -> None:
    one.charge_bytes = sum(part.charge_bytes for part in one.parts)
    one.gives_back_bytes = sum(part.gives_back_bytes or 0 for part in one.parts)
    certain = sum(part.outside.certain_bytes for part in one.parts)
    one.outside = Outside(certain, certain, certain, "packet rings (PACKET_DIAG)")


def judge(**values: object) -> Judge:
    return judge_of(scope=("/user.slice",), over_limit_opt_in=("user:*",), **values)


def steps(one: Judge, groups: dict[str, Group], seconds: range) -> list[Verdict]:
    found = []
    for second in seconds:
        node = CALM._replace(seconds=1000.0 + second)
        if verdict := one.step(node, groups):
            found.append(verdict)
            for order in verdict.orders:
                one.learn(done(order), node)
    return found


def aims(verdicts: list[Verdict]) -> list[str]:
    return [order.target.path for verdict in verdicts for order in verdict.orders]


def test_over_the_limit_of_the_slice_the_part_goes_that_holds_the_uncounted() -> None:
    """Neither session is over anything; together with its rings the second is: that one goes."""
    one = user(part(SESSION, 500), part(TMUX, 20, certain=300), limit=600)
    mind = judge(over_limit="kill", terminate_seconds=0.0)
    (verdict,) = steps(mind, scene(one, user(part("/y", 90), uid=7, limit=100)), range(15))
    (order,) = verdict.orders
    assert (order.step, order.target.path) == ("kill", TMUX)
    assert order.target.inode == one.parts[1].inode
    assert order.target.name == "user:1000@alice (unit:tmux-spawn-1.scope)"
    assert order.predicted_bytes == 320 * MIB
    assert "user:1000@alice has 520 MiB charged and holds 300 MiB" in verdict.sentence
    assert "(no more than user:1000@alice (unit:tmux-spawn-1.scope))" in verdict.sentence


def test_who_spreads_over_sessions_loses_one_after_the_other_until_it_is_enough() -> None:
    sessions = [part(f"{ALICE}/session-{n}.scope", 30, certain=120) for n in range(4)]
    one = user(*sessions, limit=280)
    mind, gone = judge(over_limit="kill", terminate_seconds=0.0), list[str]()
    for second in range(90):
        if second % 3 == 0:
            add_up(one)
        for verdict in steps(mind, scene(one), range(second, second + 1)):
            for order in verdict.orders:
                gone.append(order.target.path)
                one.parts = [own for own in one.parts if own.path != order.target.path]
                add_up(one)
    # 120 charged and 480 uncounted of 280: when two are gone it is over by a blur.
    assert len(gone) == len(set(gone)) == len(one.parts) == 2


def test_another_session_does_not_go_in_place_of_one_that_may_not() -> None:
    held = part(SESSION, 20, certain=300, protected_by="somebody's storage daemon")
    one = user(held, part(OTHER, 300), limit=400)
    found = steps(judge(over_limit="kill"), scene(one), range(30))
    assert aims(found) == []
    assert "session-3.scope has it: protected: somebody's storage daemon" in found[0].refused
    one.parts[0].protected_by = ""
    # Nor where most of it is in no part at all: in the slice itself.
    one = user(part(SESSION, 20), limit=400)
    one.charge_bytes, one.outside = 390 * MIB, Outside(300 * MIB, 300 * MIB, 300 * MIB, "rings")
    found = steps(judge(over_limit="kill"), scene(one), range(30))
    assert aims(found) == []
    assert "in none of its sessions" in found[0].refused


def test_root_is_never_touched_and_the_scope_has_to_reach_users() -> None:
    one = user(part(f"{ROOT}/session-1.scope", 20, certain=300), uid=0, limit=200)
    mind = judge_of(
        scope=("/",), over_limit="kill", over_limit_opt_in=("*",), unprotect=("user:*",)
    )
    found = steps(mind, scene(one), range(30))
    assert (aims(found), "root's own sessions" in found[0].refused) == ([], True)
    apart = user(part(SESSION, 20, certain=300), limit=200)
    found = steps(
        judge_of(over_limit="kill", over_limit_opt_in=("*",)), scene(apart), range(30)
    )  # fmt: skip
    assert (aims(found), "outside the scope" in found[0].refused) == ([], True)


def fills(mind: Judge, groups: dict[str, Group], grow: Group, one: UserSlice) -> list[Order]:
    """A minute of peace, then ``grow`` takes 850 MiB, and nobody is left in a hurry."""
    for second in range(70):
        mind.step(CALM._replace(seconds=1000.0 + second), groups)
    grow.charge_bytes += 850 * MIB
    grow.gives_back_bytes = grow.charge_bytes
    grow.charge_slope = one.charge_slope = 160.0 * MIB
    add_up(one)
    orders: list[Order] = []
    for tenth in range(1, 60):
        node = short(1070 + tenth / 10, 50, 160.0)
        if verdict := mind.step(node, groups):
            orders += verdict.orders
            for order in verdict.orders:
                mind.learn(done(order), node)
    return orders


def test_the_session_that_grew_goes_and_not_the_larger_one_beside_it() -> None:
    """The user is proved by what all of it took; a job of days in another session stays."""
    runaway = part(SESSION, 10)
    one = user(part(OTHER, 900), runaway)
    bob = user(part("/user.slice/user-8.slice/session-1.scope", 200), uid=8)
    orders = fills(judge(), scene(one, bob), runaway, one)
    assert {order.target.path for order in orders} == {SESSION}
    assert "kill" in {order.step for order in orders}


def test_without_parts_it_is_the_user_who_is_looked_at_not_killed() -> None:
    """Nothing of a slice is ended whole: its sshd, shells and manager are in it."""
    one = user(limit=300)
    one.charge_bytes, one.outside = 290 * MIB, Outside(300 * MIB, 300 * MIB, 300 * MIB, "rings")
    assert aims(steps(judge(over_limit="kill"), scene(one), range(30))) == []


def test_a_user_is_one_tenant_with_its_containers() -> None:
    one, inside = user(part(SESSION, 1)), part(ROOTLESS, 1)
    assert tenant_of(one) == tenant_of(inside) == ALICE


# --- what is read and told beside -----------------------------------------------------------


def test_what_her_end_gives_back_is_without_her_containers(
    fake: FakeTree, version: int, tmp_path: Path
) -> None:
    stat = "total_rss" if version == 1 else "anon"
    for path, mib in ((ALICE, 800), (ROOTLESS, 280), (SESSION, 390)):
        fake.make(path, memory__stat=f"{stat} {mib * MIB}\n")
    fake.make(SESSION, cgroup__procs="41\n")
    (tmp_path / "41").mkdir()
    (tmp_path / "41/oom_score_adj").write_text("-1000\n")
    groups = table(fake, version)
    details = Details(groups.names, str(tmp_path))
    alice, session = groups.members[ALICE], groups.members[SESSION]
    for member in (alice, session):
        details.read(member, 2.0, has_swap=False)
    assert alice.group.gives_back_bytes == 500 * MIB
    assert (alice.group.adj, session.group.adj) == (None, -1000), "one process protects no user"
    assert session.group.gives_back_bytes == 390 * MIB
    parts = largest_parts(user_in(groups))
    assert [one.path for one in parts] == [SESSION, TMUX, OTHER]
    groups.close()


def test_explain_has_users_in_place_of_their_sessions_or_neither_of_them() -> None:
    paths = (ALICE, SESSION, TMUX, ROOTLESS, "/system.slice/x.service", "/user.slice/other")
    seen = [ExplainedWorkload(path, path, "", "") for path in paths]
    told = [[one.path for one in as_judged(seen, user_slices=is_on)] for is_on in (True, False)]
    assert told[0] == [ALICE, ROOTLESS, "/system.slice/x.service", "/user.slice/other"]
    assert told[1] == list(paths[1:])
