"""The agent of a node of Slurm: its last words in a folder that may be anybody's, or may hang."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.agent.pages import MIB, Pages
from tests.agent.test_agent_process import environment
from tests.guard.telling import group

from seawall.agent.api_connection import OLD_REPORT, REPORT, ApiProblem
from seawall.agent.culprits import workload_id
from seawall.agent.evidence_writer import EvidenceWriter
from seawall.cluster.objects.node_report_object import node_report_object
from seawall.problems import UsageProblem

JOB = "/slurm_n7/uid_1000/job_4711/step_batch"
OWNER = 12345


@pytest.fixture
def shared() -> Iterator[Path]:
    """Not below pytest's own folder, which only root may enter."""
    with TemporaryDirectory(prefix="seawall-shared-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def written(folder: Path) -> Iterator[EvidenceWriter]:
    writer = EvidenceWriter(str(folder), "n7")
    try:
        writer.prepare()
        yield writer
    finally:
        writer.end()


def until(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_process_writes_what_the_guard_proves_as_the_folders_owner(
    tmp_path: Path, shared: Path
) -> None:
    if not os.geteuid():
        os.chown(shared, OWNER, OWNER)
    (tmp_path / "slurm.toml").write_text(f'[slurm]\nevidence = "{shared}"\n')
    pages = Pages(tmp_path / "run")
    pages.peace()
    with (tmp_path / "log").open("wb") as log:
        agent = subprocess.Popen(
            [sys.executable, "-m", "seawall", "agent", "--slurm", "--node-name", "Node_7",
             "--config", str(tmp_path / "slurm.toml"), "--run-folder", str(pages.folder),
             "--blackbox", ""], env=environment(), stderr=log,
        )  # fmt: skip
    file = shared / "Node_7.json"
    try:
        until(lambda: "node Node_7" in (tmp_path / "log").read_text())
        time.sleep(1.0)
        assert not file.exists()  # in peace nothing is told
        now = time.time()
        pages.decide(path=JOB, name="slurm:4711@alice")
        held = [group("slurm:4711@alice", JOB, outside=1900 * MIB, most=2048 * MIB)]
        pages.short(decided=True, top=held, at=now)
        until(file.exists)
        report = node_report_object(json.loads(file.read_bytes()))
    finally:
        agent.terminate()
        assert agent.wait(60) == 0
    assert (report.node, file.stat().st_mode & 0o777) == ("Node_7", 0o644)
    assert file.stat().st_uid == (OWNER if not os.geteuid() else os.geteuid())
    assert report.distress is not None
    (culprit,) = report.distress.culprits
    assert (culprit.pod_uid, culprit.is_proved) == ("slurm:4711", True)
    assert report.booted_seconds is not None
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(now - uptime - report.booted_seconds) < 30.0
    assert [path.name for path in shared.iterdir()] == ["Node_7.json"]


def test_a_file_is_replaced_whole_and_read_again(shared: Path) -> None:
    with written(shared) as writer:
        assert writer.send(OLD_REPORT).status == 404
        for body in (b'{"a": 1}', b'{"b": 2}'):
            writer.send(REPORT, body)
            assert (shared / "n7.json").read_bytes() == body
            assert writer.send(OLD_REPORT).body == body


def test_a_link_that_somebody_put_there_is_not_followed(shared: Path) -> None:
    (shared / "other").write_text("mine")
    (shared / ".n7.part").symlink_to(shared / "other")
    with written(shared) as writer, pytest.raises(ApiProblem, match="symbolic links"):
        writer.send(REPORT, b"{}")
    assert (shared / "other").read_text() == "mine"


def test_where_others_may_write_nothing_is_told(shared: Path) -> None:
    shared.chmod(0o1777)
    with written(shared) as writer:
        with pytest.raises(ApiProblem, match="others may write there"):
            writer.send(REPORT, b"{}")
        assert not list(shared.iterdir())
        shared.chmod(0o755)
        writer.send(REPORT, b"{}")
    with written(shared / "none") as writer, pytest.raises(ApiProblem, match="No such file"):
        writer.send(REPORT, b"{}")


def test_a_server_that_hangs_costs_seconds_and_one_child(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seawall.agent.evidence_writer.WRITE_SECONDS", 0.2)
    monkeypatch.setattr(EvidenceWriter, "_replace", _slow_replace)
    with written(shared) as writer:
        child = writer.pid
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(ApiProblem, match="no answer for"):
                writer.send(REPORT, b"late")
            assert time.monotonic() - began < 3.0
        until((shared / "n7.json").exists)
        assert (shared / "n7.json").read_bytes() == b"late"
        until(lambda: _is_taken(writer))
        assert writer.pid == child


def _slow_replace(writer: EvidenceWriter, data: bytes) -> None:
    if data == b"late":
        time.sleep(2.0)
    (Path(writer.folder) / "n7.json").write_bytes(data)


def _is_taken(writer: EvidenceWriter) -> bool:
    try:
        return writer.send(REPORT, b"now").status == 200
    except ApiProblem:
        return False


def test_the_agent_ends_with_who_writes_for_it(shared: Path) -> None:
    with written(shared) as writer:
        writer.send(REPORT, b"{}")
        os.kill(writer.pid, signal.SIGKILL)
        with pytest.raises(UsageProblem, match="who wrote there ended"):
            writer.send(REPORT, b"{}")


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--node-name", "../n7"), "no name of a node"), (("--config", "/nowhere.toml"), "No such"),
     (("--config", "{empty}"), "where do records go?")],
)  # fmt: skip
def test_what_is_missing_is_said_in_a_line(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.toml").write_text("")
    words = tuple(word.replace("{empty}", f"{tmp_path}/empty.toml") for word in words)
    done: Any = subprocess.run(
        [sys.executable, "-m", "seawall", "agent", "--slurm", *words], env=environment(),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("cgroup", "named"),
    [
        (JOB, "slurm:4711"),
        ("/system.slice/slurmstepd.scope/job_9/step_0/user/task_0", "slurm:9"),
        ("/system.slice/slurmstepd.scope/sEKNKTV3WPV500", "slurm:sEKNKTV3WPV500"),
        ("/user.slice/user-1000.slice/user@1000.service/slurm/uid_0/job_5", ""),
        (f"/docker/{'ab' * 32}/slurm/uid_0/job_5", ""),
        ("/system.slice/slurmd.service", ""),
    ],
)
def test_a_job_is_named_by_what_slurmd_made_and_nobody_else(cgroup: str, named: str) -> None:
    assert workload_id(cgroup) == named
