"""What a guard opens on its node, as strace says it: all of it is in the DaemonSet's pod."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.manifest import manifest
from tests.end_to_end.guard_room import Room, missing, own_environment, room, within

from seawall.readings import container_files

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.skipif(shutil.which("strace") is None, reason="apt-get install strace"),
]
OF_EVERY_CONTAINER = ("/proc", "/sys", "/dev")
"""With hostPID they are the host's; of /sys what is written is a mount of its own."""
OF_THE_INTERPRETER = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/ld.so.preload",
                      "/etc/localtime", *filter(None, sys.path))  # fmt: skip
OTHER_RUNTIMES = (
    *container_files.CONTAINERD[1:], *container_files.DOCKER_RUN, container_files.DOCKER_LIB,
    container_files.STORAGE_LIB, *(folder for folder, _ in container_files.OCI_STATE),
)  # fmt: skip
"""Looked for on every node.  In the manifest's pod they are absent, unless a line is changed."""
_CALL = re.compile(r"\b(?:open|openat|openat2|connect|bind)\(([^\n]*)")
_PATH = re.compile(r'(?:AT_FDCWD</[^>]*>, |AT_FDCWD, |sun_path=|\A)"(/[^"]*)"')
_STRACE = ("strace", "-f", "-qq", "--seccomp-bpf", "-s", "4096", "-e",
           "trace=open,openat,openat2,connect,bind", "-o")  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as found:
        found.write(mode="observe", blackbox=str(tmp_path / "box"))
        yield found


def test_all_that_it_opens_is_mounted(own: Room, tmp_path: Path) -> None:
    told = tmp_path / "strace.out"
    with (tmp_path / "out").open("w") as file:
        process = subprocess.Popen(
            [*own.enter, *_STRACE, str(told), sys.executable, "-m", "seawall", "guard", "run",
             "--config", str(own.config)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, text=True, env=own_environment(),
        )  # fmt: skip
    own.processes.append(process)
    assert within(90, lambda: own.page().get("watcher", "").startswith("heard "))
    assert within(60, lambda: container_files.STORAGE_RUN in told.read_text(errors="replace"))
    os.kill(own.page()["pid"], signal.SIGTERM)
    process.wait(60)
    opened = {
        path
        for call in _CALL.findall(told.read_text(errors="replace"))
        for path in _PATH.findall(call)
    }
    pod = manifest()["DaemonSet"]["spec"]["template"]["spec"]
    mounts = {place["mountPath"] for place in pod["containers"][0]["volumeMounts"]}
    python = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
    places = {*OF_EVERY_CONTAINER, *OF_THE_INTERPRETER, *OTHER_RUNTIMES, *python, str(tmp_path)}
    bare = {path for path in opened - {"/"} if not _is_below(path, mounts | places)}
    assert not bare, bare
    # And of what is mounted for names, nothing for nothing.
    for path in (container_files.LOG_LINKS, container_files.POD_LOGS,
                 container_files.CONTAINERD[0], container_files.STORAGE_RUN):  # fmt: skip
        assert path in mounts
        assert any(_is_below(one, {path}) for one in opened), path


def _is_below(path: str, places: set[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
