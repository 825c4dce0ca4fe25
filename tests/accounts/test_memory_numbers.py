"""The sums over a cgroup's counters, against published ones."""

from tests.case_host import parse_case

from seawall.accounts.cgroup_memory.memory_numbers import (
    docker_stats,
    docker_stats_17_06,
    droppable,
    held_bytes,
    working_set,
)
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.snapshot import Snapshot

MIB = 1 << 20


def v2(usage: int, **fields: int) -> Memcg:
    return Memcg(
        path="/a", version=2, usage=usage, limit=None, stat={}, events={}, events_local={}, **fields
    )


def published() -> Memcg:
    """The files of the published report: 619.9MiB / 8GiB in docker stats, 1710297088 in use."""
    text = b"""why: the report's files
=== /sys/fs/cgroup/memory/c/memory.usage_in_bytes
1710297088
=== /sys/fs/cgroup/memory/c/memory.limit_in_bytes
8589934592
=== /sys/fs/cgroup/memory/c/memory.stat
cache 1059909632
rss 546828288
mapped_file 2973696
inactive_anon 0
active_anon 547405824
inactive_file 1048981504
active_file 12390400
"""
    memcgs = Snapshot(parse_case(text).rounds[0]).get(Memcgs)
    assert isinstance(memcgs, Memcgs)
    return memcgs.by_path["/c"]


def test_the_published_container() -> None:
    memcg = published()
    # What docker stats of that time printed, to the digit: 619.9 MiB is within 0.5 MiB of the
    # figures, which were not read at the same moment.
    assert docker_stats_17_06(memcg) == 1_710_297_088 - 1_059_909_632
    assert abs((docker_stats_17_06(memcg) or 0) / MIB - 619.9) < 0.5
    assert docker_stats(memcg) == 1_710_297_088 - 1_048_981_504
    # kubectl top: the 12 MB of active file pages stay in it.
    assert working_set(memcg) == 661_315_584
    assert held_bytes(memcg) == 1_710_297_088 - 1_048_981_504 - 12_390_400


def test_docker_of_17_06_takes_nothing_off_on_v2() -> None:
    memcg = v2(900 * MIB, file=500 * MIB, inactive_file=400 * MIB, active_file=50 * MIB)
    assert docker_stats_17_06(memcg) == 900 * MIB
    assert docker_stats(memcg) == 500 * MIB


def test_inactive_file_above_the_usage() -> None:
    """Counters lag behind each other: Docker then shows the usage, cAdvisor zero."""
    memcg = v2(100 * MIB, inactive_file=120 * MIB, active_file=0)
    assert docker_stats(memcg) == 100 * MIB
    assert working_set(memcg) == 0
    assert held_bytes(memcg) == 0


def test_what_was_not_read_is_unknown() -> None:
    memcg = v2(100 * MIB)
    assert working_set(memcg) is None
    assert docker_stats(memcg) is None
    assert droppable(memcg) is None
    assert held_bytes(memcg) is None
