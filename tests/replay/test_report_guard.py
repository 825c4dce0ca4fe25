# SPDX-License-Identifier: Apache-2.0
"""The guard's own journal tells of the kernel's kills, where a report needs them and only there."""

import json
from pathlib import Path

import pytest
from tests.guard.telling import check, groups, lines_of, node, verdict

from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.replay.journal_lines import line_of

BOOT = "5eed0000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("state", "is_decided", "kills"),
    [("short", False, 2), ("peace", True, 2), ("peace", False, 0), ("blind", False, 2)],
)
def test_a_kill_of_the_kernel_is_a_line(
    tmp_path: Path, state: str, kills: int, *, is_decided: bool
) -> None:
    """In peace a container that dies again and again at its limit must not fill the journal."""
    paths = Paths(str(tmp_path), kmsg=str(tmp_path / "kmsg"), pmsg=str(tmp_path / "pmsg"))
    teller = Teller(Settings(), paths, BOOT, None)
    teller.open()
    if is_decided:
        teller.verdict(verdict())
    teller.status(node(kernel_kills=2), groups(), state, {})
    teller.close()
    journal = tmp_path / "decisions.jsonl"
    for document in lines_of(journal):
        check(document, "decision")
    told = [line_of(json.dumps(document).encode()) for document in lines_of(journal)]
    assert sum(said.kernel_kills for said in told) == kills
