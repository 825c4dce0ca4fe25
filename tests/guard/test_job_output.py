"""The line in a killed job's own output: real files, and a user who put something in its place."""

import itertools
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.guard.aides import answer, started
from tests.guard.telling import HOSTILE

from seawall.guard.job_place import JobPlace, JobUser, job_place
from seawall.guard.tell.job_commands import RunningJob, row_of
from seawall.guard.tell.job_output import append

GAMES = 5
PYTHON = "/usr/bin/python3"
LINE = b"seawall: killed\n"
STEP = "job_7/step_batch"
V1, V2 = f"slurm_n1/uid_{GAMES}/{STEP}", f"system.slice/slurmstepd.scope/{STEP}"
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def appended(path: Path, uid: int | None = None) -> str:
    """Why not; empty: it is there."""
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        append(root, str(path), os.geteuid() if uid is None else uid, LINE)
    except OSError as error:
        return error.strerror or ""
    finally:
        os.close(root)
    return ""


def test_the_line_stands_behind_what_the_job_wrote(tmp_path: Path) -> None:
    file = tmp_path / "slurm-7.out"
    file.write_text("step 1 of 9\n")
    assert appended(file) == ""
    assert file.read_text() == "step 1 of 9\nseawall: killed\n"


def test_nothing_that_was_put_in_its_place_is_written_or_waited_for(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    (tmp_path / "link").symlink_to(victim)
    os.mkfifo(tmp_path / "fifo")
    reasons = [appended(tmp_path / name) for name in ("link", "fifo", "gone")]
    assert reasons == ["is no plain file any more"] * 2 + ["No such file or directory"]
    assert appended(Path("/dev/full")) == "is no plain file any more"
    assert appended(victim, os.geteuid() + 1) == "is another user's"
    assert victim.read_text() == ""


def request(file: Path, **changes: Any) -> dict[str, Any]:
    return {"do": "job_output", "path": str(file), "words": "killed " + HOSTILE, "decision": "d-1",
            "uid": GAMES, "gid": 60, "groups": [60, 100], **changes}  # fmt: skip


@is_root
def test_it_is_written_as_the_user_and_where_only_the_user_may(tmp_path: Path) -> None:
    top = Path(tempfile.gettempdir())
    for folder in itertools.takewhile(lambda one: one != top, (tmp_path, *tmp_path.parents)):
        folder.chmod(0o755)
    home, roots = tmp_path / "home", tmp_path / "roots"
    for folder, owner in ((home, GAMES), (roots, 0)):
        folder.mkdir(mode=0o700)
        (folder / "out").touch()
        os.chown(folder, owner, 0)
        os.chown(folder / "out", GAMES, 60)
    with started() as aide:
        assert answer(aide, request(home / "out"))["problem"] == ""
        refused = answer(aide, request(roots / "out"))["problem"]
    text = (home / "out").read_text()
    assert text.startswith("seawall: killed \\x1b[2J\\x0a")
    assert text.count("\n") == 1
    assert len(text) < 1100
    assert refused == f"{roots}/out: Permission denied"
    assert (roots / "out").read_text() == ""


@is_root
@pytest.mark.parametrize(
    "changes",
    [
        {"uid": None}, {"gid": "0"}, {"uid": True}, {"uid": -1}, {"groups": None},
        {"groups": [1.5]}, {"path": "relative"}, {"path": None},
    ],
)  # fmt: skip
def test_without_a_whole_user_nothing_is_written(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = tmp_path / "out"
    file.touch()
    with started() as aide:
        assert "not found" in answer(aide, request(file, **changes))["problem"]
    assert file.read_text() == ""


@contextmanager
def process(user: int, name: str, output: Path) -> Iterator[int]:
    program = f"open('/proc/self/comm','w').write('{name}'); print(flush=True); input()"
    with output.open("w") as file:
        child = subprocess.Popen(
            [PYTHON, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=file, user=user, group=60 if user else 0, extra_groups=[60, 100],
        )  # fmt: skip
    assert child.stdout
    child.stdout.readline()
    try:
        yield child.pid
    finally:
        child.kill()
        child.communicate()


@is_root
@pytest.mark.parametrize(
    ("step", "daemon", "task"), [(V1, "", "task_0"), (V2, "slurm", "user/task_0")]
)
def test_where_the_output_is_and_whose_before_the_job_is_ended(
    tmp_path: Path, step: str, daemon: str, task: str
) -> None:
    """A process of the user's that is called as the daemon is changes nothing."""
    folder, liar = tmp_path / "out", tmp_path / "liar"
    with (
        process(0, "slurmstepd", folder) as stepd,
        process(GAMES, "slurmstepd", liar) as lies,
        process(0, "su", liar) as raised,
    ):
        for below, pids in ((daemon, [lies, stepd]), (task, [raised, lies])):
            place = tmp_path / step / below
            place.mkdir(parents=True, exist_ok=True)
            (place / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
        found = job_place(f"/{step.removesuffix('/step_batch')}", str(tmp_path))
    user = JobUser(GAMES, 60, (60, 100))
    assert found == JobPlace("7", True, str(folder), user)


def test_a_job_whose_script_runs_elsewhere_and_what_is_no_job(tmp_path: Path) -> None:
    (tmp_path / f"slurm/uid_{GAMES}/job_7/step_0").mkdir(parents=True)
    assert job_place(f"/slurm/uid_{GAMES}/job_7", str(tmp_path)) == JobPlace("7", False)
    own = tmp_path / f"slurm/uid_{os.getuid()}/job_8/step_3/task_0"
    own.mkdir(parents=True)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    found = job_place(f"/slurm/uid_{os.getuid()}/job_8", str(tmp_path))
    assert found == JobPlace("8", False, "", JobUser(os.getuid(), os.getgid(), _groups()))
    assert job_place("/slurm/system", str(tmp_path)) is None


def _groups() -> tuple[int, ...]:
    """As the kernel lists them; os.getgroups() has the same in any order."""
    status = Path("/proc/self/status").read_text()
    row = next(row for row in status.splitlines() if row.startswith("Groups:"))
    return tuple(int(word) for word in row.split()[1:])


def line(number: str, array: str, task: str, nodes: str, comment: str = "") -> str:
    return "".join(f"{word:<20}" for word in (number, array, task, nodes)) + f"{comment:<2000}"


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (line("4711", "4711", "N/A", "1"), RunningJob("4711", 1, "")),
        (line("4711", "0", "N/A", "3", "N/A"), RunningJob("4711", 3, "")),
        (line("4711", "4711", "12", "2", "old"), RunningJob("4711_12", 2, "old")),
        (line("4711", "4711", "5-199%4", "2"), None),
        (line("4712", "4711", "13", "2"), None),
        (line("4711", "4711", "12", ""), None),
        ("", None),
        ("slurm_load_jobs error", None),
    ],
)
def test_squeue_is_read_by_columns(told: str, found: RunningJob | None) -> None:
    assert row_of(told, "4711") == found
