# SPDX-License-Identifier: Apache-2.0
"""seawall-x86_64: for hosts without Python 3.10.  The interpreter with an archive behind it, which
is seawall.pyz with the standard library in ``lib/``, as bytecode, and the licences of all of it.
"""

import ast
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from release import interpreter
from release.pyz import finished, write_archive
from release.shipped_files import REPOSITORY, shipped_files

NAME: Final = "seawall-x86_64"
MOST_BYTES: Final = 12_000_000
_ALWAYS: Final = (
    "encodings", "encodings.aliases", "encodings.ascii", "encodings.idna", "encodings.latin_1",
    "encodings.raw_unicode_escape", "encodings.unicode_escape", "encodings.utf_8", "runpy",
    "zipimport",
)  # fmt: skip
"""What no import statement names."""
_NEVER: Final = (
    "asyncio", "bz2", "concurrent", "distutils", "doctest", "encodings.mbcs", "lib2to3", "lzma",
    "multiprocessing", "pdb", "plistlib", "pydoc", "rlcompleter", "site", "ssl", "tkinter",
    "tracemalloc", "unittest", "xml.dom", "xml.parsers", "xml.sax",
)  # fmt: skip
"""Imported by something that is not used, or that works without."""


def build(folder: Path) -> list[Path]:
    """The file; NoSuchPackage: no interpreter could be made; ValueError: larger than it may be."""
    made = interpreter.folder()
    files = {"__main__.py": REPOSITORY / "packaging/seawall", **shipped_files()}
    files |= {f"lib/{name}": path for name, path in standard_library(made / "Lib").items()}
    with tempfile.TemporaryDirectory() as name:
        stage = Path(name)
        for place, source in files.items():
            target = stage / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        _compile(made, stage)
        content = {
            str(path.relative_to(stage)): path for path in stage.rglob("*") if path.is_file()
        }
        content |= {f"licences/{path.name}": path for path in (made / "licences").iterdir()}
        content["licences/Seawall.txt"] = REPOSITORY / "LICENSE"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / NAME
        path.unlink(missing_ok=True)
        with path.open("wb") as out:
            out.write((made / "seawall").read_bytes())
            write_archive(out, content)
    return [finished(path, MOST_BYTES)]


def standard_library(lib: Path) -> dict[str, Path]:
    """What Seawall imports, and what that imports, by the name below ``lib``."""
    modules: dict[str, Path] = {}
    wanted = list(_ALWAYS)
    for name, path in shipped_files().items():
        if name.endswith(".py"):
            wanted += _imports(path, "")
    while wanted:
        name = wanted.pop()
        if name in modules or any(name == n or name.startswith(f"{n}.") for n in _NEVER):
            continue
        base = lib / name.replace(".", "/")
        path = base / "__init__.py" if base.is_dir() else base.with_name(base.name + ".py")
        if path.exists():
            modules[name] = path
            package = name if base.is_dir() else name.rpartition(".")[0]
            wanted += _imports(path, package)
    return {str(path.relative_to(lib)): path for path in modules.values()}


def _imports(path: Path, package: str) -> list[str]:
    """Every name that an import statement may mean, with the packages above it."""
    names = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    parts = [name.split(".") for name in names]
    return [".".join(one[:count]) for one in parts for count in range(1, len(one) + 1)]


def _compile(made: Path, stage: Path) -> None:
    """Each source to bytecode in its place, named as below ``stage``: the same on every machine."""
    words = [
        str(made / "python"), "-S", "-B", "-X", "no_debug_ranges", "-m", "compileall", "-q", "-b",
        "--invalidation-mode", "unchecked-hash", "-s", str(stage), str(stage),
    ]  # fmt: skip
    environment = {
        "PYTHONHOME": "/nonexistent", "PYTHONPATH": str(made / "Lib"), "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    subprocess.run(words, env=environment, check=True, timeout=300)
    for path in stage.rglob("*.py"):
        path.unlink()
