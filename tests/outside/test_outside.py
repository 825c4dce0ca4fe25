# SPDX-License-Identifier: Apache-2.0
"""What somebody outside relies on stays: names, and answers to recordings of an earlier day."""

import json
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT
from tests.outside import answers
from tests.outside.outside_names import FILE, outside_names

REPOSITORY = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in answers.ANSWERS.glob("*.json"))
LINES_MOST = 60


def difference(before: str, now: str) -> str:
    lines = unified_diff(before.splitlines(), now.splitlines(), "committed", "now", "", "", 2, "")
    return "\n".join(list(lines)[:LINES_MOST])


def test_the_names_are_those_that_are_committed() -> None:
    now = "\n".join(outside_names()) + "\n"
    changed = difference(FILE.read_text(), now)
    assert not changed, (
        f"{changed}\nIf scripts, settings and boxes outside shall see this: "
        "python -m tests.outside.outside_names, and a line in CHANGELOG.md"
    )


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside") / "answers"
    command = [sys.executable, "-m", "tests.outside.answers", str(folder)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_every_recording_is_answered(fresh: Path) -> None:
    assert sorted(path.stem for path in fresh.iterdir()) == NAMES
    documents = [json.loads(path.read_text()) for path in fresh.iterdir()]
    assert all(row["status"] == 0 and row["document"]["schema"] for row in documents)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_one_that_is_committed(fresh: Path, name: str) -> None:
    before, now = ((place / f"{name}.json").read_text() for place in (answers.ANSWERS, fresh))
    changed = difference(before, now)
    assert not changed, (
        f"{changed}\nIf this is wanted: python -m tests.outside.answers, and a line in CHANGELOG.md"
    )
