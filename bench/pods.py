"""250 pods for the guard's measurements: real cgroups, empty or lived in, or files like them."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"
PYTHON = "/usr/bin/python3.11" if os.path.exists("/usr/bin/python3.11") else sys.executable
PODS = 250
PROCESSES = 5_000
V1 = "/sys/fs/cgroup/memory"
FILES = {"memory.usage_in_bytes": b"1048576\n", "memory.limit_in_bytes": b"268435456\n"}
# The first of each container takes a MiB each second and gives it back, so that its charge moves.
_INHABITANTS = """
import mmap, os, signal, time
for folder in {folders!r}:
    for number in range({each}):
        if not os.fork():
            with open(folder + "/cgroup.procs", "w") as procs:
                procs.write("0")
            os.write(1, b".")
            while number or not {are_busy}:
                signal.pause()
            while True:
                time.sleep(1)
                taken = mmap.mmap(-1, 1 << 20)
                taken.write(bytes(1 << 20))
                taken.close()
signal.pause()
"""


def compile_sources() -> None:
    """Beforehand, for compiling in the measured process costs memory."""
    folders = [SOURCES / "seawall/guard", SOURCES / "seawall/actions"]
    subprocess.run([PYTHON, "-m", "compileall", "-q", *map(str, folders)], check=False)
    subprocess.run([PYTHON, "-m", "compileall", "-q", "-l", str(SOURCES / "seawall")], check=False)


def pod_folders(mount: str, pods: int) -> list[str]:
    """Outer folders first."""
    folders = [
        f"{mount}/kubepods",
        *(f"{mount}/kubepods/{qos}" for qos in ("burstable", "besteffort")),
    ]
    for number in range(pods):
        qos = ("/burstable", "/besteffort", "")[number % 3]
        pod = f"{mount}/kubepods{qos}/pod{number:08x}-0000-4000-8000-000000000000"
        folders += [pod, f"{pod}/{number + 1:064x}"]
    return folders


@contextmanager
def real_tree(pods: int) -> Iterator[str | None]:
    """So many pods below a cgroup of our own; None where one may not make any."""
    mount = f"{V1}/seawall-TEST-tick-{os.getpid()}"
    made: list[str] = []
    try:
        try:
            for folder in (mount, *pod_folders(mount, pods)):
                os.mkdir(folder)
                made.append(folder)
        except OSError:
            yield None
        else:
            yield mount
    finally:
        for folder in reversed(made):
            os.rmdir(folder)


@contextmanager
def inhabitants(
    mount: str, pods: int = PODS, processes: int = PROCESSES, *, are_busy: bool = False
) -> Iterator[int]:
    """Processes in the containers of a real tree; how many there are."""
    folders = [folder for folder in pod_folders(mount, pods) if len(folder.rsplit("/")[-1]) == 64]
    each = processes // len(folders)
    text = _INHABITANTS.format(folders=folders, each=each, are_busy=are_busy)
    with subprocess.Popen(
        [PYTHON, "-I", "-S", "-c", text], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            yield len(parent.stdout.read(each * len(folders)))
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(parent.pid)], check=False)
            _wait_until_empty(folders)


def _wait_until_empty(folders: Sequence[str]) -> None:
    """Else no cgroup can be removed."""
    for _ in range(100):
        if not any(Path(folder, "cgroup.procs").read_text() for folder in folders):
            return
        time.sleep(0.1)


@contextmanager
def file_tree(pods: int) -> Iterator[str]:
    """The same as files, in memory where there is a place."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    mount = tempfile.mkdtemp(prefix="seawall-tick-", dir=parent)
    try:
        for folder in pod_folders(mount, pods):
            os.mkdir(folder)
            for name, text in FILES.items():
                Path(folder, name).write_bytes(text)
        yield mount
    finally:
        shutil.rmtree(mount)


@contextmanager
def some_tree(pods: int) -> Iterator[tuple[str, str]]:
    """(mount, what it is)."""
    with real_tree(pods) as mount:
        if mount is not None:
            yield mount, "real cgroups"
            return
    with file_tree(pods) as mount:
        yield mount, "files"
