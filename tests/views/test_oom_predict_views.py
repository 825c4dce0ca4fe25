"""``seawall oom predict`` as a user runs it, about a host written down by hand."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.verbs import Ran
from tests.end_to_end.warm_verbs import seawall

SCHEMA = json.loads((files("seawall.views") / "schemas/oom-predict.json").read_text())
MIB = 1 << 20
CGROUPS = "/sys/fs/cgroup"
BASE = {
    "/proc/sys/kernel/osrelease": "6.1.0-25-amd64\n",
    "/proc/sys/kernel/hostname": "node-7\n",
    "/proc/meminfo": "MemTotal: 8388608 kB\nMemFree: 1048576 kB\nSwapTotal: 2097152 kB\n"
    "SwapFree: 2097152 kB\nAnonPages: 2190000 kB\n",
    "/proc/vmstat": "nr_free_pages 262144\n",
    "/proc/sys/vm/panic_on_oom": "0\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/1/mountinfo": f"30 23 0:26 / {CGROUPS} rw - cgroup2 cgroup2 rw\n",
    f"{CGROUPS}/cgroup.controllers": "memory\n",
    f"{CGROUPS}/cgroup.procs": "",
    "/proc/2/stat": "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 9\n",
}


def process(pid: int, comm: str, anon: int, file: int = 0, adj: int = 0) -> dict[str, str]:
    """One process; MiB."""
    rss = (anon + file) << 8
    return {
        f"/proc/{pid}/stat": f"{pid} ({comm}) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {pid}"
        f" {rss << 13} {rss} 99\n",
        f"/proc/{pid}/status": f"Name:\t{comm}\nPid:\t{pid}\nUid:\t0\t0\t0\t0\n"
        f"VmRSS:\t{rss << 2} kB\nRssAnon:\t{anon << 10} kB\nRssFile:\t{file << 10} kB\n"
        "RssShmem:\t0 kB\nVmPTE:\t0 kB\nVmSwap:\t0 kB\nThreads:\t1\nCapEff:\t0\n",
        f"/proc/{pid}/oom_score_adj": f"{adj}\n",
    }


def group(path: str, limit: str, usage: int, pids: str) -> dict[str, str]:
    """One cgroup; MiB."""
    at = f"{CGROUPS}{path}"
    return {
        f"{at}/memory.current": f"{usage << 20}\n",
        f"{at}/memory.max": f"{limit}\n",
        f"{at}/memory.swap.max": "0\n",
        f"{at}/memory.stat": f"anon {usage << 20}\ninactive_file 0\nactive_file 0\nshmem 0\n",
        f"{at}/cgroup.procs": pids,
    }


HOST = {
    **BASE,
    **process(1, "init", 10),
    **process(300, "sshd", 5, adj=-1000),
    **process(400, "java", 2000, 40),
    **process(500, "worker", 100, 4, adj=300),
    **process(501, "sh", 1),
    **group("/tenants", "max", 2100, ""),
    **group("/tenants/shop", str(2200 << 20), 2000, "400\n"),
    **group("/tenants/batch", str(128 << 20), 101, "500\n501\n"),
    **group("/tenants/idle", str(128 << 20), 90, ""),
    **group("/tenants/guard", str(128 << 20), 5, "300\n"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return planted(tmp_path, HOST)


def planted(home: Path, host: dict[str, str]) -> Path:
    for path, text in host.items():
        (home / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (home / path[1:]).write_text(text)
    return home


def ask(root: Path, *words: str) -> Ran:
    return seawall("oom", "predict", "--root", str(root), *words).answered()


def asked(root: Path, *words: str) -> dict[str, Any]:
    """The JSON document, which is always as its schema says."""
    page = ask(root, "--json", *words).document
    jsonschema.validate(page, SCHEMA)
    return page


def test_the_node(root: Path) -> None:
    """RAM and swap are 2621440 pages, so 300 is 786300 of them."""
    page = asked(root)
    assert (page["scope"], page["killable"], page["hangs"]) == ("node", True, False)
    assert page["limit"]["total_pages"] == 2_621_440
    assert page["why"] == "pid 500 (worker) has the most points"
    rows = [(row["pid"], row["points"], row["oom_score"]) for row in page["ranking"]]
    # (1000 + 310) x 2 / 3; 522240 pages are 199 thousandths; 256 pages none.
    assert rows == [(500, 812_924, 873), (400, 522_240, 799), (501, 256, 666)]
    assert [(one["pid"], one["why"]) for one in page["immune"]] == [
        (1, "the node's first process"),
        (300, "oom_score_adj is -1000"),
    ]
    assert page["ranking"][1]["returns_bytes"] == 2000 * MIB
    assert page["ranking"][1]["returns_most_bytes"] == 2040 * MIB
    assert page["ranking"][1]["workload"] == "/tenants/shop"
    # 5 % of 10 GiB: the worker's 100 MiB, then java.
    assert page["relief"]["needed_bytes"] == 536_870_912
    assert (page["relief"]["outcome"], page["relief"]["kills"]) == ("relieved", 2)
    assert "agreement" in page["unread"]


def test_as_text(root: Path) -> None:
    assert ask(root).text.splitlines()[1:] == [
        "",
        "If the node ran out of memory now, pid 500 (worker) of /tenants/batch would die",
        "first: 100 MiB would come back.",
        "Points as this kernel counts them, in pages: rss + swap + page tables +",
        "oom_score_adj x total / 1000.",
        "",
        "  PID PROCESS  ADJ  SCORE   POINTS  ANON  FILE  SHMEM  SWAP       BACK",
        "  /tenants/batch:",
        "  500 worker   300    873  812,924  100M  4.0M      0     0  100M-104M",
        "  /tenants/shop:",
        "  400 java       0    799  522,240  2.0G   40M      0     0       2.0G",
        "  /tenants/batch:",
        "  501 sh         0    666      256  1.0M     0      0     0       1.0M",
        "ADJ oom_score_adj; SCORE /proc/PID/oom_score; BACK at least to at most: tmpfs",
        "and what others map stay, file pages could be dropped without a kill.",
        "",
        "512 MiB (5 % of RAM and swap) would be relief: 2 kills would bring it back.",
        "Never chosen: init (1): the node's first process; sshd (300): oom_score_adj is",
        "-1000; 1 kernel thread.",
        "",
        "Could not see: nothing that was asked for was missing.",
    ]


def test_a_container_at_its_limit(root: Path) -> None:
    page = asked(root, "/tenants/batch")
    assert (page["scope"], page["limit"]["bytes"]) == ("memcg", 128 << 20)
    assert page["limit"]["file"] == f"{CGROUPS}/tenants/batch/memory.max"
    # 32768 pages of limit: 26624 + 300 x 32.
    assert [(r["pid"], r["points"]) for r in page["ranking"]] == [(500, 36_224), (501, 256)]
    assert page["ranking"][0]["oom_score"] == 873


def test_nobody_can_be_killed(root: Path) -> None:
    page = asked(root, "/tenants/guard")
    assert (page["killable"], page["ranking"]) == (False, [])
    assert page["why"] == "its only process is out of reach: oom_score_adj is -1000"
    assert "nobody would be killed" in ask(root, "/tenants/guard").text
    assert "no process in it" in asked(root, "/tenants/idle")["why"]


def test_without_a_limit_it_is_the_nodes_shortage(root: Path) -> None:
    page = asked(root, "/tenants")
    assert (page["scope"], page["limit"]["asked"]) == ("node", "/tenants")
    assert any("has no limit" in note for note in page["notes"])


def test_a_machine_that_panics(tmp_path: Path) -> None:
    root = planted(tmp_path, {**HOST, "/proc/sys/vm/panic_on_oom": "1\n"})
    assert "vm.panic_on_oom is 1" in asked(root)["why"]
    assert asked(root, "/tenants/batch")["killable"]


def test_as_another_kernel_would(root: Path) -> None:
    page = asked(root, "--kernel", "2.6.32-431.el6")
    assert page["formula"]["name"] == "2.6.32-el6"
    assert not page["formula"]["is_own_kernel"]
    # 26624 x 1000 / 2621440 = 10, and 300; 522240 gives 199.
    assert [(r["pid"], r["points"]) for r in page["ranking"]] == [(500, 310), (400, 199), (501, 1)]
    text = " ".join(ask(root, "--kernel", "2.6.32-431.el6").text.split())
    assert "as Linux 2.6.32-el6 would count them (RHEL 6), in thousandths" in text


def test_without_its_processes_it_says_so(tmp_path: Path) -> None:
    root = planted(tmp_path, BASE)
    for path in ("/proc/2", "/proc/1"):
        for name in sorted((root / path[1:]).iterdir()):
            name.unlink()
    (root / "proc/meminfo").unlink()
    page = asked(root)
    assert page["missing"] == {"path": "/proc/meminfo", "why": "absent"}
    assert "ranking" in page["unread"]
    assert "Who would die cannot be told: /proc/meminfo" in ask(root).text


@pytest.mark.parametrize(
    ("swarm", "kernel", "hangs"),
    [
        ("1280x8MiB", "2.6.32-el6", True),
        ("80x128MiB", "2.6.32-el6", False),
        ("80x128MiB,uid=0", "2.6.32-el6", True),
        ("1280x8MiB", "3.10", False),
        ("80x128MiB,uid=0", "3.10.0-957.el7", False),
        ("1280x8MiB", "6.1", False),
    ],
)
def test_described_swarms(root: Path, swarm: str, kernel: str, hangs: bool) -> None:
    words = ("--swarm", swarm, "--limit", "8GiB", "--swap", "2GiB", "--kernel", kernel)
    page = asked(root, *words)
    assert (page["scope"], page["hangs"]) == ("described", hangs)
    said = ask(root, *words).text
    assert ("it hangs." in said, "it does not hang." in said) == (hangs, not hangs)


def test_a_described_swarm_that_fits(root: Path) -> None:
    words = ("--swarm", "10x8MiB", "--limit", "8GiB")
    assert "all of it fits: nobody is killed" in ask(root, *words).text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--swarm", "1280x8MiB"), "--swarm COUNTxSIZE and --limit SIZE belong together"),
        (("--limit", "8GiB"), "belong together"),
        (("--swarm", "8MiB", "--limit", "8GiB"), "expected COUNTxSIZE"),
        (("--swarm", "8x1MiB,nice=3", "--limit", "8GiB"), "expected COUNTxSIZE"),
        (("--swarm", "8x1MiB,adj=2000", "--limit", "8GiB"), "adj from -1000 to 1000"),
        (("--swarm", "8x8MB", "--limit", "8GiB"), "8MB"),
        (("--swarm", "9999999x8K", "--limit", "8GiB"), "at most 1,000,000 processes"),
        (("--swarm", "8x1M", "--limit", "8GiB", "/a"), "leave WORKLOAD"),
        (("--node", "/a"), "leave the WORKLOAD out"),
        (("--kernel", "2.6.18"), "not recomputed"),
        (("/nowhere",), "no workload '/nowhere'"),
    ],
)
def test_unusable_words(root: Path, words: tuple[str, ...], said: str) -> None:
    done = seawall("oom", "predict", "--root", str(root), *words)
    assert done.status == 2
    assert said in done.err.decode()
