"""The OOM killer in the published incidents: the hang of seed 3, the kill and numbers of seed 4."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.warm_verbs import seawall

INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
HANG = str(INCIDENTS / "container-hangs/bundle.tar.gz")
CACHE = str(INCIDENTS / "page-cache/bundle")
KILL = str(INCIDENTS / "page-cache/oom.log")
LIMITS = ("--limit", "8GiB", "--swap", "2GiB")


def document(*words: str) -> dict[str, Any]:
    return seawall(*words, "--json").answered().document


def test_container_that_hangs_ranks_bystanders_first() -> None:
    page = document("oom", "predict", "d96a8ea034f0", "--from", HANG)
    assert page["killable"] is True
    assert page["hangs"] is True
    assert [(row["comm"], row["points"]) for row in page["ranking"][:3]] == [
        ("init", 1), ("agent", 1), ("agentPlugInD", 1),
    ]  # fmt: skip
    assert page["agreement"]["differ"] == 0


def test_node_of_the_container_that_hangs_keeps_its_first_process() -> None:
    page = document("oom", "predict", "--node", "--from", HANG)
    assert {"pid": 1, "comm": "init", "why": "the node's first process"} in page["immune"]
    assert 1 not in {row["pid"] for row in page["ranking"]}


@pytest.mark.parametrize(
    ("swarm", "kernel", "hangs"),
    [
        ("1280x8MiB", "2.6.32-el6", True),
        ("80x128MiB", "2.6.32-el6", False),
        ("80x128MiB,uid=0", "2.6.32-el6", True),
        ("1280x8MiB", "3.10.0-1160.el7", False),
        ("80x128MiB,uid=0", "6.1", False),
    ],
)
def test_experiments_of_the_report(swarm: str, kernel: str, hangs: bool) -> None:
    page = document("oom", "predict", "--swarm", swarm, *LIMITS, "--kernel", kernel)
    assert page["hangs"] is hangs


def test_without_sizes_nobody_is_called_safe(tmp_path: Path) -> None:
    """A bundle without /proc/PID/status: no ranking, and no "nobody would be killed"."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1000000 kB\nMemFree: 10 kB\n")
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.1.0\n")
    row = "7 (java) S 1 7 7 0 -1 64 9 0 2 0 5 6 0 0 20 0 3 0 77 8192 12 18446744073709551615\n"
    (tmp_path / "proc/7/stat").write_text(row)
    page = document("oom", "predict", "--root", str(tmp_path))
    assert "killable" not in page
    assert "killable" in page["unread"]
    text = seawall("oom", "predict", "--root", str(tmp_path)).answered().text
    assert "cannot be told" in text
    assert "nobody would be killed" not in text


def test_kill_of_the_report_is_a_cgroups() -> None:
    (report,) = document("oom", "explain", KILL)["reports"]
    assert report["kind"] == "memcg"
    assert report["chosen_pid"] == 27220
    assert "constraint-none" in {row["id"] for row in report["anomalies"]}
    page = re.sub(r"\s+", " ", seawall("oom", "explain", KILL).answered().text)
    assert "python (pid 27220, 63.8 GiB)" in page
    assert "9df61518-c02a-11e9-9694-246e967d5d94" in page
    text = re.sub(r"\s+", " ", seawall("oom", "explain", KILL, "--report", "1").answered().text)
    assert "2e8e56c5bf8a2e4a5c5ef824f1323d44f2194b9ffbb4336d579bd0ff435a2f98" in text


def test_four_numbers_are_one_table() -> None:
    page = document("numbers", "kubeflow/jupyter-ningsheng-0kctiqfg/notebook", "--from", CACHE)
    shown = {(row["tool"], row["name"]): row["bytes"] for row in page["values"]}
    by_name = {name: size for (_, name), size in shown.items()}
    assert by_name["container_memory_usage_bytes"] == 1_710_297_088
    assert by_name["container_memory_working_set_bytes"] == 661_315_584
    assert by_name["container_memory_rss"] == 546_828_288
    assert {size for (tool, _), size in shown.items() if tool.startswith("docker stats")} == {
        1_710_297_088, 661_315_584, 650_387_456,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said", "hangs"),
    [
        (("5x1GiB,adj=-1000", "1GiB"), "it hangs. Nobody can be killed", True),
        (("100000x1MiB", "1GiB"), "more than 10,000 kills would be needed", False),
        (("4x1MiB", "1GiB"), "all of it fits: nobody is killed", False),
    ],
)
def test_described_ends_in_words_of_its_outcome(
    words: tuple[str, str], said: str, hangs: bool
) -> None:
    asked = ("oom", "predict", "--kernel", "6.1", "--swarm", words[0], "--limit", words[1])
    text = seawall(*asked).answered().text
    assert said in re.sub(r"\s+", " ", text)
    assert "it fits" not in text or not hangs
    assert document(*asked)["hangs"] is hangs


def test_no_limit_at_all_is_no_description() -> None:
    done = seawall("oom", "predict", "--swarm", "5x1MiB", "--limit", "0")
    assert done.status == 2
    assert b"--limit" in done.err
