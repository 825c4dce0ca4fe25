# SPDX-License-Identifier: Apache-2.0
"""Which low-level runtimes (runc, crun) and which systemd this machine has, as they say themselves.

Only ``PROGRAM --version`` is run, of runc and crun and of no wrapper around them: of files that
root owns and nobody else may write, with an empty environment, for less than a second, and they die
with whoever asked.  Which program starts containers: containerd's shim writes its path into the
bundle (``runtime``, containerd 1.3 and later; empty: ``runc`` by PATH).  systemd touches
/run/systemd/systemd-units-load whenever it has loaded its units: at boot and at every
daemon-reload (src/core/manager.c; 250 and later), and so does ``systemd-analyze verify``.  Before
that the folders of its generators tell, which it makes anew each time.
"""

import os
import select
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from seawall.host.device_access.apart import problem, problem_of
from seawall.host.host import JSON
from seawall.proc.parent_death import die_with_parent

_BOOTED: Final = "/run/systemd/system"
_UNITS_LOAD: Final = "/run/systemd/systemd-units-load"
_GENERATED: Final = tuple(f"/run/systemd/generator{kind}" for kind in ("", ".early", ".late"))
_SYSTEMD: Final = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
_BUNDLES: Final = (
    "/run/containerd/io.containerd.runtime.v2.task",
    "/run/k3s/containerd/io.containerd.runtime.v2.task",
    "/var/run/docker/containerd/daemon/io.containerd.runtime.v2.task",
)
_FOLDERS: Final = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
    "/var/lib/rancher/k3s/data/current/bin", "/var/lib/rancher/rke2/bin", "/usr/libexec/crio",
)  # fmt: skip
_NAMES: Final = ("runc", "crun")
_BUNDLES_MOST: Final = 2000
_PROGRAMS_MOST: Final = 8
_TEXT_MOST: Final = 4096
_EACH_SECONDS: Final = 0.8
_ALL_SECONDS: Final = 1.8
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def runtime_versions() -> JSON:
    """{"runtimes": [[path, text], ...], "told": [path, ...], "systemd": text or null,
    "units_loaded": seconds or null}; ``{"problem": [why, words]}`` stands for a text that did not
    come.  ``told``: those that bundles of running containers name, or leave to the PATH.
    ``units_loaded``: Unix time.
    """
    until = time.monotonic() + _ALL_SECONDS
    named, found = set(_told()), list(_found())
    told = {real for path in named if _is_known(path) and _is_known(real := os.path.realpath(path))}
    if not all(map(_is_known, named)):
        told.update(found)  # what a PATH finds runs some of them
    paths = dict.fromkeys([*sorted(told), *found])
    rows: list[JSON] = [[path, _said(path, until)] for path in list(paths)[:_PROGRAMS_MOST]]
    is_booted = os.path.isdir(_BOOTED)
    systemd = next((path for path in _SYSTEMD if os.path.exists(path)), "")
    return {
        "runtimes": rows,
        "told": list[JSON](sorted(told)[:_PROGRAMS_MOST]),
        "systemd": _said(systemd, until) if is_booted and systemd else None,
        "units_loaded": _units_loaded() if is_booted else None,
    }


def _told() -> Iterator[str]:
    """What the shims of running containers run."""
    left = _BUNDLES_MOST
    for root in _BUNDLES:
        for namespace in _listed(root):
            for key in _listed(f"{root}/{namespace}")[: max(0, left)]:
                left -= 1
                with suppress(OSError):
                    yield _first_line(f"{root}/{namespace}/{key}/runtime")


def _is_known(path: str) -> bool:
    """Not NVIDIA's wrapper, which writes a log and runs what a PATH finds."""
    name = path.rpartition("/")[2]
    return path.startswith("/") and (name in _NAMES or name.endswith("-runc"))


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _first_line(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.fsdecode(os.read(fd, _TEXT_MOST).partition(b"\n")[0].strip(b"\0 "))
    finally:
        os.close(fd)


def _found() -> Iterator[str]:
    """Where a PATH would find one; each file once."""
    for folder in _FOLDERS:
        for name in _NAMES:
            real = os.path.realpath(f"{folder}/{name}")
            if os.path.exists(real) and _is_known(real):  # a link may lead to the wrapper
                yield real


def _units_loaded() -> float | None:
    found: list[float] = []
    for path in (_UNITS_LOAD, *_GENERATED):
        with suppress(OSError):
            found.append(os.lstat(path).st_mtime)
        if found and path == _UNITS_LOAD:
            break
    return max(found, default=None)


def _said(path: str, until: float) -> JSON:
    """The first lines that ``PATH --version`` prints; a problem where it is not root's alone or
    fails.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_uid or status.st_mode & _OTHERS_MAY_WRITE:
            return problem("refused", f"{path} is not root's alone, so it was not run")
        return _output(path, min(until, time.monotonic() + _EACH_SECONDS))
    except OSError as error:
        return problem_of(error.errno or 0)


def _output(path: str, until: float) -> JSON:
    child = subprocess.Popen(  # noqa: S603 - a file of root's alone, looked at before
        [path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=_ENVIRONMENT, cwd="/",
        preexec_fn=die_with_parent,  # noqa: PLW1509 - whoever asks has one thread
    )  # fmt: skip
    assert child.stdout is not None  # noqa: S101 - a pipe was asked for
    fd, data = child.stdout.fileno(), b""
    try:
        while len(data) < _TEXT_MOST:
            left = until - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                return problem("no_answer", f"{path} --version did not answer in time")
            part = os.read(fd, _TEXT_MOST - len(data))
            if not part:
                break
            data += part
    finally:
        child.stdout.close()
        child.kill()
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.2)
    return data.decode("utf-8", "replace")
