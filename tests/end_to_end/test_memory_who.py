"""``memory --who``: options that exclude each other, hosts without a trace, a live one."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import cgroups, own_run
from tests.end_to_end.innocents import ring_hog, why_no_rings
from tests.end_to_end.verbs import SOURCES, run
from tests.end_to_end.warm_verbs import seawall

MIB = 1 << 20
SCHEMA = json.loads((SOURCES / "seawall/views/schemas/memory.json").read_text())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--who", "--census"), "one at a time"),
        (("--who", "--watch"), "one at a time"),
        (("--for", "5"), "give --who with it"),
        (("--every", "5"), "give --watch with it"),
        (("--who", "--for", "30", "--timeout", "20"), "ends before --for 30"),
        (("--who", "--for", "5", "--timeout", "5"), "at least --timeout 8"),
        (("--who", "--for", "0.1"), "expected 1 to 3600 seconds"),
        (("--who", "--for", "x"), "seconds"),
        (("--watch", "--from", "x"), "about this machine"),
        (("--watch", "--timeout", "5"), "has no end"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], says: str) -> None:
    ran = seawall("memory", *words)
    assert ran.status == 2
    assert says in ran.err.decode()
    assert "Traceback" not in ran.err.decode()


def test_a_bundle_without_a_trace_says_what_would_give_one(tmp_path: Path) -> None:
    path = tmp_path / "b.bundle"
    seawall("capture", "--for", "2", "-o", str(path)).answered()
    for words in ((), ("--json",)):
        ran = seawall("memory", "--who", "--from", str(path), *words).answered()
        assert "seawall capture --who" in ran.text
        assert "nobody traced" in " ".join(ran.text.split())
    page = ran.document
    jsonschema.validate(page, SCHEMA)
    assert {"by_stack", "lost_events", "trace"} <= set(page["unread"])
    assert "claims" in page


def test_a_tree_of_files_is_no_machine_to_trace(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1048576 kB\nMemFree: 1024 kB\n")
    page = seawall("memory", "--who", "--root", str(tmp_path), "--json").answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["could_not_see"][0]["what"].startswith("who takes uncounted memory")


@pytest.mark.skipif(os.geteuid() == 0, reason="only for an ordinary user")
def test_an_ordinary_user_is_told_what_is_missing() -> None:
    _not_traced(seawall("memory", "--who", "--for", "1", "--json").answered().document)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take its rights away")
def test_root_without_capabilities_is_told_what_is_missing() -> None:
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    ran = run([*words, sys.executable, "-m", "seawall", "memory", "--who", "--for", "1", "--json"])
    _not_traced(ran.answered().document)


def _not_traced(page: dict[str, Any]) -> None:
    jsonschema.validate(page, SCHEMA)
    (row, *_) = page["could_not_see"]
    assert "root" in row["why"] or "CAP_SYS_ADMIN" in row["why"]
    assert "the other sources" in row["provide"]
    assert "trace" in page["unread"]


def traced(page: dict[str, Any]) -> dict[str, Any]:
    if "trace" not in page:
        pytest.skip(f"nothing can be traced here: {page['could_not_see'][0]['why']}")
    trace = page["trace"]
    assert isinstance(trace, dict)
    return trace


@pytest.mark.system
@pytest.mark.timeout(120)
def test_a_bundle_that_was_captured_with_who_names_him_elsewhere(tmp_path: Path) -> None:
    if why := own_run.missing() or why_no_rings() or cgroups.missing():
        pytest.skip(why)
    size = 128 * MIB
    path = str(tmp_path / "who.bundle")
    with own_run.own_run() as home, ring_hog(size, name="captured") as hog:
        capture = home.start("capture", "--who", "6", "--for", "2", "-o", path)
        try:
            time.sleep(3)
            hog.go()
            assert capture.wait(60) == 0
        finally:
            capture.kill()
            capture.communicate()
        page = seawall("memory", "--who", "--from", path, "--json").answered().document
        jsonschema.validate(page, SCHEMA)
        trace = traced(page)
        (row,) = [row for row in trace["held"] if row["cgroup"] == hog.path]
        assert row["what"] == "packet ring"
        assert row["processes"][0]["pid"] == hog.pid
        (stack,) = [row for row in page["by_stack"] if hog.path in row["workloads"]]
        assert "packet_set_ring" in stack["frames"]
        assert stack["bytes"] >= 0.98 * size  # and whoever else makes rings meanwhile
        if trace["capped_from_bytes"] is None:  # somebody else's memory came back meanwhile
            assert row["bytes"] == pytest.approx(size, rel=0.02)
        # The other verbs see it in the bundle as well.
        memory = seawall("memory", "--from", path, "--json").answered().document
        assert hog.path in {claim["cgroup"] for claim in memory["claims"]}
        text = seawall("memory", "--who", "--from", path).answered().text
        assert max(map(len, text.splitlines())) <= 80
        assert hog.path in text


@pytest.mark.system
@pytest.mark.timeout(120)
def test_ctrl_c_ends_it_early_with_what_is_known() -> None:
    if why := own_run.missing() or why_no_rings() or cgroups.missing():
        pytest.skip(why)
    with own_run.own_run() as home, ring_hog(64 * MIB, name="interrupted") as hog:
        who = home.start("memory", "--who", "--for", "60", "--json")
        try:
            time.sleep(3)
            hog.go()
            began = time.monotonic()
            os.killpg(who.pid, signal.SIGINT)  # as a terminal does: to all of them
            out, err = who.communicate(timeout=30)
        finally:
            who.kill()
            who.wait()
        assert who.returncode == 0, err.decode()
        assert time.monotonic() - began < 15
        page = json.loads(out)
        assert traced(page)["seconds"] < 30
        assert hog.path in {row["cgroup"] for row in page["trace"]["held"]}
