"""The guard's hands in this machine's cgroup trees, killed, stopped or failed at each call."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import missing
from tests.end_to_end.verbs import SOURCES
from tests.faults import judged

IS_WHOLE = os.environ.get("SEAWALL_FAULTS") == "all"
"""``make faults``: at every call; else at those that change something."""
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(3600 if IS_WHOLE else 300),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(not shutil.which("strace"), reason="faults: apt-get install strace"),
]
PROGRAM = Path(judged.__file__).with_name("acts.py")
UNIFIED = Path("/sys/fs/cgroup/unified/cgroup.procs")


@pytest.fixture(scope="module", params=["v1", "v2"])
def rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[judged.Row]:
    """Version 2 is tried in the unified tree of a hybrid host."""
    if request.param == "v2" and not UNIFIED.exists():
        pytest.skip(f"no version 2 beside version 1 here: {UNIFIED.parent}")
    out = tmp_path_factory.mktemp("faults") / "rows.json"
    words = [] if IS_WHOLE else ["--few"]
    words += ["--unified"] if request.param == "v2" else []
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(out), *words], check=False, text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCES)}, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = judged.rows_of(out)
    sys.stdout.write(f"{request.param}\n{judged.table(found)}\n")
    return found


def test_whatever_fails_nobody_stays_frozen_and_no_innocent_is_touched(
    rows: list[judged.Row],
) -> None:
    assert judged.wrong(rows) == []


def test_nearly_all_faults_come(rows: list[judged.Row]) -> None:
    """Of calls that are made while something is awaited there may be fewer in a later run."""
    reached = [row for row in rows if row.get("is_reached")]
    assert len(reached) >= 0.7 * len(rows)


def test_the_faults_come_where_somebody_stands_still(rows: list[judged.Row]) -> None:
    """Else all of the above would hold of acts that have not begun."""
    for what, least in (("SIGKILL", 1), ("SIGSTOP", 3)):
        held = [row for row in rows if row["what"] == what and row.get("was_frozen")]
        assert len(held) >= least, what
    plain = [row["guard"] for row in rows if row["what"] == ""]
    assert plain
    assert all(outcome["is_done"] for guard in plain for outcome in guard["outcomes"])
