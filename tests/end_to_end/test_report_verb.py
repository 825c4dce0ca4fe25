"""``seawall report --html``: from a bundle, a black box, live; bad input; nothing half written."""

import gzip
import os
import re
from pathlib import Path

import pytest
from tests.end_to_end.warm_verbs import seawall
from tests.views.test_incident_html import outline

REPOSITORY = Path(__file__).resolve().parents[2]
INCIDENTS = REPOSITORY / "docs/incidents"
RECORDED = REPOSITORY / "tests/outside/recordings/node.box.gz"
BYTES_MOST = 500_000


def report(tmp_path: Path, *words: str) -> tuple[str, bytes]:
    """Text of the page, and the page."""
    file = tmp_path / "page.html"
    ran = seawall("report", *words, "--html", str(file)).answered()
    assert ran.text == f"{file}: {file.stat().st_size / 1024:.0f} KiB\n"
    data = file.read_bytes()
    assert len(data) < BYTES_MOST
    return re.sub(r"\s+", " ", outline(data).text), data


def test_the_first_incident_on_one_page(tmp_path: Path) -> None:
    text, data = report(tmp_path, "--from", str(INCIDENTS / "gpu-node-dies/bundle"))
    assert "CRITICAL the NVIDIA driver holds at most 33.0 GiB that no cgroup counts [SW103]" in text
    assert "sudo find /proc/[0-9]*/fd -lname '/dev/nvidia*'" in text
    assert "33.8 GiB of 60.7 GiB is uncounted memory" in text
    assert "kernel log and journal" in text
    assert "could not be seen" in text
    assert "Nothing in this time." not in text, (
        "decisions were not looked for in vain: none are held"
    )
    assert data.count(b"<details>") >= 6
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


def test_a_container_that_hangs_and_what_to_do(tmp_path: Path) -> None:
    text, _ = report(tmp_path, "--from", str(INCIDENTS / "container-hangs/bundle.tar.gz"))
    assert "docker update --memory 10240m" in text
    assert "at its limit, in an OOM kill" in text


def test_a_black_box_has_its_last_minutes_and_decisions(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.write_bytes(
        gzip.decompress((REPOSITORY / "tests/outside/recordings/node.box.gz").read_bytes())
    )
    text, data = report(tmp_path, "--from", str(box))
    assert data.count(b'class="chart"') == 3
    assert b'class="mark kill"' in data
    assert b'class="curve"' in data
    assert "Ends batch/hog/ring: it holds 900 MiB outside." in text
    assert "2 lines of the journal could not be read" in text, "this box's lines are not whole"
    assert "\x1b" not in text


def test_a_moment_of_a_black_box(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.write_bytes(
        gzip.decompress((REPOSITORY / "tests/outside/recordings/node.box.gz").read_bytes())
    )
    text, data = report(tmp_path, "--from", str(box), "--at", "-100s")
    assert "2026-11-23T09:58:51Z" in text
    assert b'class="mark' not in data, "what came later is not on the page"


def test_this_machine(tmp_path: Path) -> None:
    text, _ = report(tmp_path)
    assert "this machine itself" in text
    assert "Where the memory is" in text
    assert "MemTotal less all lines" in text
    assert "What could not be seen" in text


def test_stdout_for_ssh() -> None:
    ran = seawall(
        "report", "--from", str(INCIDENTS / "page-cache/bundle"), "--html", "-"
    ).answered()
    assert ran.out.startswith(b"<!DOCTYPE html>")
    assert ran.out.endswith(b"</html>\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "the following arguments are required: --html"),
        (
            ["--html", "/nonexistent/page.html"],
            "--html /nonexistent/page.html: /nonexistent",
        ),
        (["--html", "/dev/null"], "--html /dev/null: is there and is no plain file"),
        (["--html", ""], "--html '': expected the name of a file"),
        (["--html", "x.html", "--from", "/nonexistent"], "/nonexistent"),
        (["--html", "x.html", "--json"], "--json"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = seawall("report", *words)
    assert ran.status == 2
    assert expected in ran.err.decode()
    assert "Traceback" not in ran.err.decode()
    assert os.listdir(tmp_path) == []


def test_an_older_page_is_written_over_and_a_black_box_never(tmp_path: Path) -> None:
    bundle = str(INCIDENTS / "page-cache/bundle")
    page = tmp_path / "page.html"
    page.write_text("old")
    seawall("report", "--from", bundle, "--html", str(page)).answered()
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")
    box = tmp_path / "box"
    data = gzip.decompress(RECORDED.read_bytes())
    box.write_bytes(data)
    ran = seawall("report", "--from", bundle, "--html", str(box))
    assert ran.status == 2
    assert box.read_bytes() == data
