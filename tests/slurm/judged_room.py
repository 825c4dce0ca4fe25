"""A Slurm of two dozen nodes with jobs of several users, one of whom kills nodes, and the judge."""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.slurm.slurm_room import SlurmRoom

from seawall.agent.api_connection import REPORT
from seawall.agent.culprits import culprit_of
from seawall.agent.evidence_writer import EvidenceWriter
from seawall.agent.guard_page import PageHolder
from seawall.agent.node_messages import api_time, report_body
from seawall.cluster.slurm.slurm_rows import slurm_seconds

NODES = 24
TIMEOUT = 12
"""SlurmdTimeout: seconds until slurmctld gives a silent node up."""
KILLER = "games"
OTHERS = ("man", "mail", "news", "backup", "proxy", "list")
SETTINGS = f"""
SlurmdTimeout={TIMEOUT}
MessageTimeout=5
PrologFlags=Alloc
MinJobAge=600
"""
POLICY = """
dry_run = {dry_run}
approval = "auto"
watched_since = {since}
[brakes]
view_age_seconds = 60
"""
FOLDER = Path("/sys/fs/cgroup")


def judged_room(nodes: int = NODES, settings: str = "") -> SlurmRoom:
    """A requeued job waits until its credential is over: two minutes, if nobody says less."""
    return SlurmRoom(constrains=False, nodes=nodes, settings=SETTINGS + settings, cred_seconds=5)


class SlurmJudge:
    """``seawall cluster controller --slurm`` as a process, and the person's verbs."""

    def __init__(
        self, room: SlurmRoom, folder: Path, *, days: float = 30.0, dry_run: bool = False,
        more: str = "", evidence: Path | None = None,
    ) -> None:  # fmt: skip
        """``days``: for how long no node has died, by the administrator's word; ``evidence``: where
        nodes leave their records.
        """
        more += f'evidence = "{evidence}"\n' if evidence is not None else ""
        self.room, self.folder, self.state = room, folder, folder / "state"
        folder.mkdir(exist_ok=True)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - days * 86400.0))
        policy = POLICY.format(dry_run=str(dry_run).lower(), since=since)
        (folder / "slurm.toml").write_text(more + policy)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, poll: float = 1.0) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self._words("controller"), f"--policy={self.folder}/slurm.toml",
                 f"--poll={poll}"], stdout=log, stderr=log, env=self.room.environment,
            )  # fmt: skip

    def stop(self) -> int:
        assert self.process
        self.process.terminate()
        status = self.process.wait(30)
        self.process = None
        return status

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words(*words), capture_output=True, text=True, check=False, timeout=100,
            env=self.room.environment,
        )  # fmt: skip

    def suspects(self) -> dict[str, Any]:
        done = self.verb("suspects", "--json")
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def states(self) -> dict[str, str]:
        """Of each quarantine."""
        return {one["name"]: one["state"] for one in self.suspects()["suspects"]}

    def read(self) -> dict[str, Any]:
        """The folder's own file; empty before the first look."""
        with contextlib.suppress(FileNotFoundError):
            document: dict[str, Any] = json.loads((self.state / "state.json").read_text())
            return document
        return {}

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def _words(self, verb: str, *more: str) -> list[str]:
        return [
            sys.executable, "-m", "seawall", "cluster", verb, "--slurm", f"--state={self.state}",
            *more,
        ]  # fmt: skip


@contextlib.contextmanager
def judge_of(room: SlurmRoom, **more: Any) -> Iterator[SlurmJudge]:
    with tempfile.TemporaryDirectory(prefix="seawall-judge-") as folder:
        judge = SlurmJudge(room, Path(folder), **more)
        try:
            yield judge
        except BaseException:
            sys.stderr.write(f"{judge.log()[-6000:]}\n{judge.read().get('message')}\n")
            raise
        finally:
            if judge.process is not None:
                judge.process.kill()
                judge.process.wait()


class NodeKiller:
    """Each node that a job of the named user runs on dies two seconds later, and boots anew."""

    def __init__(
        self, room: SlurmRoom, user: str = KILLER, *, reboots: bool = True,
        evidence: Path | None = None,
    ) -> None:  # fmt: skip
        """``evidence``: before its end each node says there who took its memory."""
        self.room, self.user, self.reboots, self.evidence = room, user, reboots, evidence
        self.killed: list[str] = []
        self.died_at: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "NodeKiller":  # noqa: PYI034 - Self is of 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(1.0):
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                self._kill()
                if self.reboots:
                    self.reboot()

    def _kill(self) -> None:
        told = self.room.command(
            "squeue", "--noheader", f"--user={self.user}", "--states=R", "--format=%N"
        )
        nodes = {node for node in told.split() if node not in self.died_at}
        if nodes:
            self._stop.wait(2.0)
        for node in sorted(nodes):
            if self.evidence is not None:
                leave_record(self.room, node, self.evidence, self.user)
            self.room.kill_node(node)
            self.killed.append(node)
            self.died_at[node] = time.monotonic()

    def reboot(self, *, whole: bool = False) -> None:
        """Nodes that slurmctld has given up for five seconds; ``whole``: all."""
        states = self.room.states()
        for node, died in list(self.died_at.items()):
            if whole or (states.get(node, "").startswith("down") and time.monotonic() - died > 20):
                self.room.start_node(node, "-b")
                del self.died_at[node]


def leave_record(room: SlurmRoom, node: str, folder: Path, user: str = KILLER) -> None:
    """As its agent does it, while its guard proves that this user's job took the memory.  Nodes of
    one machine have one kernel: when they booted is what slurmctld was told.
    """
    asked = ("squeue", "--noheader", "--states=R", f"--user={user}", f"--nodelist={node}")
    job = room.command(*asked, "--format=%A").split()[0]
    cgroup = next(Path("/sys/fs/cgroup").glob(f"*/slurm_{node}/uid_*/job_{job}"))
    told = room.command("scontrol", "-o", "show", "node", node, TZ="UTC")
    booted = slurm_seconds(told.partition(" BootTime=")[2].partition(" ")[0])
    assert booted is not None
    path = "/" + "/".join(cgroup.parts[5:])
    culprit = culprit_of(PageHolder(f"slurm:{job}", path, 0, 6 << 30, 7 << 30), is_proved=True)
    assert culprit is not None
    now = api_time(time.time())
    body = report_body(node, {
        "at": now, "sequence": 1, "bootID": f"boot-of-{node}", "bootedAt": api_time(booted),
        "guard": {"state": "short", "mode": "observe"},
        "distress": {
            "at": now, "uncountedBytes": 8 << 30, "culprits": [culprit.document()],
        },
    })  # fmt: skip
    writer = EvidenceWriter(str(folder), node)
    try:
        writer.send(REPORT, body)
    finally:
        writer.end()


def start_innocents(room: SlurmRoom, jobs: int) -> list[int]:
    """Jobs of other users on all nodes, a few of each; their numbers when all of them run."""
    numbers = []
    for number in range(jobs):
        node = room.nodes[number % len(room.nodes)]
        numbers.append(
            room.submit(
                f"echo {number}; exec sleep 3000",
                f"--nodelist={node}",
                "--cpus-per-task=1",
                "--mem=50",
                f"--job-name=work-{number}",
                "--time=60",
                user=OTHERS[number % len(OTHERS)],
            )
        )
        time.sleep(0.2)
    room.wait(lambda: set(numbers) <= set(running(room)), "innocents that run", 120)
    return numbers


def running(room: SlurmRoom) -> list[int]:
    told = room.command("squeue", "--noheader", "--states=R", "--format=%A")
    return [int(word) for word in told.split()]


def rows(room: SlurmRoom, user: str) -> list[tuple[str, str, str, int]]:
    """Number, state, reason and priority of each job that waits or runs."""
    told = room.command("squeue", "--noheader", "--all", f"--user={user}", "--format=%A|%T|%r|%Q")
    found = []
    for line in told.splitlines():
        number, state, reason, priority = line.split("|")
        found.append((number, state, reason, int(priority)))
    return found


def is_held(room: SlurmRoom, user: str = KILLER) -> bool:
    """All that is left of the user's jobs."""
    found = rows(room, user)
    return bool(found) and all(priority == 0 for *_, priority in found)
