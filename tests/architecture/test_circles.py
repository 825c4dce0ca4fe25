# SPDX-License-Identifier: Apache-2.0
"""No circle of imports: what two modules need of each other stands in a third, below both.

An import inside a function counts, and so does one for types alone: whoever reads one of the two
modules needs the other.
"""

import ast
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
IMPORT = re.compile(r"^ *((?:from|import) seawall\b[\w. ]*(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
Imports = Mapping[str, Mapping[str, int]]
"""Module -> module that it imports -> the line."""


def modules(source: Path) -> dict[str, Path]:
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if "_vendor" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(text: str) -> list[ast.stmt]:
    """Imports of the package, at any depth, with their lines; to parse all else takes seconds."""
    lines = [""] * (text.count("\n") + 1)
    for found in IMPORT.finditer(text):
        at, statement = text.count("\n", 0, found.start(1)), found[1].split("\n")
        lines[at : at + len(statement)] = statement
    return ast.parse("\n".join(lines)).body


def imports_of(source: Path) -> Imports:
    paths = modules(source)
    found: dict[str, dict[str, int]] = {}
    for module, path in paths.items():
        lines = found[module] = {}
        for one in statements(path.read_text()):
            names = []
            if isinstance(one, ast.ImportFrom):
                names = [f"{one.module}.{name.name}" for name in one.names]
                names = [name if name in paths else str(one.module) for name in names]
            elif isinstance(one, ast.Import):
                names = [name.name for name in one.names]
            for name in names:
                if name in paths and name != module:
                    lines.setdefault(name, one.lineno)
    return found


def circles(imports: Imports) -> list[str]:
    """A shortest one of each module that is in any, each once."""
    left = {module: set(names) for module, names in imports.items()}
    while ends := {one for one, names in left.items() if not names & left.keys()}:
        left = {one: names for one, names in left.items() if one not in ends}
    found = {}
    for module in left:
        path = way_back(module, imports)
        if path and frozenset(path) not in found:
            steps = [f"{one}:{imports[one][to]}" for one, to in pairwise(path)]
            found[frozenset(path)] = " -> ".join([*steps, module])
    return list(found.values())


def way_back(start: str, imports: Imports) -> list[str]:
    """From a module to itself; empty: there is none."""
    todo, before = [start], {}
    for one in todo:
        for name in imports[one]:
            if name == start:
                path = [one, start]
                while path[0] != start:
                    path.insert(0, before[path[0]])
                return path
            if name not in before:
                before[name] = one
                todo.append(name)
    return []


def test_no_module_imports_itself_through_others() -> None:
    imports = imports_of(SOURCE)
    assert len(imports) > 500
    assert not circles(imports), "\n" + "\n".join(circles(imports))


def test_a_circle_is_seen(tmp_path: Path) -> None:
    """Through a function, a type and a submodule; what only leads into it is not named."""
    (tmp_path / "seawall").mkdir()
    for name, text in {
        "__init__": "",
        "one": "def f():\n    try:\n        from seawall.two import x\n    except OSError: pass\n",
        "two": "if TYPE_CHECKING:\n    import seawall.three as home\n",
        "three": "from seawall import (\n    one,\n    four,\n)\n",
        "four": "import os\n",
        "five": "from seawall.one import f\n",
    }.items():
        (tmp_path / f"seawall/{name}.py").write_text(text)
    (found,) = circles(imports_of(tmp_path))
    assert found == "seawall.one:3 -> seawall.two:2 -> seawall.three:1 -> seawall.one"
