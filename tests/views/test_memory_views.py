"""``seawall memory`` as text and as JSON, from files of real kernels and from hand-made hosts."""

import json
import os
import re
from argparse import Namespace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_ledger import meminfo, zoneinfo
from tests.accounts.test_ledger_sources import HALF, node
from tests.case_host import parse_case
from tests.end_to_end.warm_verbs import seawall
from tests.readings.kernel_files import FILES, KERNELS, SEED_5_10

from seawall.cli import base_file
from seawall.problems import UsageProblem
from seawall.readings import base
from seawall.readings.base import Base
from seawall.readings.snapshot import Snapshot
from seawall.views.memory_text import whole_bar
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/memory.json").read_text())
INCIDENTS = sorted((Path(__file__).parents[2] / "docs/incidents").glob("*/bundle*"))
BOOT = b"00000000-0000-4000-8000-000000000000"
BASE = Base(
    boot_id=BOOT.decode(), residual_bytes=123 << 20, residual_error_bytes=5,
    learned_at_unix_seconds=1_700_000_000.0, how="asked",
)  # fmt: skip


def answer(*words: str) -> dict[str, Any]:
    """The document, held against its schema and against its own arithmetic."""
    page = seawall("memory", "--json", *words).answered().document
    jsonschema.validate(page, SCHEMA)
    for part in (page, *page.get("nodes", ())):
        if "lines" in part:
            lines = sum(line["bytes"] for line in part["lines"])
            assert lines + part["residual_bytes"] == part["total_bytes"]
    assert set(SCHEMA["properties"]) >= set(page), "every field is in the schema"
    return page


def machine(tmp_path: Path, *sections: tuple[str, bytes]) -> str:
    """A tree of files for --root."""
    for path, body in sections:
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body + b"\n")
    return str(tmp_path)


@pytest.mark.parametrize("kernel", KERNELS)
def test_document_of_every_kernel(kernel: str) -> None:
    page = answer("--root", str(FILES / kernel))
    assert {"base_bytes", "base"} <= set(page["unread"])
    assert "base_bytes" not in page


@pytest.mark.parametrize("path", INCIDENTS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_document_of_every_incident(path: Path) -> None:
    page = answer("--from", str(path))
    assert ("total_bytes" in page) != ("total_bytes" in page["unread"])


def test_document_of_this_machine() -> None:
    page = answer()
    assert page["total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert page["window_seconds"] is None
    assert all(line["source"] for line in page["lines"])


def test_machine_without_meminfo_has_no_ledger_and_says_so(tmp_path: Path) -> None:
    root = machine(tmp_path, ("/proc/uptime", b"1.0 1.0"))
    page = answer("--root", root)
    assert {"total_bytes", "lines", "residual_bytes", "nodes"} <= set(page["unread"])
    assert not {"total_bytes", "lines", "residual_bytes"} & set(page)
    assert "No ledger: /proc/meminfo" in seawall("memory", "--root", root).answered().text


def test_base_of_this_boot_is_shown_and_that_of_another_is_not(tmp_path: Path) -> None:
    files_of_it = [("/proc/meminfo", meminfo()), zoneinfo(), (base.BOOT_ID, BOOT),
                   (base.PATH, base.document_of(BASE))]  # fmt: skip
    root = machine(tmp_path, *files_of_it)
    page = answer("--root", root)
    assert page["base_bytes"] == 123 << 20
    assert page["base"]["learned_at"] == "2023-11-14T22:13:20Z"
    text = seawall("memory", "--root", root).answered().text
    assert "Normal for this boot: 123 MiB, learned 2023-11-14T22:13:20Z as asked" in text
    machine(tmp_path, (base.BOOT_ID, b"another"))
    assert "base_bytes" not in answer("--root", root)


# --- text -------------------------------------------------------------------------------


def rows_of(text: str) -> dict[str, str]:
    """name -> the row, of the table of lines."""
    found = re.finditer(
        r"^(\S) +(-?[\d.]+ \w+) +([\d.]+ %)  ([#.]{12})  (.{21}) ", text, re.MULTILINE
    )
    return {row[5].strip(): row[0] for row in found}


@pytest.mark.parametrize("kernel", KERNELS)
def test_text_fits_80_columns(kernel: str) -> None:
    text = seawall("memory", "--root", str(FILES / kernel)).answered().text
    assert not [line for line in text.splitlines() if len(line) > 80]
    assert "\x1b" not in text
    assert "Could not see" in text


def test_text_of_the_first_seed() -> None:
    text = seawall("memory", "--root", str(FILES / SEED_5_10)).answered().text
    assert re.search(
        r"^33\.8 GiB of 60\.7 GiB is uncounted memory \(\+- 8\.5 GiB\)", text, re.MULTILINE
    )
    bar = next(line for line in text.splitlines() if line.startswith("[") and line.endswith("]"))
    assert (len(bar), bar.count("?"), bar.count("A")) == (80, 43, 34)
    rows = list(rows_of(text))
    assert rows[:2] == ["uncounted", "anonymous"]
    assert rows[-1] == "free"
    assert "vmalloc, at most 970 MiB: " in text
    assert "at most 33.0 GiB: the NVIDIA driver (buffers of a driver, upper" in text


def test_each_line_has_its_source(tmp_path: Path) -> None:
    root = machine(tmp_path, ("/proc/meminfo", meminfo()), zoneinfo())
    text = seawall("memory", "--root", root).answered().text
    shown = rows_of(text)
    assert set(shown) == {
        "anonymous", "free", "hugetlb", "uncounted", "tmpfs and shared", "page cache",
        "slab", "page tables", "vmalloc", "kernel stacks", "kernel misc", "percpu", "buffers",
    }  # fmt: skip
    for name, row in shown.items():
        line = next(line for line in text.splitlines() if line.startswith(row))
        assert len(line) > len(row), name
    assert "Smaller: per-cpu lists 512 KiB." in text
    assert shown["hugetlb"].startswith("H  2.0 GiB")


def test_nodes_have_a_bar_each_where_there_are_two(tmp_path: Path) -> None:
    one = machine(tmp_path / "1", ("/proc/meminfo", meminfo()), *node(0, b"0-3", **HALF))
    assert "NUMA nodes" not in seawall("memory", "--root", one).answered().text
    both = machine(
        tmp_path / "2", ("/proc/meminfo", meminfo()),
        *node(0, b"0-3", **HALF), *node(1, b"", **HALF),
    )  # fmt: skip
    text = seawall("memory", "--root", both).answered().text
    assert "node 1, without CPUs: 8.0 GiB, 2.0 GiB free" in text
    assert text.count("]\n") == 3


def test_bar_is_right_within_a_character() -> None:
    paper = Console(width=12)
    assert whole_bar([("A", 50), ("?", 25), (".", 25)], 100, paper) == "[AAAAA???..]"
    assert whole_bar([("A", 300)], 100, paper) == "[AAAAAAAAAA]"
    assert whole_bar([("A", -5), ("B", 100)], 100, paper) == "[BBBBBBBBBB]"
    assert whole_bar([("A", 1)], 0, paper) == "[AAAAAAAAAA]"
    assert whole_bar([("A", 1) for _ in range(100)], 100, paper) == "[AAAAAAAAAA]"


# --- the base ---------------------------------------------------------------------------


class OneMoment:
    """What base_file needs of a source."""

    live = object()

    def __init__(self, *sections: bytes) -> None:
        text = b"why: t\n=== /proc/meminfo\n%s\n" % meminfo(AnonPages=(7 << 20) + 380_000)
        text += b"=== %s\n%s" % (zoneinfo()[0].encode(), zoneinfo()[1])
        self.first = Snapshot(parse_case(text + b"".join(sections)).rounds[0])


CGROUP = (
    b"=== /proc/1/mountinfo\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    b"=== /sys/fs/cgroup/cgroup.controllers\nmemory\n=== /sys/fs/cgroup/cgroup.procs\n2\n"
    b"=== /proc/2/comm\nkthreadd\n"
    b"=== /sys/fs/cgroup/init.scope/cgroup.procs\n1\n"
    b"=== /sys/fs/cgroup/system.slice/systemd-udevd.service/udev/cgroup.procs\n8\n"
)


def process_in(path: str) -> bytes:
    return b"=== /sys/fs/cgroup%s/cgroup.procs\n9\n" % path.encode()


POD = (
    b"=== /sys/fs/cgroup/kubepods/pod1858680e-b044-4fd5-9dd4-f137e30e2180/%s/cgroup.procs\n7\n"
    % (b"a" * 64)
)
HERE = Namespace(bundle=None, root=None)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the base goes instead of /run."""
    path = tmp_path / "run/base.json"
    write = base_file.write_base
    monkeypatch.setattr(base_file, "write_base", lambda b: write(b, str(path)))
    monkeypatch.setattr(base_file.os, "geteuid", lambda: 0)
    return path


def test_base_is_learned_when_only_the_hosts_services_run(written: Path) -> None:
    learned = base_file.learn_if_idle(OneMoment(CGROUP), HERE)  # type: ignore[arg-type]
    assert learned
    assert base.parse(written.read_bytes()) == learned
    assert learned.how == "no tenant"
    assert learned.boot_id == BOOT.decode()
    assert (written.stat().st_mode & 0o777, written.parent.stat().st_mode & 0o777) == (
        0o640, 0o755,
    )  # fmt: skip
    assert [path.name for path in written.parent.iterdir()] == ["base.json"]


@pytest.mark.parametrize(
    ("sections", "arguments"),
    [
        ((CGROUP, POD), HERE),
        ((CGROUP, process_in("/user.slice/user-0.slice/session-1.scope")), HERE),
        ((CGROUP, process_in("/slurm/uid_7/job_8")), HERE),
        ((CGROUP, process_in("/system.slice/slurmstepd.scope/job_8/step_0")), HERE),
        ((CGROUP, process_in("/process_api/1cea")), HERE),
        ((CGROUP, b"=== /sys/fs/cgroup/kubepods/cgroup.procs !refused\n"), HERE),
        ((CGROUP, b"=== /proc/2/comm\nsh\n"), HERE),
        ((CGROUP, b"=== /run/seawall/base.json\n" + base.document_of(BASE)), HERE),
        ((CGROUP,), Namespace(bundle="x", root=None)),
        ((CGROUP,), Namespace(bundle=None, root="/host")),
        ((), HERE),  # workloads are not known
    ],
    ids=[
        "a pod runs",
        "a login",
        "Slurm",
        "Slurm on v2",
        "plain",
        "unread",
        "in a container",
        "there is one",
        "a bundle",
        "another root",
        "blind",
    ],
)
def test_base_is_not_learned_otherwise(
    written: Path, sections: tuple[bytes, ...], arguments: Namespace
) -> None:
    assert base_file.learn_if_idle(OneMoment(*sections), arguments) is None  # type: ignore[arg-type]
    assert not written.exists()


def test_a_large_residual_is_never_normal_by_itself(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_file, "NORMAL_MOST_FRACTION", 1e-9)
    assert base_file.learn_if_idle(OneMoment(CGROUP), HERE) is None  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_written_fails_no_verb(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.parent.write_text("a file, where a folder should be")
    assert base_file.learn_if_idle(OneMoment(CGROUP), HERE) is None  # type: ignore[arg-type]
    with pytest.raises(UsageProblem, match=r"base\.json.*run as root"):
        base_file.learn_base(OneMoment(CGROUP).first, "asked")


def test_learning_is_about_this_machine_only() -> None:
    for words in (("--root", "/host"), ("--from", "x.bundle")):
        ran = seawall("memory", "--learn-base", *words)
        assert ran.status == 2
        assert b"about this machine" in ran.err
