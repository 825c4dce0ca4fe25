"""The bundles of docs/incidents are whole, and say of each path where it comes from."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from seawall.host.bundle import Bundle, open_bundle
from seawall.host.host import Unread

INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
BUNDLES = sorted(p.parent for p in INCIDENTS.glob("*/*/MANIFEST.json"))
ARCHIVE = INCIDENTS / "container-hangs/bundle.tar.gz"
KINDS = {"published", "converted", "constructed"}


def named(path: Path) -> str:
    return str(path.relative_to(INCIDENTS))


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "MANIFEST.json").read_text())


def answers_of(folder: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/answers.json"))]


def files_of(folder: Path) -> set[str]:
    """Every path of the machine of which a file is in the bundle."""
    found = (path for path in folder.glob("[0-9]*/files/**/*") if path.is_file())
    return {"/" + "/".join(path.relative_to(folder).parts[2:]) for path in found}


def pattern_of(path: str) -> re.Pattern[str]:
    """``*`` is one part of a path, ``**`` any number of them."""
    parts = re.split(r"(\*\*|\*)", path)
    words = {"*": "[^/]+", "**": ".+"}
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts) + r"\Z")


def test_every_incident_has_a_page_and_a_bundle() -> None:
    folders = {path for path in INCIDENTS.iterdir() if path.is_dir()}
    assert len(folders) == 4
    for folder in folders:
        assert (folder / "README.md").exists()
        assert any(folder in bundle.parents for bundle in [*BUNDLES, ARCHIVE])


@pytest.mark.parametrize("folder", BUNDLES, ids=named)
def test_provenance_names_every_file_and_nothing_else(folder: Path) -> None:
    provenance = manifest_of(folder)["provenance"]
    assert set(provenance.values()) <= KINDS
    asked = files_of(folder)
    listed = {path for answers in answers_of(folder) for path in answers["names"]}
    patterns = {path: pattern_of(path) for path in provenance}
    bare = [path for path in asked if not any(p.match(path) for p in patterns.values())]
    assert not bare
    idle = [path for path, p in patterns.items() if not any(map(p.match, asked | listed))]
    assert not idle


@pytest.mark.parametrize("folder", BUNDLES, ids=named)
def test_folders_list_the_files_that_are_there(folder: Path) -> None:
    """A bundle that was edited by hand may hold a file that no walk would find."""
    for answers in answers_of(folder):
        names = answers["names"]
        for path in files_of(folder):
            parent, _, name = path.rpartition("/")
            assert name in names[parent], path
        for path, listed in names.items():
            for name in listed:
                child = f"{path}/{name.rstrip('/')}"
                assert not name.endswith("/") or child in names or path.startswith(("/run", "/var"))


@pytest.mark.parametrize("folder", BUNDLES, ids=named)
def test_what_was_made_up_looks_made_up(folder: Path) -> None:
    boot_id = next(folder.rglob("boot_id")).read_text()
    assert boot_id.startswith("5eed")


def test_published_meminfo_is_as_published() -> None:
    """Two sums that the report itself prints or implies."""
    text = (INCIDENTS / "gpu-node-dies/bundle/1/files/proc/meminfo").read_text()
    assert len(text.splitlines()) == 52
    kb = {m[1]: int(m[2]) for m in re.finditer(r"^(\S+): +(\d+) kB$", text, re.MULTILINE)}
    assert kb["SReclaimable"] + kb["SUnreclaim"] == kb["Slab"]
    assert kb["CommitLimit"] == kb["MemTotal"] // 2
    counted = ("MemFree", "Active", "Inactive", "Slab", "KernelStack", "PageTables", "Percpu")
    rest = kb["MemTotal"] - sum(kb[name] for name in counted)
    assert rest / 2**20 == pytest.approx(33.77, abs=0.01)


def test_the_archive_is_what_its_builder_builds() -> None:
    """Compared by content: compressors differ, and an archive holds the time it was written."""
    built = runpy.run_path(str(ARCHIVE.parent / "build.py"))
    bundle = open_bundle(str(ARCHIVE))
    assert {k: bundle.manifest[k] for k in built["MANIFEST"]} == built["MANIFEST"]
    rounds = built["rounds"]()
    assert len(bundle.rounds) == len(rounds)
    for host, round_ in zip(bundle.rounds, rounds, strict=True):
        assert {path: host.read(path) for path in round_.files} == round_.files
        assert {path: host.names(path) for path in round_.names} == round_.names
        assert {(p, a): host.ask(p, a) for p, a in round_.probes} == round_.probes


def test_bundles_are_small() -> None:
    bytes_ = sum(path.stat().st_size for path in INCIDENTS.rglob("*") if path.is_file())
    assert bytes_ < 1 << 20


@pytest.mark.parametrize("folder", BUNDLES, ids=named)
def test_what_nobody_published_was_not_captured(folder: Path) -> None:
    bundle: Bundle = open_bundle(str(folder))
    answer = bundle.rounds[-1].read("/proc/kpageflags")
    assert isinstance(answer, Unread)
    assert answer.why == "not_captured"
