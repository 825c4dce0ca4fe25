"""A lowered limit on version 2 of cgroups, and clocks that jump, in an emulated node."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults import judged
from tests.kernels.vm import Image, build_image, missing, run_job

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
PROGRAM = Path(judged.__file__).with_name("acts.py")
SLOWER_SECONDS = 4.0
"""An emulated processor, whose host has others to serve."""
JOB = """
python3.11 acts.py $OUT/rows.json --few --clock --at-once 2 > $OUT/log.txt 2>&1
echo $? >> $OUT/log.txt
"""


def add_strace(root: Path) -> None:
    strace = shutil.which("strace")
    assert strace
    listed = subprocess.run(["ldd", strace], check=True, capture_output=True, text=True).stdout
    for path in [strace, *re.findall(r"(/\S+\.so\S*) \(0x", listed)]:
        target = root / path[1:]
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


@pytest.fixture(scope="module")
def with_strace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.environ.get("SEAWALL_FAULTS") != "all":
        pytest.skip("some minutes: make faults")
    if why := missing() or ("" if shutil.which("strace") else "apt-get install strace"):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("faults-image")
    yield build_image(folder, add_strace)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def rows(with_strace: Image, tmp_path_factory: pytest.TempPathFactory) -> list[judged.Row]:
    folder = tmp_path_factory.mktemp("faults")
    files = {"acts.py": PROGRAM.read_bytes()}
    vm = run_job(with_strace, JOB, folder, files=files, memory_mib=768, timeout_seconds=1200)
    assert vm.text("log.txt").splitlines()[-1] == "0", vm.text("log.txt")
    (folder / "rows.json").write_bytes(vm.files["rows.json"])
    found = judged.rows_of(folder / "rows.json")
    os.write(1, f"{judged.table(found)}\n".encode())
    return found


def test_whatever_fails_nobody_stays_frozen_or_lowered(rows: list[judged.Row]) -> None:
    assert judged.wrong(rows, SLOWER_SECONDS) == []


def test_the_faults_come_while_a_limit_is_lowered(rows: list[judged.Row]) -> None:
    assert any(
        row.get("lowered_to", "") not in ("max", "") for row in rows if row["act"] == "clamp"
    )


def test_a_clock_that_jumps_changes_nothing(rows: list[judged.Row]) -> None:
    jumped = [row for row in rows if row.get("clock_seconds")]
    assert len(jumped) == 4
    assert all(row["was_frozen"] for row in jumped)
