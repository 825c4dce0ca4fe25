# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain --from BLACKBOX FILE``: the report, then who held what no counter shows."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.blackbox.box_maker import END, HOG, Plot, World, small_box
from tests.end_to_end.explained_logs import LOGS
from tests.end_to_end.warm_verbs import seawall

from seawall.host.bundle_writer import write_bundle

BOOT_SECONDS = 900_000.0
OTHER = "memcg-v2-5.15.158-2-pve-php-fpm.txt"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("box") / "blackbox"
    small_box(path, uncounted_share=lambda _: 0.05)
    return str(path)


def log_of(folder: Path, stamp: str, pid: int = 4711, comm: str = "innocent\x1b[2J") -> str:
    """A call of the OOM killer as a serial console shows it; the box has the kill of 4711."""
    path = folder / "console.log"
    path.write_text(
        f"{stamp}java invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), "
        f"order=0, oom_score_adj=0\n"
        f"{stamp}oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"global_oom,task_memcg=/,task={comm},pid={pid},uid=0\n"
        f"{stamp}Out of memory: Killed process {pid} ({comm}) total-vm:1024kB, anon-rss:512kB, "
        f"file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n"
    )
    return str(path)


def test_who_held_it_stands_below_the_report(box: str, tmp_path: Path) -> None:
    """By the kill that both have, whatever the log's clock says."""
    log = log_of(tmp_path, "Nov 23 11:00:05 node-17 kernel: ")
    text = seawall("oom", "explain", "--from", box, log).answered().text
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.splitlines())) <= 80
    report, _, then = text.partition("Uncounted memory at report 1, from the black box (2026-11-23")
    assert "innocent" in report
    assert "was in no counter" in then
    assert HOG in then
    assert "by its own clock" not in text
    assert text.count("Uncounted memory at") == 1


def test_as_json(box: str, tmp_path: Path) -> None:
    log = log_of(tmp_path, "Nov 23 11:00:05 node-17 kernel: ")
    page = seawall("oom", "explain", "--from", box, log, "--json").answered().document
    schema = json.loads((files("seawall.views") / "schemas/oom-explain.json").read_text())
    jsonschema.validate(page, schema)
    then = page["uncounted_then"]
    assert then["of"] == "report 1"
    assert then["at"].startswith("2026-11-23T10:00:0")
    assert any(claim["holder"] == HOG for claim in then["claims"])
    assert [report["killed"][0]["pid"] for report in page["reports"]] == [4711]


def test_by_the_seconds_of_the_kernels_clock_where_the_kill_is_not_in_the_box(
    box: str, tmp_path: Path
) -> None:
    log = log_of(tmp_path, f"[{BOOT_SECONDS - 8:.6f}] ", pid=99, comm="java")
    text = seawall("oom", "explain", "--from", box, log).answered().text
    assert "Uncounted memory at report 1, by its own clock, from the black box" in " ".join(
        text.split()
    )
    assert HOG in text


@pytest.mark.parametrize("stamp", ["Nov 23 11:00:05 node-17 kernel: ", "", f"[{77:.6f}] ",
                                   f"{END + 86_400:.6f} node-17 kernel: "])  # fmt: skip
def test_of_another_time_nobody_is_named(box: str, tmp_path: Path, stamp: str) -> None:
    log = log_of(tmp_path, stamp, pid=99, comm="java")
    text = seawall("oom", "explain", "--from", box, log).answered().text
    assert HOG not in text
    assert "Uncounted memory at" not in text
    assert "who held uncounted memory then" in text
    assert "--at TIME" in text


def test_the_moment_can_be_named(box: str, tmp_path: Path) -> None:
    log = log_of(tmp_path, "", pid=99, comm="java")
    text = seawall("oom", "explain", "--from", box, "--at", "-5s", log).answered().text
    assert "Uncounted memory at --at, from the black box" in text
    assert HOG in text


def test_anything_else_beside_a_file_is_refused(box: str, tmp_path: Path) -> None:
    bundle = tmp_path / "b.tgz"
    with bundle.open("wb") as file:
        write_bundle([World(Plot()).round("full", END)], {"tool_version": "test"}, file)
    refused = seawall("oom", "explain", "--from", str(bundle), str(LOGS / OTHER))
    assert refused.status == 2
    assert b"give one of them" in refused.err
    assert b"Traceback" not in refused.err
    none = seawall("oom", "explain", "--from", str(tmp_path / "no"), str(LOGS / OTHER))
    assert none.status == 2
