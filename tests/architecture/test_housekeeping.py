"""What every file of the package begins with, and what must agree with what."""

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.formats import toml
from seawall.version import VERSION

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src/seawall"
VENDOR = PACKAGE / "_vendor"
SOURCE = sorted(path for path in PACKAGE.rglob("*.py") if VENDOR not in path.parents)
PROJECT: dict[str, Any] = toml.loads((REPOSITORY / "pyproject.toml").read_text())
LOCK = (REPOSITORY / "requirements-dev.lock").read_text()
SPDX = "# SPDX-License-Identifier: Apache-2.0\n"
WORDS_LEAST = 3


def shown(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def test_every_source_file_names_its_licence() -> None:
    bare = [shown(p) for p in SOURCE if p.name != "__init__.py" and not text_of(p).startswith(SPDX)]
    assert not bare


def test_a_public_docstring_says_what_a_thing_is() -> None:
    """Two words are a riddle (``Of both.``) to whoever comes to a name by a search."""
    short = [
        f"{shown(path)}: {words}"
        for path in SOURCE
        for words in public_docstrings(ast.parse(text_of(path)))
        if len(words.split()) < WORDS_LEAST
    ]
    assert not short


def public_docstrings(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Of a module or class, and of all classes and functions in it without a leading underscore."""
    if words := ast.get_docstring(node):
        yield words
    for one in node.body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from public_docstrings(one)
        elif isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield ast.get_docstring(one) or "none at all, which is the linter's to say"


def test_init_files_hold_a_sentence_and_no_code() -> None:
    """But the package's own, which says what an older Python lacks."""
    inits = [path for path in SOURCE if path.name == "__init__.py"]
    full = [shown(path) for path in inits if len(ast.parse(text_of(path)).body) > 1]
    assert full == ["src/seawall/__init__.py"]


def test_every_folder_of_the_package_can_be_imported() -> None:
    """A folder without ``__init__.py`` would be left out of the wheel's packages unnoticed."""
    folders = {path.parent for path in SOURCE}
    bare = [shown(f) for f in folders if not (f / "__init__.py").exists() and f.name != "src"]
    assert not bare


def test_other_peoples_code_is_as_they_wrote_it() -> None:
    rows = [line.split("  ") for line in text_of(VENDOR / "SHA256SUMS").splitlines()]
    files = {p for p in VENDOR.glob("*/*") if p.is_file() and p.parent.name != "__pycache__"}
    assert files == {VENDOR / name for _, name in rows}
    edited = [name for digest, name in rows
              if hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() != digest]  # fmt: skip
    assert not edited


def test_other_peoples_code_comes_with_its_licence_and_version() -> None:
    folders = sorted(path.name for path in VENDOR.iterdir() if path.name[0] not in "_SR")
    rows = re.findall(r"^\| `(\w+)` \| .+ \d[\d.]+ \| (\S+) \| `\S+` `[0-9a-f]{64}` \|",
                      text_of(VENDOR / "README.md"), re.MULTILINE)  # fmt: skip
    assert sorted(folder for folder, _ in rows) == folders
    for folder, licence in rows:
        words = text_of(VENDOR / folder / "LICENSE")
        assert "Permission is hereby granted, free of charge" in words
        assert licence == "MIT"
    assert PROJECT["project"]["license"] == "Apache-2.0 AND MIT"
    assert PROJECT["project"]["license-files"] == ["LICENSE", "src/seawall/_vendor/*/LICENSE"]


def test_other_peoples_code_has_one_user_each() -> None:
    users = {(name, shown(path)) for path in SOURCE
             for name in re.findall(r"from seawall\._vendor\.(\w+)", text_of(path))}  # fmt: skip
    assert users == {
        ("h2", "src/seawall/host/grpc_unix/call.py"),
        ("tomli", "src/seawall/formats/toml.py"), ("yaml", "src/seawall/readings/cdi_yaml.py"),
    }  # fmt: skip
    assert not [shown(path) for path in SOURCE if "import seawall._vendor" in text_of(path)]


def test_the_version_stands_in_two_places_and_is_the_same() -> None:
    assert PROJECT["project"]["version"] == VERSION
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[?{re.escape(VERSION)}\]?", changelog, re.MULTILINE)


LIBRARIES = {
    "lightkube": ("cluster/kube/",), "msgspec": ("cluster/kube/", "cluster/observer/"),
    "prometheus_client": (
        "cluster/actor/", "cluster/observer/", "cluster/slurm/slurm_metrics.py",
    ),
    "urllib3": ("cluster/kube/", "cluster/observer/"),
}  # fmt: skip
"""Of the extra ``cluster``, and the rooms that may import them: no node has one of these."""


def test_nothing_is_needed_at_run_time_but_python() -> None:
    assert PROJECT["project"]["dependencies"] == []
    extra = {
        words.split(">")[0] for words in PROJECT["project"]["optional-dependencies"]["cluster"]
    }
    assert {name.replace("_", "-") for name in LIBRARIES} == extra
    foreign = {
        f"{shown(path)}: {name}"
        for path in SOURCE
        for name in imported_by(text_of(path))
        if name not in sys.stdlib_module_names | {"seawall", "tomllib"}
        and not shown(path).removeprefix("src/seawall/").startswith(LIBRARIES.get(name, ()))
    }
    assert not foreign


def imported_by(source: str) -> Iterator[str]:
    """The first part of every name that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("group", ["dev", "dist", "fuzz"])
def test_a_lock_file_has_hashes_and_no_addresses(group: str) -> None:
    lock = (REPOSITORY / f"requirements-{group}.lock").read_text()
    wanted = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", lock, flags=re.MULTILINE).strip())
    assert len(wanted) >= len(PROJECT["dependency-groups"][group])
    bare = [entry.split()[0] for entry in wanted if "--hash=sha256:" not in entry]
    assert not bare
    assert "://" not in lock
    assert "--index-url" not in lock


def test_make_installs_by_hashes_alone() -> None:
    """But uv, of which `make lock` takes the newest: it writes the locks."""
    recipes = (REPOSITORY / "Makefile").read_text().replace("\\\n", "")
    rows = [row for row in recipes.splitlines() if "pip install" in row]
    assert len(rows) == 4
    assert [row.split()[-1] for row in rows if "--require-hashes" not in row] == ["uv"]


def test_the_lock_file_holds_every_development_tool() -> None:
    tools = [re.match(r"[\w-]+", tool)[0] for tool in PROJECT["dependency-groups"]["dev"]]  # type: ignore[index]
    missing = [tool for tool in tools if not re.search(rf"^{tool}==", LOCK, re.MULTILINE)]
    assert not missing


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "src/seawall/views/schemas").glob("*.json")), ids=lambda p: p.stem
)
def test_a_schema_is_a_schema(path: Path) -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.generate_docs", "--check"],
        cwd=REPOSITORY, env={"PYTHONPATH": "src:."}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    pages = list(REPOSITORY.glob("*.md")) + sorted((REPOSITORY / "docs").rglob("*.md"))
    dead = [
        f"{shown(page)}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not dead


def text_of(path: Path) -> str:
    return path.read_text()
