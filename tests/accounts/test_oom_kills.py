"""Which OOM kills were the node's and which were at the limit of a cgroup."""

from typing import Literal

from seawall.accounts.limits.oom_kills import Kills, kills_in
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.vmstat import Vmstat

NONE = Unread("/proc/none", "absent")


def vmstat(kills: int) -> TopicWindow[Vmstat]:
    return TopicWindow(Vmstat({"oom_kill": 7}), Vmstat({"oom_kill": 7 + kills}), 2.0)


def v2(path: str, kills: int, oom: int, local: int | None = None) -> Memcg:
    """``kills`` and ``oom`` with what is below; ``local`` is how often its own limit was hit."""
    own = {} if local is None else {"oom": local, "oom_kill": kills}
    return Memcg(
        path=path, version=2, usage=0, limit=1 << 30, stat={},
        events={"oom": oom, "oom_kill": kills}, events_local=own, oom_kill=kills,
    )  # fmt: skip


def v1(path: str, kills: int, failcnt: int) -> Memcg:
    return Memcg(path=path, version=1, usage=0, limit=1 << 30, stat={}, events={},
                 events_local={}, oom_kill=kills, failcnt=failcnt)  # fmt: skip


def window(*pairs: tuple[Memcg | None, Memcg | None]) -> TopicWindow[Memcgs]:
    """The same cgroups before and after; None where one is not there yet or is gone."""
    version: Literal[1, 2] = next(m for pair in pairs for m in pair if m).version
    moments = [
        Memcgs(version, {m.path: m for m in side if m}, "/sys/fs/cgroup", ())
        for side in zip(*pairs, strict=True)
    ]
    return TopicWindow(moments[0], moments[1], 2.0)


def test_unknown_without_a_window_or_a_counter() -> None:
    assert kills_in(NONE, NONE) is None
    assert kills_in(TopicWindow(Vmstat({"pgfault": 1}), Vmstat({"pgfault": 2}), 2.0), NONE) is None
    assert kills_in(vmstat(0), NONE) == Kills(0, 0)


def test_without_cgroups_each_kill_is_the_nodes() -> None:
    assert kills_in(vmstat(2), NONE) == Kills(2, 0)


def test_a_parent_repeats_its_childs_kill_and_it_counts_once() -> None:
    groups = window(
        (v2("/pods", 1, 1, 0), v2("/pods", 3, 3, 0)),
        (v2("/pods/a", 1, 1, 1), v2("/pods/a", 3, 3, 3)),
    )
    found = kills_in(vmstat(3), groups)
    assert found == Kills(3, 2)
    assert found.by_node == 1


def test_a_container_that_the_node_was_short_for_is_the_nodes_kill() -> None:
    groups = window((v2("/a", 0, 0, 0), v2("/a", 1, 0, 0)), (v2("/b", 0, 0, 0), v2("/b", 0, 1, 1)))
    assert kills_in(vmstat(1), groups) == Kills(1, 0)


def test_the_limit_may_be_that_of_a_cgroup_above() -> None:
    before = (v2("/pod", 0, 0, 0), v2("/pod/a", 0, 0, 0))
    after = (v2("/pod", 1, 1, 1), v2("/pod/a", 1, 0, 0))
    assert kills_in(vmstat(1), window(*zip(before, after, strict=True))) == Kills(1, 1)


def test_a_container_that_is_gone_is_in_its_parents_count_and_excuses_no_sibling() -> None:
    before = (v2("/pod", 0, 0, 0), v2("/pod/b", 0, 0, 0), v2("/pod/a", 0, 0, 0))
    after = (v2("/pod", 2, 1, 0), v2("/pod/b", 1, 0, 0), None)
    assert kills_in(vmstat(2), window(*zip(before, after, strict=True))) == Kills(2, 1)


def test_one_that_came_in_the_window_counts_from_zero() -> None:
    assert kills_in(vmstat(1), window((None, v2("/a", 1, 1)))) == Kills(1, 1)


def test_v1_goes_by_refused_charges_at_the_victims_limit_or_above() -> None:
    before = (v1("/d", 0, 5), v1("/d/a", 4, 0), v1("/e", 0, 9))
    after = (v1("/d", 0, 8), v1("/d/a", 5, 0), v1("/e", 2, 9))
    assert kills_in(vmstat(3), window(*zip(before, after, strict=True))) == Kills(3, 1)


def test_never_more_at_limits_than_there_were() -> None:
    assert kills_in(vmstat(0), window((v2("/a", 0, 0), v2("/a", 1, 1)))) == Kills(0, 0)
