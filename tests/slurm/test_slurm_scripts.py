"""Prolog, Epilog and TaskProlog as they are installed, run by a real slurmd."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.slurm_room import SlurmRoom, missing

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]
REPOSITORY = Path(__file__).parents[2]
SCRIPTS = REPOSITORY / "packaging/slurm"
SHM_BYTES = 300 << 20


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """The scripts with this checkout's seawall, and a system log that can be read."""
    folder = Path(tempfile.mkdtemp(prefix="seawall-scripts-"))
    folder.chmod(0o755)
    (folder / "src").mkdir()
    shutil.copytree(REPOSITORY / "src/seawall", folder / "src/seawall")
    (folder / "log").touch()
    write(
        folder / "seawall",
        f'#!/bin/sh\nPYTHONPATH={folder}/src exec {interpreter()} -m seawall "$@"\n',
    )
    write(folder / "logger", f'#!/bin/sh\necho "$@" >> {folder}/log\ncat >> {folder}/log\n')
    for name in ("health", "prolog", "epilog", "task-prolog"):
        text = (SCRIPTS / name).read_text().replace("/usr/bin/seawall", f"{folder}/seawall")
        write(folder / name, text.replace("PATH=/usr/bin:", f"PATH={folder}:/usr/bin:"))
    yield folder
    shutil.rmtree(folder)


def interpreter() -> str:
    """One that a job's user may run: of the system, where it is new enough."""
    found = "/usr/bin/python3"
    wanted = "import sys; sys.exit(sys.version_info < (3, 10))"
    is_new = (
        os.path.exists(found) and not subprocess.run([found, "-c", wanted], check=False).returncode
    )
    return found if is_new else sys.executable


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def scripted(programs: Path) -> Iterator[SlurmRoom]:
    if why := missing():
        pytest.skip(why)
    lines = (
        f"Prolog={programs}/prolog\nEpilog={programs}/epilog\nTaskProlog={programs}/task-prolog\n"
    )
    with SlurmRoom(health=programs / "health", settings=lines) as room:
        yield room


def test_a_job_that_leaves_nothing_leaves_no_word(scripted: SlurmRoom, programs: Path) -> None:
    job = scripted.submit("echo done")
    scripted.wait(lambda: "done" in scripted.output(job), "its output", 120)
    scripted.wait(lambda: set(scripted.states().values()) == {"idle"}, "the end of its epilog", 120)
    assert f"epilog[{job}]" not in (programs / "log").read_text()


def test_the_epilog_tells_what_a_job_left(scripted: SlurmRoom, programs: Path) -> None:
    path = f"/dev/shm/{scripted.name}"
    job = scripted.submit(
        f"head -c {SHM_BYTES} /dev/zero > {path}; chmod 600 {path}", "--mem=600", user="uucp"
    )
    try:
        scripted.wait(lambda: "who has no job" in (programs / "log").read_text(), "its word", 120)
        assert f"seawall-epilog[{job}]" in (programs / "log").read_text()
        uid = os.stat(path).st_uid
        assert f"in /dev/shm of uid {uid}, who has no job" in (programs / "log").read_text()
        scripted.wait(lambda: set(scripted.states().values()) == {"idle"}, "a node in service", 120)
    finally:
        os.unlink(path)


def test_the_task_prolog_tells_the_job_why_it_has_no_gpu(scripted: SlurmRoom) -> None:
    """Slurm names them in CUDA_VISIBLE_DEVICES; there is none on this machine."""
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a GPU")
    job = scripted.submit("echo done", CUDA_VISIBLE_DEVICES="0")
    scripted.wait(lambda: "done" in scripted.output(job), "its output", 120)
    assert scripted.output(job).startswith("seawall: /dev/nvidia")


def test_the_installed_health_check_tells_and_drains_nothing(scripted: SlurmRoom) -> None:
    scripted.wait(lambda: "health_check" in scripted.log(scripted.nodes[0]), "slurmd's word", 120)
    assert not [state for state in scripted.states().values() if "dr" in state]


@pytest.mark.parametrize("name", ["health", "prolog", "epilog", "task-prolog"])
def test_each_can_be_started(name: str) -> None:
    assert os.access(SCRIPTS / name, os.X_OK)
