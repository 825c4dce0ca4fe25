"""Which cgroups hit their own limit: v1, v2 with and without memory.events.local."""

from seawall.accounts.limits.limit_hits import LimitHits, limit_hits
from seawall.accounts.scene import TopicWindow
from seawall.readings.memcg import Memcg, Memcgs


def v2(path: str, hits: int, local: int | None = None) -> Memcg:
    return Memcg(
        path=path, version=2, usage=1, limit=None, stat={}, events={"max": hits},
        events_local={} if local is None else {"max": local},
    )  # fmt: skip


def v1(path: str, failcnt: int, memsw_failcnt: int | None = None) -> Memcg:
    return Memcg(path=path, version=1, usage=1, limit=None, stat={}, events={}, events_local={},
                 failcnt=failcnt, memsw_failcnt=memsw_failcnt)  # fmt: skip


def hits(earlier: list[Memcg], later: list[Memcg]) -> list[LimitHits]:
    version = later[0].version
    first, last = (
        Memcgs(version, {m.path: m for m in group}, "/sys/fs/cgroup", ())
        for group in (earlier, later)
    )
    return limit_hits(TopicWindow(first, last, 3.0))


def test_local_events_name_the_one_whose_limit_it_was() -> None:
    found = hits(
        [v2("/a", 5, 0), v2("/a/b", 5, 5)], [v2("/a", 45, 0), v2("/a/b", 45, 45), v2("/c", 0, 0)]
    )
    assert found == [LimitHits("/a/b", 40, "/sys/fs/cgroup/a/b/memory.events.local")]


def test_without_local_events_an_ancestor_is_an_echo() -> None:
    found = hits(
        [v2("/a", 5), v2("/a/b", 5), v2("/ab", 1)], [v2("/a", 45), v2("/a/b", 45), v2("/ab", 3)]
    )
    assert [(hit.path, hit.hits) for hit in found] == [("/a/b", 40), ("/ab", 2)]


def test_v1_counts_failures_of_each_by_itself() -> None:
    found = hits([v1("/docker", 0), v1("/docker/x", 7)], [v1("/docker", 2), v1("/docker/x", 9)])
    assert [(hit.path, hit.hits) for hit in found] == [("/docker", 2), ("/docker/x", 2)]
    assert found[0].file == "/sys/fs/cgroup/docker/memory.failcnt"


def test_new_cgroups_count_from_zero_and_reset_ones_not_at_all() -> None:
    found = hits([v1("/old", 100)], [v1("/old", 3), v1("/new", 4)])
    assert [(hit.path, hit.hits) for hit in found] == [("/new", 4)]


def test_limit_of_memory_and_swap_refuses_first_where_it_is_as_low() -> None:
    """Docker's --memory-swap equal to --memory: memory.failcnt stays where it is."""
    found = hits([v1("/docker/a", 0, 100)], [v1("/docker/a", 0, 107)])
    assert found == [LimitHits("/docker/a", 7, "/sys/fs/cgroup/docker/a/memory.memsw.failcnt")]
