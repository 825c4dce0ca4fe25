"""Verdicts of published logs say what the log carries, and no more."""

from pathlib import Path

import pytest
from tests.end_to_end.explained_logs import explained, ids
from tests.end_to_end.warm_verbs import seawall


@pytest.mark.parametrize(
    ("name", "number", "kind"),
    [
        ("header-3.2.0-debian-node-editor-numbers.txt", 0, None),
        ("memcg-v1-2.6.32-centos6.5-tdocker.txt", 1, None),
        ("memcg-v1-3.10.0-327-el7-java-adj-998.txt", 1, None),
        ("memcg-v1-4.19.189-photon-vmware-console.txt", 0, None),
        ("header-4.9.56-qubes-order3.txt", 0, "global"),  # no cgroup is charged for such pages
    ],
)
def test_kind_is_absent_where_the_log_does_not_tell(
    name: str, number: int, kind: str | None
) -> None:
    one = explained(name)[number]
    assert one.get("kind") == kind
    assert ("kind" in one["unread"]) == (kind is None)


@pytest.mark.parametrize(
    ("name", "verdict", "advice"),
    [
        ("mempolicy-3.0.101-80-sles.txt",
         "no page for this request, although 455 GiB was free (node 1 Normal)",
         "Look for a memory policy or cpuset (numactl, cpuset.mems) of PoolThread."),
        ("cpuset-5.8.2-docker-movable-node.txt", "although 124 GiB was free (node 4 Movable)",
         "Add a node with a zone Normal"),
        ("cpuset-memkiller-mail-wrapped.txt", "the nodes of a cpuset (0) ran out",
         "or widen its nodes"),
        ("global-2.6.26-ia64-64k-usex.txt", "of which it is a child or a thread",
         "Find out what grew"),
        ("global-2.6.31-rc1-msgctl11.txt", "of which it is a child or a thread",
         "Find out what grew"),
        ("header-4.9.56-qubes-order3.txt", "no 32 KiB in one piece",
         "too much of it causes OOM kills itself"),
        ("memcg-v1-3.10.0-327-el7-java-adj-998.txt", "in swap) was killed: the limit of",
         "Find out why java"),
    ],
)  # fmt: skip
def test_verdict_is_carried_by_the_log(name: str, verdict: str, advice: str) -> None:
    one = explained(name)[0]
    assert verdict in one["verdict"]
    assert advice in one["advice"]


def test_thread_of_the_killed_is_no_child() -> None:
    one = explained("memcg-v1-3.10.0-327-el7-java-adj-998.txt")[0]
    assert not ids(one) & {"child-sacrificed", "other-pid-killed"}
    words = " ".join(one["explanation"])
    assert "The pid chosen, 24572, is a thread of java (pid 28438), which was killed." in words


def test_what_the_reaper_gave_up_on_did_not_come_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Mar 12 13:01:10 h kernel: Out of memory: Killed process 200 (db) total-vm:9000000kB,"
        " anon-rss:8000000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:16000kB"
        " oom_score_adj:0\n"
        "Mar 12 13:01:12 h kernel: oom_reaper: unable to reap pid:200 (db)\n"
    )
    text = " ".join(seawall("oom", "explain", str(log)).answered().text.split())
    assert "how much came back is not in the log" in text
    assert "gave back 7.6 GiB" not in text
    assert "the machine ran out of memory" in text  # the line itself says so
