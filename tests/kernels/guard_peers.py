"""The peers from Debian 12: how each is started, by default and with its best tuning.

What is tuned is told by the files in ``peers/``; everything else is as the package has it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kernels.guard_node import Killer, add_to_image

SYSTEMD = ("systemd",)
PACKAGES = (*SYSTEMD, "earlyoom", "nohang", "oomd", "libjsoncpp25", "systemd-oomd")
CACHE = Path(tempfile.gettempdir()) / f"seawall-test-packages-{os.getuid()}"
PROGRAMS = ("usr/bin/oomd", "usr/bin/earlyoom", "lib/systemd/systemd", "bin/systemctl",
            "lib/systemd/systemd-oomd", "lib/systemd/systemd-executor")  # fmt: skip
SHARED = "usr/lib/x86_64-linux-gnu"
NOHANG = ("/usr/bin/python3.11", "/usr/sbin/nohang", "--monitor", "--config")
OOMD = ("/usr/bin/oomd", "--interval", "1", "--cgroup-fs", "/sys/fs/cgroup", "--config")
AVOID = "^(kubelet|containerd|containerd-shim|sshd|systemd)$"

ALL = (
    Killer("earlyoom", ("/usr/bin/earlyoom", "-r", "3600"), "sending SIGTERM"),
    Killer(
        "earlyoom",
        ("/usr/bin/earlyoom", "-r", "3600", "-p", "-m", "15,8", "-s", "100,100", "--avoid", AVOID),
        "sending SIGTERM", label="earlyoom tuned",
    ),
    Killer("nohang", (*NOHANG, "/etc/nohang/nohang.conf"), "Monitoring has started"),
    Killer("nohang", (*NOHANG, "/run/job/nohang-tuned.conf"), "Monitoring has started",
           label="nohang tuned"),
    Killer("oomd", (*OOMD, "/etc/oomd/oomd.json"), "oomd", is_v2_only=True),
    Killer("oomd", (*OOMD, "/run/job/oomd-tuned.json"), "oomd", is_v2_only=True,
           label="oomd tuned"),
    Killer("systemd-oomd", ("systemctl", "start", "systemd-oomd.service"), "up",
           needs_systemd=True, is_v2_only=True),
    Killer("systemd-oomd", ("/run/job/systemd-oomd-tuned",), "up",
           needs_systemd=True, is_v2_only=True, label="systemd-oomd tuned"),
)  # fmt: skip


def missing(names: Sequence[str] = PACKAGES) -> str | None:
    """What keeps the packages from being here, and the command that would provide them."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        return f"{', '.join(names)} come as Debian packages: there is no apt-get here"
    if "systemd" in names and not os.path.exists("/lib/systemd/systemd"):
        return "systemd needs its libraries: apt-get install systemd"
    try:
        packages(names)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{', '.join(names)}: apt-get download does not bring them ({error}): apt-get update"
    return None


def packages(names: Sequence[str] = PACKAGES) -> list[Path]:
    """Downloaded once; apt checks what came."""
    CACHE.mkdir(mode=0o700, exist_ok=True)
    if CACHE.stat().st_uid != os.getuid():
        raise PermissionError(f"{CACHE} belongs to somebody else")
    if lacking := [name for name in names if not list(CACHE.glob(f"{name}_*.deb"))]:
        subprocess.run(["apt-get", "download", *lacking], cwd=CACHE, check=True, timeout=120,
                       capture_output=True)  # fmt: skip
    return [path for name in names for path in CACHE.glob(f"{name}_*.deb")]


def add(root: Path, names: Sequence[str] = PACKAGES) -> None:
    """Into the image: the packages, what their programs need, and their users."""
    add_to_image(root)
    unpacked = root / "peers"
    for package in packages(names):
        subprocess.run(["dpkg", "-x", package, unpacked], check=True, timeout=60)
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(unpacked / name, ignore_errors=True)
    _merge(unpacked, root)
    _add_libraries(root, [root / name for name in PROGRAMS if (root / name).exists()])
    with open(root / "etc/passwd", "a") as users, open(root / "etc/group", "a") as groups:
        users.write("systemd-oom:x:998:998::/:/bin/sh\n")
        groups.write("root:x:0:\nsystemd-oom:x:998:\n")
    (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    units = root / "etc/systemd/system"
    for path in (Path(__file__).parent / "peers").glob("*.service"):
        shutil.copy(path, units)


def add_systemd(root: Path) -> None:
    """Only what nodes with systemd need; nothing of it where it cannot be had."""
    if missing(SYSTEMD):
        add_to_image(root)
    else:
        add(root, SYSTEMD)


def _merge(source: Path, root: Path) -> None:
    """busybox's links give way to what a package brings."""
    for folder, _, names in os.walk(source):
        target = root / Path(folder).relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            (target / name).unlink(missing_ok=True)
            shutil.move(f"{folder}/{name}", target / name)
    shutil.rmtree(source)


def _add_libraries(root: Path, programs: Sequence[Path]) -> None:
    listed = subprocess.run(
        ["ldd", *map(str, programs)], check=True, capture_output=True, text=True,
        env={**os.environ, "LD_LIBRARY_PATH": f"{root}/{SHARED}:{root}/{SHARED}/systemd"},
    ).stdout  # fmt: skip
    if lacking := re.findall(r"(\S+) => not found", listed):
        raise OSError(f"a peer needs {', '.join(sorted(set(lacking)))}")
    for library in set(re.findall(r"(/\S+\.so\S*) \(0x", listed)):
        target = root / library[1:]
        if not library.startswith(f"{root}/") and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
