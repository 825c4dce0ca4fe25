"""Every verb as a user types it: ``verbs.seawall`` starts an interpreter, ``seawall`` forks one."""

import json
import os
import re
import stat
import subprocess
import sys
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import verbs
from tests.end_to_end.verbs import Ran
from tests.end_to_end.warm_verbs import seawall

from seawall.cli.main import main

ROOT = Path(__file__).parents[2]
READING_VERBS = ("why", "memory", "pods", "numbers", "cache", "gpu")


def answer(*words: str) -> Any:
    return held_against_its_schema(seawall(*words, "--json"))


def held_against_its_schema(ran: Ran) -> Any:
    document = ran.answered().document
    name = document["schema"].partition(".")[2].partition("/")[0]
    name = "why" if name == "check" else name
    schema = json.loads((files("seawall.views") / f"schemas/{name}.json").read_text())
    jsonschema.validate(document, schema)
    return document


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("bundle") / "here.bundle")
    done = verbs.seawall("capture", "-o", path, "--for", "2.5").answered()
    assert done.text.strip() == path
    assert "pass 2 of 2" in done.err.decode()
    return path


@pytest.mark.parametrize("verb", READING_VERBS)
def test_live_documents_follow_their_schema(verb: str) -> None:
    document = held_against_its_schema(verbs.seawall(verb, "--json"))
    assert document["host"]["kernel"] == os.uname().release
    assert document["host"]["page_size"] == os.sysconf("SC_PAGE_SIZE")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["taken_at"])


@pytest.mark.parametrize("verb", READING_VERBS)
def test_bundle_answers_like_the_machine_it_came_from(verb: str, bundle: str) -> None:
    document = answer(verb, "--from", bundle)
    assert document["host"]["kernel"] == os.uname().release
    if verb == "why":
        assert document["window_seconds"] >= 2
        blind = {f["id"] for f in document["findings"] if f["verdict"] == "blind"}
        live = {f["id"] for f in answer("why")["findings"] if f["verdict"] == "blind"}
        assert blind == live, "a bundle sees what the machine saw"


@pytest.mark.parametrize("verb", READING_VERBS)
def test_text_fits_80_columns_and_ends_with_what_was_not_seen(verb: str, bundle: str) -> None:
    whole = ["--whole"] if verb == "why" else []
    text = seawall(verb, "--from", bundle, *whole).text
    commands = re.compile(r"^(  confirm |          )(grep|cat|echo|sort|for|ps|awk|head|sudo|ls) ")
    long = [line for line in text.splitlines() if len(line) > 80 and not commands.match(line)]
    assert not [line for line in long if not re.search(r"\S{60}", line)], long
    assert "Could not see" in text
    assert "\x1b" not in text
    assert "\x1b[" in seawall(verb, "--from", bundle, "--color", "always").text


def test_why_says_a_number_first() -> None:
    first = verbs.seawall("why").text.splitlines()[0]
    assert re.search(r"  Linux \S+  [\d.]+ [MG]iB, [\d.]+ [MG]iB left", first)


def test_rates_have_a_window_of_two_seconds() -> None:
    assert answer("why")["window_seconds"] >= 2.0
    assert re.search(r"\b2\.\d s window", seawall("why", "--whole").text)


def test_check_of_a_rate_waits_for_its_window() -> None:
    """Of its one rule too: nothing else has read the clock before."""
    page = json.loads(seawall("check", "SW111", "--json").out)
    assert page["window_seconds"] >= 2
    assert [finding["verdict"] for finding in page["findings"]] != ["blind"]


def test_capture_says_where_as_json(tmp_path: Path) -> None:
    document = answer("capture", "-o", str(tmp_path / "b"), "--for", "2")
    assert document["path"] == str(tmp_path / "b")
    assert document["bytes"] == os.path.getsize(tmp_path / "b")
    assert document["rounds"] == 2


def test_bundle_is_private_small_and_legible(bundle: str) -> None:
    assert stat.S_IMODE(os.stat(bundle).st_mode) == 0o600
    assert os.path.getsize(bundle) < 5 << 20
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
    assert {"1/files/proc/meminfo", "2/files/proc/meminfo"} <= set(names)
    assert not os.path.exists(bundle + ".part")


def test_bundle_holds_no_secret(tmp_path: Path) -> None:
    child = subprocess.Popen(
        ["/bin/sleep", "60"], env={"DB_PASSWORD": "hidden-in-environ"}
    )  # fmt: skip
    teller = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "hidden-in-arg"]
    )
    try:
        path = tmp_path / "b"
        with path.open("wb") as out:
            subprocess.run(
                [sys.executable, "-m", "seawall", "capture", "-o", "-", "--for", "2"],
                stdout=out, stderr=subprocess.PIPE, timeout=60, check=True,
                env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "TOKEN": "hidden-in-own"},
            )  # fmt: skip
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member)
                assert content is not None
                assert b"hidden-in-" not in content.read(), member.name
    finally:
        for process in (child, teller):
            process.kill()
            process.wait()


def test_bundle_through_a_pipe(bundle: str) -> None:
    with Path(bundle).open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "seawall", "why", "--from", "-", "--json"], stdin=stdin,
            capture_output=True, env=verbs.ENVIRONMENT, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout)["findings"]


def test_unpacked_bundle_is_a_root(bundle: str, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", bundle, "-C", tmp_path], check=True)
    packed, unpacked = answer("why", "--from", bundle), answer("why", "--root", str(tmp_path))
    assert packed == unpacked


def test_tree_of_files_is_a_root(tmp_path: Path) -> None:
    """What sosreport leaves behind: a few files, no clock, no second moment."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_bytes(Path("/proc/meminfo").read_bytes())
    (tmp_path / "proc/vmstat").write_bytes(Path("/proc/vmstat").read_bytes())
    document = answer("why", "--root", str(tmp_path))
    assert document["window_seconds"] is None
    rates = [row for row in document["could_not_see"] if "rate" in row["why"]]
    assert rates
    assert document["host"]["page_size"] == os.sysconf("SC_PAGE_SIZE")


def test_what_a_root_cannot_answer_needs_the_node_and_no_right(tmp_path: Path) -> None:
    """In a pod of ``kubectl debug`` its reader is root with every capability already."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_bytes(Path("/proc/meminfo").read_bytes())
    rows = answer("why", "--root", str(tmp_path))["could_not_see"]
    here = [row for row in rows if "SW303" in row["what"]]
    assert [row["provide"] for row in here] == [
        "seawall on the node itself, without --root: processes are asked, no files"
    ]
    assert "asked only on the machine itself" in here[0]["why"]


@pytest.mark.system
def test_the_whole_machine_as_a_root_lacks_no_right(tmp_path: Path) -> None:
    """As ``kubectl debug node/N --profile=sysadmin`` has it; the mount ends with its namespace."""
    program = (
        f'mount --rbind / "{tmp_path}" && exec {sys.executable} -m seawall why --json --root '
        f'"{tmp_path}"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", program], capture_output=True, text=True, check=False
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["could_not_see"]
    here = [row for row in rows if "asked only on the machine itself" in row["why"]]
    assert {"SW303", "SW405"} <= {word for row in here for word in row["what"].split()}
    assert not [row for row in here if "CAP_" in row["provide"]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["why", "--from", "/nonexistent"], "/nonexistent"),
        (["why", "--from", "/proc/meminfo"], "bundle"),
        (["why", "--root", "/nonexistent"], "not a folder"),
        (["why", "--root", "/etc"], "no proc folder"),
        (["why", "--rules", "/nonexistent"], "no such file"),
        (["why", "--timeout", "0"], "--timeout"),
        (["why", "--timeout", "x"], "--timeout"),
        (["why", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
        (["rules", "show", "SW000"], "no such rule"),
        (["check", "SW000"], "no such rule"),
        (["capture", "--for", "30", "--timeout", "5", "-o", "/tmp/x"], "longer --timeout"),
        (["capture", "--for", "2", "-o", "/nonexistent/dir/x"], "/nonexistent"),
        (["capture", "-o", "/dev/null"], "no plain file"),
        (["capture", "-o", "/tmp/"], "name of a file"),
        (["capture", "-o", ""], "name of a file"),
        (["capture", "--for", "1", "-o", "/tmp/x"], "expected 2 to 3600"),
        (["capture", "--timeout", "inf", "-o", "/tmp/x"], "expected seconds"),
        (["why", "--timeout", "nan"], "expected seconds"),
    ],
)
def test_unusable_input_is_one_line_and_2(words: list[str], expected: str) -> None:
    done = seawall(*words)
    error = done.err.decode()
    assert done.status == 2, error
    assert expected in error
    assert "Traceback" not in error


def test_hostile_words_reach_no_terminal_raw() -> None:
    done = seawall("why", "--from", "/no/\x1b[31m\nsuch")
    assert done.status == 2
    assert b"\x1b" not in done.err
    assert done.err.count(b"\n") == 1


def test_rules_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    listed = seawall("rules", "list").text.splitlines()
    document = answer("rules", "list")
    assert len(listed) == len(document["rules"])
    for rule in document["rules"]:
        assert main(["rules", "show", rule["id"].lower()]) == 0  # in processes of their own: 8 s
        assert rule["title"] in capsys.readouterr().out
    example = seawall("rules", "show", "SW108", "--example").text
    assert "verdict: fires" in example
    assert "=== /proc/meminfo" in example


def test_check_speaks_node_problem_detector(tmp_path: Path) -> None:
    def npd(meminfo: str | None) -> tuple[int, str]:
        (tmp_path / "proc").mkdir(exist_ok=True)
        (tmp_path / "proc/meminfo").unlink(missing_ok=True)
        if meminfo is not None:
            (tmp_path / "proc/meminfo").write_text(meminfo)
        done = seawall("check", "SW108", "--npd", "--root", str(tmp_path))
        return done.status, done.text

    head = "MemTotal: 33554432 kB\nMemFree: 1 kB\nHugepagesize: 2048 kB\n"
    for meminfo, status in (
        (head + "HugePages_Free: 8000\n", 1), (head + "HugePages_Free: 1\n", 0), (None, 2),
    ):  # fmt: skip
        code, line = npd(meminfo)
        assert code == status, line
        assert line.count("\n") == 1
        assert len(line) <= 81


def test_fail_on_tells_fires_from_blind(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    root = ["--root", str(tmp_path)]
    assert seawall("check", "SW108", "--fail-on", "warning", *root).status == 11
    assert seawall("check", "SW108", "--fail-on", "critical", *root).status == 0
    (tmp_path / "proc/meminfo").write_text(
        "MemTotal: 33554432 kB\nMemFree: 1 kB\nHugepagesize: 2048 kB\nHugePages_Free: 8000\n"
    )
    assert seawall("check", "SW108", "--fail-on", "warning", *root).status == 10
    assert seawall("check", "SW108", *root).status == 0


def test_mute_is_counted_not_shown(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(
        "MemTotal: 33554432 kB\nMemFree: 1 kB\nHugepagesize: 2048 kB\nHugePages_Free: 8000\n"
    )
    rules = tmp_path / "rules.toml"
    rules.write_text('[SW108]\nmute = true\nreason = "planned"\nuntil = 2999-01-01\n')
    words = ["why", "--root", str(tmp_path), "--rules", str(rules)]
    document = answer(*words)
    assert document["muted"] == [
        {"id": "SW108", "key": "SW108", "reason": "planned (until 2999-01-01)"}
    ]
    text = seawall(*words, "--whole").text
    assert "1 muted" in text
    assert "huge pages that nobody uses" not in text


def test_reader_that_leaves_early_is_no_error() -> None:
    shell = f"{sys.executable} -m seawall why | head -1"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""
