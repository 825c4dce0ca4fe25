"""Debian roots without this source tree: each test has a sheet of its own over a kept one."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from release.shipped_files import REPOSITORY

FRESH = ("trixie", "fresh", "python3,python3-venv,make,git,ca-certificates")
WITH_SYSTEMD = ("bookworm", "systemd", "systemd,systemd-sysv,dbus,python3,procps,rpm")
"""Debian 12, for the systemd of 13 does not live on cgroup v1 any more."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root",
}  # fmt: skip


def run(*words: object, **more: object) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **more
    )  # type: ignore[call-overload]
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return str(done.stdout)


def kept(suite: str, name: str, packages: str) -> Path:
    """The one that is kept, made where it is not; a skip that says why it cannot be."""
    words = [REPOSITORY / "tests/debian_root", suite, name, packages]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 75:
        pytest.skip(f"no Debian root: {done.stdout.strip()}")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@contextlib.contextmanager
def sheet_over(root: Path, folder: Path) -> Iterator[Path]:
    """What is written goes to memory, and is gone in the end."""
    sheet, merged = folder / "sheet", folder / "root"
    sheet.mkdir()
    merged.mkdir()
    # On a tmpfs: an overlay cannot lie over another one.
    run("mount", "-t", "tmpfs", "-o", "size=512m", "sheet", sheet)
    try:
        (sheet / "upper").mkdir()
        (sheet / "work").mkdir()
        layers = f"lowerdir={root},upperdir={sheet}/upper,workdir={sheet}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, merged)
        yield merged
    finally:
        subprocess.run(["umount", merged], check=False)
        subprocess.run(["umount", sheet], check=False)


def inside(root: Path, *words: str) -> str:
    """In the root, with a /proc of its own; all its processes end with the command."""
    return run(
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
        'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root, *words, env=ENVIRONMENT,
    )  # fmt: skip
