"""Innocents at full load beside a culprit, each in a cgroup of its own.

    with innocents(tmp_path) as others, ring_hog(256 * MIB) as hog:
        ...                       # arm the tracer
        hog.go()                  # returns when all of it is held
        ...                       # hog.group is named; nobody of others.groups is
        others.assert_busy()

The programs are in ``kernel_loads``, which also runs alone in containers and VMs (``in_shell``).
"""

import contextlib
import os
import secrets
import shlex
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.end_to_end import cgroups

PROGRAM = Path(__file__).with_name("kernel_loads.py")
MIB = 1 << 20
GIB = 1 << 30
NOT_BLAMED_BYTES = 64 * MIB
"""No innocent may ever be charged with more."""
LEAST_A_SECOND = {"sender": 50 * MIB, "receiver": 50 * MIB, "forker": 50, "loader": 30 * MIB}
"""An innocent that does less proves nothing; far below what any machine does."""


def why_no_rings() -> str | None:
    """Why packet rings cannot be made here."""
    import socket

    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (OSError, AttributeError) as error:
        return f"packet sockets need CAP_NET_RAW ({error}): sudo make test-system"
    return None


@dataclass
class Member:
    """A program at work in a cgroup of its own."""

    name: str
    process: subprocess.Popen[str]
    group: cgroups.Cgroup
    progress: Path | None = None
    began: float = field(default_factory=time.monotonic)
    before: int = 0

    @property
    def path(self) -> str:
        """Its cgroup as ``seawall pods`` shows it."""
        home = cgroups.memory_home()
        return "/" + str(self.group.path.relative_to(home or "/"))

    @property
    def pid(self) -> int:
        return self.process.pid

    def go(self) -> None:
        """Let a culprit begin that waits for it; returns when it holds all that it wants."""
        self.begin()
        self.read("ready")

    def begin(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def read(self, word: str) -> str:
        """The next line that begins with ``word``; the test fails when the program dies first."""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(word):
                return line.strip()
        raise AssertionError(f"{self.name} ended: {self.process.wait()}")

    def done(self) -> int:
        """What it counted so far."""
        raw = self.progress.read_bytes() if self.progress and self.progress.exists() else b""
        return sum(number for (number,) in struct.iter_unpack("=Q", raw[: len(raw) & ~7]))


@dataclass(frozen=True)
class Innocents:
    """All of them, by name."""

    members: Mapping[str, Member]

    @property
    def groups(self) -> Mapping[str, str]:
        """name -> cgroup path, as Seawall shows it."""
        return {name: member.path for name, member in self.members.items()}

    def assert_busy(self) -> None:
        """They lived and worked all the time; else the test proved nothing."""
        for name, member in self.members.items():
            assert member.process.poll() is None, f"{name} died"
            seconds = time.monotonic() - member.began
            rate = (member.done() - member.before) / seconds
            assert rate > LEAST_A_SECOND[name], f"{name}: only {rate:.0f} a second"


@contextlib.contextmanager
def member(
    name: str,
    words: Sequence[str],
    *,
    limit_bytes: int = 256 * MIB,
    progress: Path | None = None,
    cgroup_name: str | None = None,
) -> Iterator[Member]:
    """One program of ``kernel_loads`` in a cgroup of its own, killed at the end."""
    own = cgroup_name or f"seawall-t-{name}-{os.getpid()}-{secrets.token_hex(2)}"
    environment = {**os.environ, **({"PROGRESS": str(progress)} if progress else {})}
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(cgroups.cgroup(own, limit_bytes))
        process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(PROGRAM), "enter", group.entry, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        stack.callback(_end, process)
        yield Member(name, process, group, progress)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream:
                stream.close()


@contextlib.contextmanager
def innocents(
    folder: Path, *, a_second: int = 500, model_bytes: int = GIB, mib_per_second: int = 300
) -> Iterator[Innocents]:
    """A TCP sender and its receiver at full rate, a forker, and a loader of a model that does
    not fit into its limit; all at work when this yields.
    """
    with contextlib.ExitStack() as stack:

        def start(name: str, *words: str, limit_bytes: int = 256 * MIB) -> Member:
            at_work = member(name, words, limit_bytes=limit_bytes, progress=folder / f"{name}.done")
            return stack.enter_context(at_work)

        receiver = start("receiver", "receive", "0")
        port = receiver.read("ready").split()[1]
        found = [receiver, start("sender", "send", port), start("forker", "forks", str(a_second))]
        model = (str(folder / "model"), str(model_bytes), str(mib_per_second))
        found.append(start("loader", "load_model", *model, limit_bytes=model_bytes // 2))
        for one in found[1:]:
            one.read("ready")
        time.sleep(0.3)
        for one in found:
            one.began, one.before = time.monotonic(), one.done()
        yield Innocents({one.name: one for one in found})


@contextlib.contextmanager
def ring_hog(
    size: int, *, mib_per_second: float = 0, limit_bytes: int = 200 * MIB, name: str = "hog"
) -> Iterator[Member]:
    """Packet rings of ``size`` bytes in a cgroup with a smaller limit; begins at ``go()``."""
    with member(
        name, ("rings", str(size), str(mib_per_second), "stdin"), limit_bytes=limit_bytes
    ) as hog:
        hog.read("waiting")
        yield hog


@contextlib.contextmanager
def forking_hog(
    size: int, *, sockets: int = 8, limit_bytes: int = 200 * MIB, name: str = "forkinghog"
) -> Iterator[Member]:
    """Each ring is taken by a process that hands its socket on (SCM_RIGHTS) and exits; at the
    end a last child, forked, holds all of them.  Begins at ``go()``.
    """
    words = ("rings_forked", str(size), str(sockets), "stdin")
    with member(name, words, limit_bytes=limit_bytes) as hog:
        hog.read("waiting")
        yield hog


@contextlib.contextmanager
def passing_hog(
    size: int, folder: Path, *, limit_bytes: int = 200 * MIB
) -> Iterator[tuple[Member, Member]]:
    """A culprit that gives its socket to another workload, and that workload.  The first one
    allocated, so it stays to blame.  Begins at ``go()`` of the first.
    """
    path = str(folder / "keeper.sock")
    with (
        member("keeper", ("keep", path)) as keeper,
        member(
            "passer", ("rings_passed", str(size), path, "stdin"), limit_bytes=limit_bytes
        ) as hog,
    ):
        keeper.read("ready")
        hog.read("waiting")
        yield hog, keeper


# --- in the shell of a VM ------------------------------------------------------------------


def in_shell(
    group: str,
    *words: str,
    python: str = "/usr/bin/python3.11",
    limit_bytes: int = 256 * MIB,
    out: str | None = None,
    cpu_weight: int = 100,
) -> str:
    """Lines for a job of a VM (cgroup v2, ``$JOB/kernel_loads.py``): a cgroup below the root,
    and the program in it, in the background; ``out`` has its output.

    With a low ``cpu_weight`` it takes all that is left over, and leaves the rest to others.
    """
    home = f"/sys/fs/cgroup/{group}"
    command = shlex.join([python, "-S", "-E"]) + " $JOB/kernel_loads.py " + shlex.join(
        ["enter", f"{home}/cgroup.procs", *words]
    )  # fmt: skip
    return (
        f"mkdir -p {home}; echo {limit_bytes} > {home}/memory.max\n"
        f"echo {cpu_weight} > {home}/cpu.weight\n"
        f"PROGRESS=/run/{group}.done {command} > {out or f'/run/{group}.out'} 2>&1 </dev/null &\n"
    )


def guest_files() -> dict[str, bytes]:
    """For ``vm.run_job(files=...)``."""
    return {"kernel_loads.py": PROGRAM.read_bytes()}


def guest_innocents(
    *, a_second: int = 500, model_bytes: int = 256 * MIB, rate: int = 300, cpu_weight: int = 100
) -> str:
    """All innocents in a VM, as cgroups ``inno-NAME``; goes on when they are at work."""
    model = ("load_model", "/root/model", str(model_bytes), str(rate))
    half = model_bytes // 2
    return (
        in_shell("inno-receiver", "receive", "7001", cpu_weight=cpu_weight)
        + in_shell("inno-sender", "send", "7001", cpu_weight=cpu_weight)
        + in_shell("inno-forker", "forks", str(a_second), cpu_weight=cpu_weight)
        + in_shell("inno-loader", *model, limit_bytes=half, cpu_weight=cpu_weight)
        + "for n in receiver sender forker loader; do tries=0\n"
        + "until grep -q ready /run/inno-$n.out || [ $((tries += 1)) -gt 300 ]\n"
        + "do sleep 0.1; done; done\n"
    )
