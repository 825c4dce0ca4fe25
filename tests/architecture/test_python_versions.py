"""Which Python is needed stands in several places, and an older one says so in one sentence."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.formats import toml

REPOSITORY = Path(__file__).parents[2]
PROGRAM = REPOSITORY / "packaging/seawall"
OLDEST = (3, 10)
# What an older Python runs before it can say that it is one.
FOR_OLD_PYTHONS = [REPOSITORY / "src/seawall/__init__.py", PROGRAM]
OLD = "import sys; sys.version_info = (3, 6, 8, 'final', 0); sys.version = '3.6.8 (old)'\n"


def project() -> dict[str, Any]:
    return toml.loads((REPOSITORY / "pyproject.toml").read_text())


def test_all_places_name_the_same_oldest_python() -> None:
    found = project()
    assert found["project"]["requires-python"] == ">=3.10"
    assert found["tool"]["ruff"]["target-version"] == "py310"
    assert found["tool"]["mypy"]["python_version"] == "3.10"
    for page in ("README.md", "CONTRIBUTING.md", "Makefile"):
        words = (REPOSITORY / page).read_text()
        assert re.findall(r"Python (3\.\d+) or later", words), page
        assert set(re.findall(r"Python (3\.\d+) or later", words)) == {"3.10"}, page


@pytest.mark.parametrize("path", FOR_OLD_PYTHONS, ids=lambda p: p.name)
def test_an_old_python_can_read_its_refusal(path: Path) -> None:
    """As far as this interpreter can tell: no newer syntax, no character beyond ASCII."""
    tree = ast.parse(path.read_bytes().decode("ascii"), feature_version=(3, 6))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.arg) and n.annotation]


def old_python(folder: Path, name: str = "python3") -> Path:
    """A program that runs a script with this interpreter and lets it think that it is 3.6."""
    python = folder / name
    runner = folder / f"{name}.py"
    runner.write_text(
        f"{OLD}import runpy\nsys.executable = {str(python)!r}\nsys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    # What it gets first is -IS; then a question with -c, or the script.
    python.write_text(
        f'#!/bin/sh\nshift\n[ "$1" = -c ] && exit 1\nexec {sys.executable} -IS {runner} "$@"\n'
    )
    python.chmod(0o755)
    return python


def started(python: Path, *words: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-IS", str(PROGRAM), *words],
        env={"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def stand_in(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text('#!/bin/sh\n[ "$2" = -c ] || echo "$0" "$@"\n')
    program.chmod(0o755)


def test_the_wrapper_starts_the_newest_that_it_finds(tmp_path: Path) -> None:
    old = old_python(tmp_path)
    early, late = tmp_path / "early", tmp_path / "late"
    stand_in(early, "python3.11")
    stand_in(late, "python3.11")
    stand_in(late, "python3.12")
    stand_in(late, "python3.9")
    (early / "python3.13").write_text("not a program")
    (late / "python3.13").write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
    (late / "python3.13").chmod(0o755)
    done = started(old, "why", "--json", path=f"relative:{early}:{late}")
    if any(Path(f"{folder}/python3.13").exists() for folder in ("/usr/bin", "/usr/local/bin")):
        pytest.skip("this machine has a python3.13, which comes first")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{late}/python3.12 -IS {PROGRAM} why --json\n"


def test_the_wrapper_gives_up_with_one_sentence(tmp_path: Path) -> None:
    """Where nothing newer is, whatever calls itself so."""
    old_python(tmp_path, "python3.13")
    source = PROGRAM.read_text().replace('["/usr/bin", "/usr/local/bin"]', "[]")
    done = subprocess.run(
        [sys.executable, "-IS", "-c", f"__file__ = 'seawall'\n{OLD}{source}"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"seawall needs Python 3\.10 or later: \S+ is 3\.6\.8, .*\n", done.stderr)


@pytest.mark.parametrize("module", ["seawall", "seawall.cli.main", "seawall.guard.entry"])
def test_an_old_python_gets_one_sentence(module: str) -> None:
    code = f"{OLD}import runpy; runpy.run_module({module!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"seawall needs Python 3\.10 or later, \S+ is Python 3\.6\.8: try python3\.13, .*\n",
        done.stderr,
    )


def real_old_pythons() -> list[str]:
    """Those on PATH that start, and pyenv's."""
    names = ["python2.7", *(f"python3.{minor}" for minor in range(6, 10))]
    here = [path for name in names if (path := shutil.which(name))]
    kept = Path.home().glob(".pyenv/versions/*/bin/python")
    return sorted({*here, *map(str, kept)})


def test_real_old_pythons_say_the_same(tmp_path: Path) -> None:
    ran = 0
    for python in real_old_pythons():
        version = "import sys; print('%d.%02d' % sys.version_info[:2])"
        asked = subprocess.run([python, "-c", version], capture_output=True, text=True, check=False)
        if asked.returncode or asked.stdout.strip() >= "3.10":
            continue
        ran += 1
        done = subprocess.run(
            [python, "-m", "seawall", "why"], capture_output=True, text=True, check=False,
            env={"PYTHONPATH": str(REPOSITORY / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, ""), python
        assert re.fullmatch(r"seawall needs Python 3\.10 or later, [^\n]+\n", done.stderr), python
        stand_in(tmp_path, "python3.13")
        if asked.stdout.strip() >= "3.06":
            found = started(Path(python), "why", path=str(tmp_path))
            assert found.stdout == f"{tmp_path}/python3.13 -IS {PROGRAM} why\n", python
    if not ran:
        pytest.skip("no Python older than 3.10 is here: apt-get install python2.7 (Debian 11)")


# What came with 3.11 and neither ruff nor mypy, which know 3.10 as well, would find.
_NEWER_CALLS = {"to_bytes": 2, "from_bytes": 2}


def newer_than_oldest(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            wanted = _NEWER_CALLS.get(node.func.attr)
            if wanted is not None and len(node.args) + len(node.keywords) < wanted:
                yield f"line {node.lineno}: {node.func.attr} without byteorder"
            if node.func.attr == "fromisoformat":
                yield f"line {node.lineno}: fromisoformat; use seawall.formats.iso_time"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            words = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if "(?>" in words:
                yield f"line {node.lineno}: an atomic group"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            if "tomllib" in names:
                yield f"line {node.lineno}: tomllib; use seawall.formats.toml"


def test_nothing_newer_is_used() -> None:
    left_out = {"toml.py", "iso_time.py", "test_iso_time.py", Path(__file__).name}
    paths = [
        path for folder in ("src", "tests", "bench") for path in (REPOSITORY / folder).rglob("*.py")
        if "_vendor" not in path.parts and path.name not in left_out
    ]  # fmt: skip
    used = [
        f"{path.relative_to(REPOSITORY)}: {what}"
        for path in paths for what in newer_than_oldest(ast.parse(path.read_text()))
    ]  # fmt: skip
    assert not used


def test_the_search_for_newer_things_finds_them() -> None:
    source = "x.to_bytes()\nd.fromisoformat(s)\nre.compile('(?>a)')\nimport tomllib\n"
    assert len(list(newer_than_oldest(ast.parse(source)))) == 4
