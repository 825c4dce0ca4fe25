"""The page of the status: never half of anything, fixed, and bounded where nothing is left."""

import errno
import os
import select
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.guard.tell.decisions import Decisions
from seawall.guard.tell.fixed_page import Page, news_of

SIZE = 4096
SHM = Path("/dev/shm")


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """On a tmpfs where there is one: that is where the page lives, and where tearing is."""
    if not os.access(SHM, os.W_OK):
        yield tmp_path
        return
    folder = SHM / f"seawall-test-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def opened(folder: Path) -> Page:
    page = Page(str(folder), "status", SIZE)
    page.open()
    assert page.problem == ""
    return page


def test_a_page_is_as_long_whatever_is_written(tmp_path: Path) -> None:
    page = opened(tmp_path)
    assert page.write(b"short\n")
    assert (tmp_path / "status").read_bytes() == b"short\n" + b" " * (SIZE - 7) + b"\n"
    assert page.write(b"x" * 9000)
    assert (tmp_path / "status").read_bytes() == b"x" * (SIZE - 1) + b"\n"
    page.close()


def test_only_root_and_its_group_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        opened(tmp_path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "status").stat().st_mode) == 0o640


def test_no_file_is_made_after_the_start(tmp_path: Path) -> None:
    page = opened(tmp_path)
    before = {entry.stat().st_ino for entry in tmp_path.iterdir()}
    for number in range(10):
        assert page.write(b"%d\n" % number)
    assert {entry.stat().st_ino for entry in tmp_path.iterdir()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [".status.spare", "status"]
    page.close()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root")
    (tmp_path / "status").symlink_to(tmp_path / "passwd")
    page = Page(str(tmp_path), "status", SIZE)
    page.open()
    assert os.strerror(errno.ELOOP) in page.problem
    assert not page.write(b"mine")
    assert (tmp_path / "passwd").read_text() == "root"


def test_what_the_guard_before_wrote_is_read_until_the_first_write(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.write(b"it ended so\n")
    first.close()
    second = opened(tmp_path)
    assert (tmp_path / "status").read_bytes().startswith(b"it ended so\n")
    second.write(b"a new one\n")
    assert (tmp_path / "status").read_bytes().startswith(b"a new one\n")
    second.close()


def locked_kib() -> int:
    found = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmLck" in line]
    return int(found[0].split()[1])


@pytest.mark.parametrize("names", [["status"], [".status.spare"], ["status", ".status.spare"]])
def test_a_page_that_somebody_removed_is_made_anew(memory_folder: Path, names: list[str]) -> None:
    """What was removed is let go of: else each time two pages more would stay in memory."""
    page = opened(memory_folder)
    locked = locked_kib()
    for _ in range(3):
        for name in names:
            (memory_folder / name).unlink()
        for text in (b"one\n", b"two\n"):
            assert page.write(text)
            assert (memory_folder / "status").read_bytes().startswith(text)
            assert page.problem == ""
        words = f"{memory_folder}/status was removed under it: it is made anew"
        assert (list(news_of(page)), list(news_of(page))) == ([words], [])
        assert page.write(b"three\n")
        assert page.news == ""
    assert locked_kib() == locked
    page.close()
    assert not page.write(b"four\n")


def test_another_file_in_its_place_is_not_shown_in_turn_with_it(tmp_path: Path) -> None:
    page = opened(tmp_path)
    (tmp_path / "status").rename(tmp_path / "kept")
    (tmp_path / "status").write_bytes(b"another's\n")
    for number in range(4):
        assert page.write(b"%d\n" % number)
        assert (tmp_path / "status").read_bytes().startswith(b"%d\n" % number)
    page.close()


def test_it_comes_again_when_its_folder_can_be_made_again(tmp_path: Path) -> None:
    """What is lost is said once, however often it is tried."""
    folder = tmp_path / "run" / "second"
    folder.mkdir(parents=True)
    page = opened(folder)
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").touch()
    said = []
    for _ in range(3):
        assert not page.write(b"x")
        assert page.problem == f"{folder}/status: {os.strerror(errno.ENOTDIR)}"
        said.append(page.news)
        page.news = ""
    assert [bool(words) for words in said] == [True, False, False]
    (tmp_path / "run").unlink()
    assert page.write(b"x")
    assert (page.problem, page.news) == ("", "")
    assert (folder / "status").read_bytes().startswith(b"x")
    page.close()


def test_where_names_cannot_be_changed_it_is_made_anew_too(tmp_path: Path) -> None:
    page = opened(tmp_path)
    page._swap.is_possible, page._swap.problem = False, "renameat2: no"
    for text in (b"one\n", b"two\n"):
        (tmp_path / "status").unlink()
        assert page.write(text)
        assert (tmp_path / "status").read_bytes().startswith(text)
        assert page.problem == f"{tmp_path}/status: a reader may see half a page: renameat2: no"
    page.close()


READER = """
import os, sys, time
end, path = time.monotonic() + 1.2, sys.argv[1]
reads = torn = 0
print("ready", flush=True)
while time.monotonic() < end:
    fd = os.open(path, os.O_RDONLY)
    data = os.read(fd, 8192)
    os.close(fd)
    reads += 1
    torn += len(data) != 4096 or data[:4095] != data[:1] * 4095
print(reads, torn, flush=True)
"""


def test_a_busy_reader_never_sees_half_a_page(memory_folder: Path) -> None:
    """Thousands of reads and writes; written in place, one read in five was torn here."""
    page = opened(memory_folder)
    page.write(b"a" * SIZE)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", READER, page.path], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        writes = 0
        while not select.select([reader.stdout], [], [], 0.0005)[0]:
            page.write((b"a", b"b")[writes % 2] * SIZE)
            writes += 1
        reads, torn = map(int, reader.stdout.readline().split())
    page.close()
    assert torn == 0
    assert reads > 1000
    assert writes > 100


FULL = r"""
set -e
mount -t tmpfs -o size=64k none "$1"
head -c 65536 /dev/zero >"$1/filler" 2>/dev/null || true
exec "$2" -c '
import sys
from seawall.guard.tell.decisions import Decisions
from seawall.guard.tell.fixed_page import Page, news_of
page, decisions = Page(sys.argv[1], "status", 4096), Decisions(sys.argv[1])
page.open(), decisions.open()
print(page.write(b"x"), decisions.add(b"{}\n"))
print(page.problem); print(decisions.problem)
' "$1"
"""


def test_a_full_run_is_told_and_nothing_else_happens(tmp_path: Path) -> None:
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no mount namespace here: needs root or user namespaces")
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", FULL, "bash", str(tmp_path), sys.executable],
        env={"PYTHONPATH": "src", "PATH": os.environ["PATH"]}, capture_output=True, text=True,
        cwd=Path(__file__).parents[2], check=True,
    )  # fmt: skip
    first, page, decisions = done.stdout.splitlines()
    assert first == "False False"
    assert page == f"{tmp_path}/status: {os.strerror(errno.ENOSPC)}"
    assert decisions == f"{tmp_path}/decisions.jsonl: {os.strerror(errno.ENOSPC)}"


def test_blocks_are_taken_at_the_start(memory_folder: Path) -> None:
    """A node without memory writes its decisions into what was set aside."""
    decisions = Decisions(str(memory_folder))
    decisions.open()
    made = (memory_folder / "decisions.jsonl").stat()
    assert made.st_size == 0
    assert made.st_blocks * 512 >= decisions.size
    decisions.close()
