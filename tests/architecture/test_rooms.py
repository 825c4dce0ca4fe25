# SPDX-License-Identifier: Apache-2.0
"""Each folder says in a sentence what lives there, and the map names files that exist."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src/seawall"
MAP = (REPOSITORY / "docs/architecture.md").read_text()
ROOMS = sorted(path.parent for path in SOURCE.rglob("__init__.py") if "_vendor" not in path.parts)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(SOURCE)))
def test_a_room_says_what_lives_there(room: Path) -> None:
    words = ast.get_docstring(ast.parse((room / "__init__.py").read_text()))
    assert words
    assert words.split("\n")[0].endswith(".")


def test_the_map_names_every_room() -> None:
    tops = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} - {"_vendor"}
    assert tops == set(re.findall(r"^\| `(\w+)/` \|", MAP, re.MULTILINE))


def test_the_map_names_files_that_exist() -> None:
    named = set(re.findall(r"\b[a-z_]+/[a-z_/]+\.py\b", MAP))
    assert len(named) > 15
    assert not {name for name in named if not (SOURCE / name).exists()}
