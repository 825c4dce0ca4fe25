"""Wheel and sdist: what is in them, and pip, pipx and uv without a network."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.release import newcomer_road

from release import python_packages

BIN = Path(sys.executable).parent
for tool in ("hatchling", "twine"):
    pytest.importorskip(tool, reason=f"{tool} is missing: make dist")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By the end of the name.  twine has checked both, or this fails."""
    paths = python_packages.build(tmp_path_factory.mktemp("dist"))
    return {path.suffix: path for path in paths}


def test_the_wheel_has_no_cases_and_the_sdist_has_all(made: dict[str, Path]) -> None:
    names = zipfile.ZipFile(made[".whl"]).namelist()
    assert "seawall/guard/entry.py" in names
    assert "seawall/views/schemas/why.json" in names
    assert not [name for name in names if ".case" in name]
    metadata = next(name for name in names if name.endswith("/METADATA"))
    told = zipfile.ZipFile(made[".whl"]).read(metadata).decode()
    assert "Provides-Extra: gpu" in told
    needs = [line for line in told.splitlines() if line.startswith("Requires-Dist")]
    assert needs
    assert all("extra == " in line for line in needs), "Seawall itself needs nothing but Python"
    with tarfile.open(made[".gz"]) as archive:
        source = archive.getnames()
    assert any(name.endswith(".case") for name in source)
    assert any(name.endswith("packaging/seawall-guard.service") for name in source)


def installed(words: list[str], folder: Path, program: Path) -> None:
    """With no index and no network, in a folder of its own; then the first answer."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PIP_NO_INDEX": "1", "UV_OFFLINE": "1",
        "PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin"),
        "UV_CACHE_DIR": str(folder / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIPX_DEFAULT_BACKEND": "pip", "PIPX_SHARED_LIBS": str(folder / "shared"),
    }  # fmt: skip
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answered = subprocess.run(
        [program, "why"], cwd=folder, env={"PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert answered.returncode == 0, answered.stderr
    assert "Linux" in answered.stdout.splitlines()[0]


@pytest.mark.system
@pytest.mark.beside
def test_pip_installs_the_wheel(made: dict[str, Path], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    words = [str(tmp_path / "venv/bin/pip"), "install", "--quiet", f"{made['.whl']}[gpu]"]
    installed(words, tmp_path, tmp_path / "venv/bin/seawall")


@pytest.mark.system
@pytest.mark.beside
def test_uv_installs_the_wheel(made: dict[str, Path], tmp_path: Path) -> None:
    if not (BIN / "uv").exists():
        pytest.skip("uv is missing: make dist")
    subprocess.run(
        [BIN / "uv", "venv", "--quiet", "--offline", "--python", sys.executable, tmp_path / "venv"],
        check=True,
    )
    python = str(tmp_path / "venv/bin/python")
    words = [str(BIN / "uv"), "pip", "install", "--quiet", "--python", python, str(made[".whl"])]
    installed(words, tmp_path, tmp_path / "venv/bin/seawall")


@pytest.mark.system
@pytest.mark.beside
def test_pipx_installs_the_wheel(made: dict[str, Path], tmp_path: Path) -> None:
    """It asks pip for pip itself first, so it has to be told not to."""
    if not (BIN / "pipx").exists():
        pytest.skip("pipx is missing: make dist")
    words = [
        str(BIN / "pipx"), "install", "--skip-maintenance", "--python", sys.executable,
        str(made[".whl"]),
    ]  # fmt: skip
    installed(words, tmp_path, tmp_path / "bin/seawall")


@pytest.mark.system
@pytest.mark.beside
@pytest.mark.timeout(600)
def test_a_newcomers_road(
    made: dict[str, Path], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with newcomer_road.fresh_node(tmp_path, made[".whl"]) as enter:
        # Debian's pip installs nothing outside of one.
        lines = ["python3 -m venv venv && . venv/bin/activate", newcomer_road.line_with(".whl")]
        lines.append(newcomer_road.first_question())
        newcomer_road.walk("pip", lines, enter, record_property)
