"""Lines of which the log has only the beginning: what is whole is read, and nothing is guessed."""

import pytest
from tests.readings.oom_logs import log, only_report, reports_in

from seawall.readings.oom_log.oom_report import Kill, OomReport

NAMES = ("memcg-v2-5.15.158-2-pve-php-fpm", "global-6.1.1-arch1-1-doxygen")
MARKS = (b"", b">", b"...", "\u2026".encode())
SUMMARY = (
    b"[ 2.5] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0-3,"
    b"oom_memcg=/kubepods.slice/a.slice,task_memcg=/kubepods.slice/a.slice/b.scope,task=x y,"
    b"pid=4711,uid=33"
)


def values(report: OomReport) -> dict[str, object]:
    """Single values that the cut line has."""
    names = (
        "constraint", "nodemask", "cpuset", "mems_allowed", "oom_memcg", "task_memcg", "choice",
        "gfp_mask", "order", "invoker_oom_score_adj", "memory", "swap",
    )  # fmt: skip
    return {name: getattr(report, name) for name in names}


@pytest.mark.parametrize("mark", MARKS)
def test_summary_cut_anywhere_says_nothing_that_the_whole_does_not(mark: bytes) -> None:
    whole = values(only_report(SUMMARY))
    assert whole["oom_memcg"] == "/kubepods.slice/a.slice"
    for end in range(SUMMARY.index(b"constraint=") + 11, len(SUMMARY) - 2):
        one = only_report(SUMMARY[:end] + mark)
        for name, value in values(one).items():
            assert value in (None, whole[name]), (SUMMARY[:end], name)
        assert one.cut_text or end >= SUMMARY.index(b",uid=")
        assert one.is_cut
        for name, text in one.cut_text.items():
            assert f"{name}={text}".encode() in SUMMARY


@pytest.mark.parametrize("mark", MARKS)
def test_kill_cut_anywhere_has_whole_numbers_alone(mark: bytes) -> None:
    line = (
        b"[ 2.6] Memory cgroup out of memory: Killed process 300 (a (b)) total-vm:16460kB, "
        b"anon-rss:804kB, file-rss:6584kB, shmem-rss:12kB, UID:981 pgtables:56kB oom_score_adj:-998"
    )
    (whole,) = only_report(line).kills
    assert whole == Kill(300, "a (b)", 981, 16460 << 10, 804 << 10, 6584 << 10, 12 << 10, 56 << 10,
                         -998, line=1)  # fmt: skip
    for end in range(line.index(b"total-vm:") + 9, len(line) - 5):
        (kill,) = only_report(line[:end] + mark).kills
        for name in Kill._fields[2:9]:
            assert getattr(kill, name) in (None, getattr(whole, name)), (line[:end], name)
        # An older kernel's line ends after file-rss, or after shmem-rss.
        may_be_whole = not mark and line[end - 2 : end + 1] in (b"kB,", b"kB ")
        may_be_whole |= not mark and line[end - 1 : end] in (b",", b" ", b"k")
        assert kill.is_cut or may_be_whole, line[:end]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mark", [b">", b"..."])
@pytest.mark.parametrize("width", [60, 80, 100, 120, 150])
def test_page_of_a_pager_says_nothing_that_the_log_does_not(
    name: str, mark: bytes, width: int
) -> None:
    whole = reports_in(log(name))[0]
    lines = log(name).splitlines()
    cut = [line if len(line) <= width else line[: width - len(mark)] + mark for line in lines]
    for one in reports_in(b"\n".join(cut)):
        for field, value in values(one).items():
            assert value in (None, values(whole)[field]) or field == "choice", field
        rows = {task.pid: task._replace(line=0, comm="") for task in whole.tasks}
        for task in one.tasks:
            assert task._replace(line=0, comm="") == rows[task.pid]
        for kill in one.kills:
            (other,) = [k for k in whole.kills if k.pid == kill.pid]
            assert all(
                mine in (None, theirs) for mine, theirs in zip(kill[:9], other[:9], strict=True)
            )


def test_counter_and_first_line() -> None:
    one = only_report(
        b"[ 1.5] java invoked oom-killer: gfp_mask=0x62>\n"
        b"[ 1.5] Task in /docker/abcdef killed as a result of limit of /docker/ab>\n"
        b"[ 1.5] memory: usage 524288kB, limit 52>\n"
        b"[ 2.6] Memory cgroup out of memory: Killed process 300 (java) total-vm:1kB, anon-r...\n"
    )
    assert (one.kind, one.gfp_mask, one.order) == ("memcg", None, None)
    assert (one.oom_memcg, one.memory) == (None, None)
    assert one.task_memcg == "/docker/abcdef"
    assert one.cut_text == {
        "order": "gfp_mask=0x62", "oom_memcg": "/docker/ab", "memory": "usage 524288kB, limit 52",
    }  # fmt: skip
