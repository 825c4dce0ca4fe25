"""``seawall check --slurm --json``: the same finding and the same exit status as the text's."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
from tests.end_to_end.verbs import ENVIRONMENT

import seawall
from seawall.version import VERSION

SCHEMA = json.loads(
    (Path(seawall.__file__).parent / "views/schemas/slurm-check.json").read_text()
)  # fmt: skip
CONFIG = """
[checks]
fans = "drain"
[[commands]]
name = "fans"
run = ["/bin/sh", "-c", "echo fan 3 is dead; exit {}"]
"""


def check(config: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "check", "--slurm", "--config", config, *words],
        capture_output=True, text=True, check=False, timeout=120,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_fault_has_its_check_what_is_done_for_it_and_the_texts_status(tmp_path: Path) -> None:
    config = tmp_path / "slurm.toml"
    config.write_text(CONFIG.format(1))
    status, told = check(config, "--only", "fans,guard", "--json")
    page = json.loads(told)
    jsonschema.validate(page, SCHEMA)
    assert (status, page["schema"], page["tool_version"]) == (1, "seawall.slurm-check/1", VERSION)
    assert page["problems"] == [
        {"check": "fans", "words": "fan 3 is dead", "what": None, "is_lasting": False}
    ]  # fmt: skip
    assert page["checks"] == {"fans": "drain", "guard": "report"}
    assert page["draining"] == ["not drained: this is not slurmd's call"]
    assert check(config, "--only", "fans,guard") == (
        1, "fans: fan 3 is dead\nnot drained: this is not slurmd's call\n",
    )  # fmt: skip


def test_nothing_is_an_answer_too(tmp_path: Path) -> None:
    config = tmp_path / "slurm.toml"
    config.write_text(CONFIG.format(0))
    status, told = check(config, "--only", "fans", "--json")
    page = json.loads(told)
    jsonschema.validate(page, SCHEMA)
    assert (status, page["problems"], page["draining"]) == (0, [], [])
