"""munged, slurmctld and some slurmd of the distribution on loopback, for one test.

All of it lies in one temporary folder: key, socket, state, spool, logs.  The nodes have names of
this room alone, so their cgroups (``slurm_NODE``: slurmd built for several on one host, as Debian
builds it) are told from anybody else's, and go with it.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from seawall.proc.parent_death import die_with_parent

PROGRAMS = {
    "munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client",
}  # fmt: skip
"""Each with the Debian package that has it."""
TREES = Path("/sys/fs/cgroup")
READY_SECONDS = 60
END_SECONDS = 20

CONFIGURATION = """
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
FirstJobId={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket,cred_expire={cred}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/{gathers}
JobAcctGatherFrequency=1
PrologFlags=Contain
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmdTimeout=30
KillWait=2
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
NodeName={name}n[1-{count}] NodeHostname={host} NodeAddr=127.0.0.1 \
Port={node_ports} CPUs=8 RealMemory=8000
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""
"""``config_overrides``: the nodes have the processors that stand here, not the host's two."""
CGROUPS = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace={constrains}
ConstrainCores=no
ConstrainDevices=no
"""


def missing() -> str:
    """Why no Slurm can run here, and the command that would provide it; empty if it can."""
    if os.geteuid():
        return "not root: slurmd starts jobs as other users"
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f"no {program}: apt-get install {package}"
    if not (TREES / "memory/memory.usage_in_bytes").exists():
        return "cgroup v1 does not count memory here: this room's Slurm has the plugin cgroup/v1"
    return ""


class SlurmRoom:
    """``with SlurmRoom() as room``: idle nodes when it is entered, gone when it is left."""

    def __init__(
        self, *, constrains: bool = True, gathers: str = "cgroup", health: Path | None = None,
        nodes: int = 4, settings: str = "", cred_seconds: int = 120, interval_seconds: int = 5,
    ) -> None:  # fmt: skip
        """``constrains``: ConstrainRAMSpace of cgroup.conf, a limit of each job's cgroup;
        ``gathers``: the plugin that samples memory, ``linux`` makes no cgroup for it; ``health``:
        the HealthCheckProgram, started every ``interval_seconds``; ``settings``: further lines of
        slurm.conf, which win; ``cred_seconds``: a job that is requeued waits so long.
        """
        self.constrains, self.gathers, self.health = constrains, gathers, health
        self.settings, self.cred_seconds = settings, cred_seconds
        self.name = f"sw{secrets.token_hex(3)}"
        self.interval_seconds = interval_seconds
        self.nodes = [f"{self.name}n{number}" for number in range(1, nodes + 1)]
        self.folder = Path()
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> "SlurmRoom":  # noqa: PYI034 - Self is of 3.11
        with contextlib.ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="seawall-slurm-"))
            self.folder.chmod(0o755)  # munged's socket is for users
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.callback(self.stop)
            self.write_settings()
            self.start_parts()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    # --- parts --------------------------------------------------------------------------

    def write_settings(self) -> None:
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").touch(mode=0o400)
        (munge / "key").write_bytes(secrets.token_bytes(128))
        for name in ("state", "log", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        (self.folder / "out").mkdir()
        (self.folder / "out").chmod(0o1777)
        ports = free_ports(1 + len(self.nodes))
        settings = CONFIGURATION.format(
            name=self.name, host=socket.gethostname().partition(".")[0], folder=self.folder,
            ports=ports, count=len(self.nodes), cred=self.cred_seconds,
            node_ports=",".join(map(str, ports[1:])), gathers=self.gathers,
            first=100 + secrets.randbelow(1_000_000),
            task="cgroup" if self.constrains else "none",
        )  # fmt: skip
        if self.health is not None:
            settings += f"HealthCheckProgram={self.health}\n"
            settings += f"HealthCheckInterval={self.interval_seconds}\n"
        (self.folder / "slurm.conf").write_text(settings + self.settings)
        words = "yes" if self.constrains else "no"
        (self.folder / "cgroup.conf").write_text(CGROUPS.format(constrains=words))

    def start_parts(self) -> None:
        munge = self.folder / "munge"
        self.start(
            "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
            f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed",
        )  # fmt: skip
        self.wait((munge / "socket").exists, "munged")
        self.start("slurmctld", "-D", "-c", "-f", f"{self.folder}/slurm.conf")
        for node in self.nodes:
            self.start_node(node)
        self.wait(lambda: self.states() == dict.fromkeys(self.nodes, "idle"), "idle nodes")

    def start_node(self, node: str, *more: str) -> None:
        """``-b``: it says that it has booted since."""
        self.start("slurmd", "-D", "-N", node, "-f", f"{self.folder}/slurm.conf", *more, part=node)

    def start(self, program: str, *arguments: str, part: str = "") -> None:
        name = part or program
        parent = os.getpid()
        with (self.folder / f"log-{name}").open("ab") as log:
            self.parts[name] = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=self.environment, preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 - one thread
            )  # fmt: skip

    def kill_node(self, node: str) -> None:
        """As if it lost its power: slurmd and all that its jobs had."""
        slurmd = self.parts.pop(node)
        slurmd.kill()
        slurmd.wait()
        self._end_jobs(node)

    def stop(self) -> None:
        if "slurmctld" in self.parts:
            with contextlib.suppress(subprocess.SubprocessError):
                self.command("scancel", "--full", "--state=running", "--user=root", seconds=5)
        for name, part in reversed(self.parts.items()):
            if name != "munged":
                part.terminate()
        for part in self.parts.values():
            part.terminate()
            try:
                part.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()
        for node in self.nodes:
            self._end_jobs(node)
            for tree in TREES.iterdir():
                remove_cgroups(tree / f"slurm_{node}")

    def _end_jobs(self, node: str) -> None:
        """slurmstepd lives on when slurmd ends: every process of this node's cgroups."""
        until = time.monotonic() + END_SECONDS
        while (pids := self.pids(node)) and time.monotonic() < until:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def pids(self, node: str) -> set[int]:
        """Of all jobs on it; slurmd itself is in none of these cgroups."""
        found = set()
        for tree in TREES.iterdir():
            for user in tree.glob(f"slurm_{node}/uid_*"):
                for folder in (user, *folders_below(user)):  # they come and go under our eyes
                    with contextlib.suppress(OSError):
                        found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
        return found

    # --- what administrators and users do --------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}

    def command(self, *words: str, seconds: float = 20, **variables: str) -> str:
        done = subprocess.run(
            words, env=self.environment | variables, cwd=self.folder / "out", timeout=seconds,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stderr[-500:]}")
        return done.stdout

    def submit(self, script: str, *options: str, user: str = "games", **variables: str) -> int:
        """The number of a new job of ``user``, whose output is ``output(number)``."""
        told = self.command(
            "sbatch", "--parsable", f"--uid={user}", f"--output={self.folder}/out/%A_%a",
            "--open-mode=append", *options, "--wrap", script, **variables,
        )  # fmt: skip
        return int(told.partition(";")[0])

    def output(self, job: int, task: int | None = None) -> str:
        """What a job printed so far, with slurmstepd's words; 4294967294 is "no task of an
        array" (NO_VAL).
        """
        number = 4294967294 if task is None else task
        path = self.folder / f"out/{job}_{number}"
        return path.read_text() if path.exists() else ""

    def log(self, part: str) -> str:
        """Of slurmctld, munged or a node."""
        return (self.folder / f"log-{part}").read_text(errors="replace")

    def states(self) -> dict[str, str]:
        """Of each node; empty while slurmctld does not answer."""
        try:
            told = self.command("sinfo", "--noheader", "--Node", "--format=%N %t", seconds=5)
        except (RuntimeError, subprocess.TimeoutExpired):
            return {}
        return dict(line.split()[:2] for line in told.splitlines())

    def job_folder(self, job: int, tree: str = "memory") -> Path | None:
        """Its cgroup on the first node that has one."""
        found = sorted((TREES / tree).glob(f"slurm_{self.name}n*/uid_*/job_{job}"))
        return found[0] if found else None

    def wait(self, is_so: Callable[[], object], what: str, seconds: float = READY_SECONDS) -> None:
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until:
                last = {name: self.log(name)[-600:] for name in self.parts}
                raise TimeoutError(f"{what}: not within {seconds:g} s; logs end with {last}")
            time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def remove_cgroups(folder: Path) -> None:
    """It and all below it, children first; one that fills up again stays."""
    for below in reversed([folder, *sorted(folders_below(folder))]):
        for _ in range(500):
            try:
                below.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)  # a task leaves its cgroup a moment after it was reaped
            else:
                break


def folders_below(folder: Path) -> Iterator[Path]:
    for top, names, _ in os.walk(folder):
        yield from (Path(top) / name for name in names)
