"""The test driver of ``module/``, built against Debian's headers for the kernel of the VM."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.kernels import vm

HOME = Path(__file__).with_name("module")
SOURCES = ("Makefile", "held_tracepoints.c", "nvidia.c", "seawall_pages.c")
MODULES = ("held_tracepoints.ko", "nvidia.ko", "seawall_pages.ko")
CACHE = Path(tempfile.gettempdir()) / f"seawall-test-modules-{os.getuid()}"


def _release() -> str:
    return Path(vm.debian_kernel()).name.removeprefix("vmlinuz-")


def missing() -> str | None:
    """What keeps it from being built here, and the command that would provide it."""
    if why := vm.missing():
        return why
    tools = {"make": "make", "gcc": "gcc"}
    packages = [package for tool, package in tools.items() if not shutil.which(tool)]
    if not Path(f"/lib/modules/{_release()}/build/Makefile").exists():
        packages.append(f"linux-headers-{_release()}")
    if packages:
        return f"the test driver needs {', '.join(packages)}: apt-get install {' '.join(packages)}"
    return None


def built() -> Mapping[str, bytes]:
    """name -> module; built once for each source and kernel, some 15 seconds."""
    digest = hashlib.sha256(_release().encode())
    for name in SOURCES:
        digest.update((HOME / name).read_bytes())
    kept = CACHE / digest.hexdigest()[:16]
    if not _is_ours(kept):
        _build(kept)
    return {name: (kept / name).read_bytes() for name in MODULES}


def hold_tracepoints(root: Path) -> None:
    """Into an image: no VM hangs at a traced instruction (module/held_tracepoints.c says why)."""
    if not missing():
        (root / vm.HELD[1:]).write_bytes(built()["held_tracepoints.ko"])


def _is_ours(kept: Path) -> bool:
    """What others may have put there is not loaded into a kernel, not even into a VM's."""
    found = kept.parent.stat() if kept.exists() else None
    return found is not None and found.st_uid == os.getuid() and found.st_mode & 0o077 == 0


def _build(kept: Path) -> None:
    if CACHE.exists() and not _is_ours(CACHE / "."):
        shutil.rmtree(CACHE)
    CACHE.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        for name in SOURCES:
            shutil.copy(HOME / name, folder)
        done = subprocess.run(
            ["make", "-C", f"/lib/modules/{_release()}/build", f"M={folder}", "modules"],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        whole = folder / "whole"
        whole.mkdir()
        for name in MODULES:
            shutil.copy(folder / name, whole)
        if not kept.exists():
            whole.replace(kept)  # at once: what is kept has all of them
    finally:
        shutil.rmtree(folder, ignore_errors=True)
