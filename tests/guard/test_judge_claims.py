"""Immunity is the owner's to give: a name or a priority spares in the order, not from proof."""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, calm, done, group_of, hog, judge_of, scene, short, web
from tests.guard.test_judge_order import best, first_to_go, of
from tests.watcher.test_roles import HASH, container

from seawall.guard.judge.judge import Judge
from seawall.guard.judge.protection import Protection
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, Group
from seawall.watcher.roles import role_of

UID = "3f0c9a4e-0b1d-4c61-9f4e-2d8a1c6b7e50"
# What anybody writes into a pod of his own, as the host sees it.
TENANTS = [
    {"adj": -997, "pod": UID, "class_rank": BEST_EFFORT},
    {"adj": -997, "pod": UID, "class_rank": BURSTABLE,
     "protected_by": role_of(container(adj=-997))},
    {"protected_by": role_of(container(namespace="longhorn-system", pod="instance-manager-e"))},
    {"protected_by": role_of(container(namespace="gpu-operator", pod="nvidia-driver-x"))},
]  # fmt: skip
# What a tenant cannot have: who gave it stands in the words.
GIVEN = [
    ({"protected_by": role_of(container(pod_uid=HASH)), "adj": -997, "pod": HASH}, "static pod"),
    ({"protected_by": role_of(container(namespace="kube-system", adj=-997))}, "kube-system"),
    ({"protected_by": role_of(container(namespace="longhorn-system", adj=-997,
                                        folders=("/var/lib/longhorn",)))}, "/var/lib/longhorn"),
    ({"protected_by": role_of(container(namespace="gpu-operator", pod="nvidia-driver-x",
                                        folders=("/run/nvidia/driver",)))}, "/run/nvidia"),
    ({"name": "owned/hog/c", "adj": -997, "pod": UID}, "configuration"),
]  # fmt: skip


def tenant(group: Group, values: dict[str, object]) -> Group:
    for key, value in values.items():
        setattr(group, key, value)
    return group


def ends(judge: Judge, groups: dict[str, Group], seconds: float = 8.0) -> list[str]:
    """Names of those whom a short node ends, in their order."""
    found: list[str] = []
    for tick in range(int(seconds * 10)):
        node = short(1005 + tick / 10)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            judge.learn(done(order), node)
            if order.step in ("kill", "terminate"):
                found.append(order.target.name)
    return found


@pytest.mark.parametrize("values", TENANTS)
def test_the_proved_source_is_stopped_whatever_it_calls_itself(values: dict[str, object]) -> None:
    judge = judge_of()
    judge.step(CALM, scene(tenant(hog(0), values)))
    assert ends(judge, scene(tenant(hog(), values))) == ["ns/hog"]


@pytest.mark.parametrize("values", TENANTS)
def test_who_takes_it_with_its_own_charge_is_stopped_too(values: dict[str, object]) -> None:
    """No limit, no request: it grew by all that the node lost."""
    judge = judge_of()
    judge.step(CALM, scene(tenant(group_of("leak", 50), values)))
    assert ends(judge, scene(tenant(group_of("leak", 900), values))) == ["ns/leak"]


@pytest.mark.parametrize(("values", "word"), GIVEN)
def test_whom_the_owner_protects_stays(values: dict[str, object], word: str) -> None:
    judge = judge_of(protect=("owned/*",))
    judge.step(CALM, scene(tenant(hog(0), values)))
    groups = scene(tenant(hog(850), values), web())
    verdicts = [v for n in range(40) if (v := judge.step(short(1005 + n / 10), groups))]
    assert not [order for v in verdicts for order in v.orders]
    against = {words for v in verdicts for rank in v.ranking for words in rank.against}
    assert any(word in words for words in against), against


@pytest.mark.parametrize("values", TENANTS)
def test_an_innocent_with_a_priority_is_in_no_order(values: dict[str, Any]) -> None:
    """It is of the class that goes first, over its promise, and gives back enough: an ordinary one
    goes, and beside one that claims, the next.
    """
    job = of(grown=100)
    assert first_to_go(job, best(grown=100)) == ["ns/zz"], "the scene proves something"
    claims = best(grown=100)
    claims.values.update(values)
    assert first_to_go(job, claims) == ["ns/aa"]
    assert first_to_go(of(40, request=2048), claims) == [], "nobody is ended for it either"


@pytest.mark.parametrize("values", TENANTS)
def test_of_the_proved_it_is_the_last(values: dict[str, object]) -> None:
    """It took more than the other, which goes first all the same; and then is enough back."""
    judge = judge_of()
    before = (tenant(group_of("agent", 5), values), group_of("job", 5))
    judge.step(CALM, scene(*before))
    groups = scene(tenant(group_of("agent", 500), values), group_of("job", 400))
    verdict = judge.step(short(1005, 50, 20), groups)
    assert verdict is not None
    assert [order.target.name for order in verdict.orders] == ["ns/job"]
    places = {rank.name: rank.place for rank in verdict.ranking}
    assert places == {"ns/job": 1, "ns/agent": 2}
    for order in verdict.orders:
        judge.learn(done(order), short(1005, 50, 20))
    for tick in range(1, 60):
        later = judge.step(calm(450, seconds=1005 + tick / 10), groups)
        assert later is None or not [o for o in later.orders if o.target.name == "ns/agent"]


@pytest.mark.parametrize("values", TENANTS)
def test_no_suspicion_holds_it(values: dict[str, object]) -> None:
    """A bound proves nothing; the scene holds an ordinary one."""
    from tests.guard.test_judge_holds import begun, lost, steps, suspect

    plain = suspect()
    assert steps(begun(plain).step(lost(1005), scene(plain))) == [("freeze", "ns/hog")]
    claimed = tenant(suspect(), values)
    assert steps(begun(claimed).step(lost(1005), scene(claimed))) == []


@pytest.mark.parametrize("values", TENANTS)
def test_who_is_over_its_limit_and_opted_in_is_ended(values: dict[str, object]) -> None:
    judge = judge_of(over_limit="kill", over_limit_opt_in=("*",))
    groups = scene(tenant(group_of("big", 200, limit=400, certain=300), values))
    found = [judge.step(CALM._replace(seconds=1000.0 + n / 2), groups) for n in range(60)]
    assert [o.step for v in found if v for o in v.orders] == ["terminate", "kill"]


def test_the_words_name_the_claim_and_the_owner_lifts_it() -> None:
    protection = Protection(Settings(unprotect=("shop/*",)))
    group = tenant(group_of("x", 5), TENANTS[0])
    assert not protection.reason(group)
    assert protection.claim(group) == "only by its priority class: oom_score_adj -997"
    assert protection.bar(group)
    group.name = "shop/web/c"
    assert not protection.bar(group)
    # Every Guaranteed pod has it, and asked for what it uses; elsewhere root has set it.
    assert not protection.bar(tenant(group_of("y", 5), {**TENANTS[0], "class_rank": GUARANTEED}))
    outside = tenant(group_of("z", 5), {"adj": -997, "pod": ""})
    assert protection.reason(outside) == "protected: oom_score_adj -997"
