"""What somebody may use: a request is a promise, a limit alone is none that a node could keep."""

import pytest
from tests.guard.judge_scene import MIB, calm, group_of, judge_of, short

from seawall.guard.judge.evidence import is_hollow, promised_to
from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BURSTABLE, GUARANTEED, SYSTEM, Group
from seawall.guard.verdict import Verdict

TOTAL = 1500 * MIB


def docker(name: str, charge: int, **values: object) -> Group:
    """``docker run --memory=700m``: three of them are more than the node has."""
    return group_of(name, charge, **{"limit": 700, "adj": 0, **values})  # type: ignore[arg-type]


def filled(judge: Judge, groups: dict[str, Group], takers: dict[str, int]) -> list[Verdict]:
    """The takers take so many MiB in a quarter of a second, until nothing is left."""
    found, left = [], 700
    for tick in range(80):
        pressed = tick >= 20
        for path, step in takers.items():
            if pressed and left > 10:
                groups[path].charge_bytes += step * MIB
                groups[path].gives_back_bytes = groups[path].charge_bytes
                groups[path].charge_slope = 4.0 * step * MIB
                left -= step
        now = 1000.0 + tick / 4
        slope = 4.0 * sum(takers.values()) if pressed else 0.0
        node = short(now, left, slope) if left < 60 else calm(left, seconds=now)
        verdict = judge.step(node, groups)
        if verdict is not None:
            found.append(verdict)
            if verdict.orders:
                return found
    return found


def groups_of(*groups: Group) -> dict[str, Group]:
    return {group.path: group for group in groups}


def test_who_fills_the_node_within_a_mere_limit_goes() -> None:
    groups = groups_of(docker("hog", 50), docker("web", 200), docker("batch", 300))
    verdict = filled(judge_of(), groups, {"/kubepods/burstable/hog": 15})[-1]
    assert [order.target.name for order in verdict.orders] == ["ns/hog"]
    told = {rank.name: rank.against for rank in verdict.ranking}
    assert told["ns/web"] == ("200 MiB used of its limit of 700 MiB: it is not the cause",)


@pytest.mark.parametrize("adj", [3, 200, 500, 999])
def test_what_a_container_wishes_for_itself_is_no_promise(adj: int) -> None:
    """Whoever is in it may raise its oom_score_adj; Docker writes what ``--oom-score-adj`` says."""
    hog = docker("hog", 50, adj=adj, path=f"/kubepods/docker/{1:064x}")
    verdict = filled(judge_of(), groups_of(hog, docker("web", 200)), {hog.path: 15})[-1]
    assert [order.target.name for order in verdict.orders] == ["ns/hog"]


def test_what_kubernetes_was_asked_for_is_kept() -> None:
    """The same, but the pod asked for what it takes."""
    hog = docker("hog", 50, request_bytes=700 * MIB)
    verdicts = filled(judge_of(), groups_of(hog, docker("web", 200)), {hog.path: 15})
    assert not any(verdict.orders for verdict in verdicts)
    assert "keep their promise" in verdicts[-1].refused


def test_of_two_that_take_together_neither_is_alone_the_cause() -> None:
    """One may load a model beside the other's leak: nobody says which."""
    groups = groups_of(docker("one", 50), docker("two", 50))
    verdicts = filled(
        judge_of(), groups, {"/kubepods/burstable/one": 8, "/kubepods/burstable/two": 8}
    )
    assert not any(verdict.orders for verdict in verdicts)


@pytest.mark.parametrize(
    ("klass", "adj", "request_mib", "limit_mib", "promise_mib", "hollow"),
    [
        (BURSTABLE, 0, None, 700, 700, True),
        (BURSTABLE, 0, None, None, 0, True),
        (BURSTABLE, 0, 300, 700, 300, False),
        (BURSTABLE, 0, 1000, None, 1000, True),
        (GUARANTEED, -997, None, 700, 700, False),
        (SYSTEM, None, None, 700, 700, True),
        (SYSTEM, None, 200, 700, 200, False),
    ],
    ids=["limit", "nothing", "request", "more than half", "guaranteed", "unit", "MemoryLow="],
)
def test_promises(
    klass: int, adj: int | None, request_mib: int | None, limit_mib: int | None,
    promise_mib: int, hollow: bool,
) -> None:  # fmt: skip
    request = None if request_mib is None else request_mib * MIB
    limit = None if limit_mib is None else limit_mib * MIB
    group = group_of("one", 10, class_rank=klass, adj=adj, request_bytes=request)
    promise = promised_to(group, TOTAL, limit)
    assert (promise, is_hollow(group, TOTAL, promise)) == (promise_mib * MIB, hollow)


@pytest.mark.parametrize(
    ("folder", "is_promise"),
    [
        ("/kubepods/burstable/podaa/c", True),
        ("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa.slice/c.scope", True),
        ("/user.slice/user-1.slice/user@1.service/kubepods/burstable/podaa/c", False),
        (f"/docker/{1:064x}", False),
    ],
    ids=["cgroupfs", "systemd", "made up by a user", "docker"],
)
def test_only_the_kubelet_tells_a_request_by_oom_score_adj(
    folder: str, *, is_promise: bool
) -> None:
    group = group_of("one", 10, adj=900, path=folder)
    assert promised_to(group, TOTAL, None) == (TOTAL * 101 // 1000 if is_promise else 0)


@pytest.mark.parametrize(
    ("folder", "is_promise"),
    [
        ("/user.slice/user-1.slice/user@1.service/app.slice/x.service", False),
        ("/system.slice/x.service", True),
        ("/system.slice/slurmstepd.scope/job_7", True),
    ],
    ids=["a user's own", "the administrator's", "Slurm's"],
)
def test_a_limit_that_its_user_wrote_is_no_promise(folder: str, *, is_promise: bool) -> None:
    """``MemoryMax=15G`` of a user's own unit: x took all of it, and y went for it."""
    group = group_of("one", 10, class_rank=SYSTEM, adj=None, path=folder)
    assert promised_to(group, TOTAL, 700 * MIB) == (700 * MIB if is_promise else 0)
