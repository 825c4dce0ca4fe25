"""Files where other tools are wrong: overlayfs, other namespaces, deleted, not ours, hanging."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end import cgroups, fuse_server
from tests.end_to_end.cache_verb import (
    MAPS,
    OPENS,
    PAGE,
    cache,
    fill,
    forgets,
    hold,
    keep_only,
    row_of,
)
from tests.end_to_end.verbs import SOURCES, run

pytestmark = [pytest.mark.system, pytest.mark.beside]
NOBODY = "65534"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if os.geteuid():
        pytest.skip("mounting and other users' files need root: sudo make test-system")
    if why := forgets(tmp_path):
        pytest.skip(why)
    return tmp_path


class Overlay:
    """Two lower layers and an upper one, mounted by the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lower, self.bottom, self.upper = (folder / n for n in ("lower", "bottom", "upper"))
        for name in ("lower", "bottom", "upper", "work", "merged"):
            (folder / name).mkdir()
        self.merged = folder / "merged"

    @property
    def mount(self) -> list[str]:
        options = f"lowerdir={self.lower}:{self.bottom},upperdir={self.upper}"
        options += f",workdir={self.folder}/work"
        return ["mount", "-t", "overlay", "overlay", "-o", options, str(self.merged)]


@contextlib.contextmanager
def mounted(overlay: Overlay) -> Iterator[Path]:
    done = subprocess.run(overlay.mount, check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"no overlayfs here: {done.stderr.decode().strip()}; modprobe overlay")
    try:
        yield overlay.merged
    finally:
        subprocess.run(["umount", "-l", str(overlay.merged)], check=True)


@contextlib.contextmanager
def held(script: str, path: Path, *before: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = hold(script, path, *before)
    try:
        yield process
    finally:
        process.communicate()


def identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def test_overlay_file_is_the_layers(disk: Path) -> None:
    """cachestat(2) answers 0 for each of these."""
    overlay = Overlay(disk)
    fill(overlay.lower / "low", 50)
    fill(overlay.bottom / "deep", 30)
    fill(overlay.lower / "changed", 20)
    keep_only(overlay.bottom / "deep", range(10))
    with mounted(overlay) as merged:
        with open(merged / "changed", "ab") as changed:  # copies it up
            changed.write(bytes(PAGE))
        os.sync()
        page = cache(str(merged))
        expected = {"low": (overlay.lower / "low", 50), "deep": (overlay.bottom / "deep", 10),
                    "changed": (overlay.upper / "changed", 21)}  # fmt: skip
        for name, (real, pages) in expected.items():
            row = row_of(page, merged / name)
            assert (row["device"], row["inode"]) == identity(real), name
            assert row["cached_bytes"] == pages * PAGE, name
        one = row_of(cache(str(merged / "low")), merged / "low")
        assert one["host_path"] == str(overlay.lower / "low")
        assert page["total_cached_bytes"] == 81 * PAGE


def test_overlay_and_its_layer_count_once(disk: Path) -> None:
    overlay = Overlay(disk)
    fill(overlay.lower / "low", 50)
    with mounted(overlay) as merged:
        page = cache(str(merged / "low"), str(overlay.lower / "low"))
        assert page["total_cached_bytes"] == 50 * PAGE
        assert len(page["files"]) == 1


def test_overlay_whose_layers_cannot_be_found(disk: Path) -> None:
    """mincore then: the figure is right, and it is said that the mount stands alone."""
    overlay = Overlay(disk)
    fill(overlay.lower / "low", 50)
    with mounted(overlay) as merged:
        overlay.lower.rename(disk / "moved")
        page = cache(str(merged / "low"))
        row = row_of(page, merged / "low")
        assert row["cached_bytes"] == 50 * PAGE
        assert row["method"] == "mincore"
        assert "dirty_bytes" in row["unread"]
        assert any("overlayfs" in seen["what"] for seen in page["could_not_see"])


def test_two_containers_share_a_layer(disk: Path) -> None:
    """Two namespaces, two overlay mounts that the host does not see, one file."""
    low = disk / "image"
    low.mkdir()
    fill(low / "program", 64)
    os.chmod(low / "program", 0o755)
    processes = []
    try:
        for number in (1, 2):
            home = disk / f"container{number}"
            for name in ("upper", "work", "merged"):
                (home / name).mkdir(parents=True)
            mount = (
                f"mount -t overlay overlay -o lowerdir={low},upperdir={home}/upper,"
                f'workdir={home}/work {home}/merged && exec "$@"'
            )
            inside = ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh"]
            processes.append(hold(MAPS, home / "merged/program", *inside))
        page = cache("--top", "100000")
        found = [r for r in page["files"] if (r["device"], r["inode"]) == identity(low / "program")]
        assert len(found) == 1
        assert found[0]["cached_bytes"] == 64 * PAGE
        assert found[0]["processes"] == 2
        assert found[0]["host_path"] == str(low / "program")
        assert not [r for r in page["files"] if r["path"].endswith("merged/program")][1:]
        row = row_of(cache("--pid", str(processes[0].pid)), disk / "container1/merged/program")
        assert row["processes"] == 2, "the other container's process uses it too"
    finally:
        for process in processes:
            process.communicate()


def test_mapped_and_deleted(disk: Path) -> None:
    path = fill(disk / "gone", 16)
    with held(MAPS, path) as process:
        path.unlink()
        fill(path, 3)  # another file by its name
        row = row_of(cache("--pid", str(process.pid)), path)
        assert row["deleted"]
        assert row["is_mapped"]
        assert row["cached_bytes"] == 16 * PAGE


def test_file_of_another_mount_namespace(disk: Path) -> None:
    """A tmpfs that only the process sees, over a folder that has another file of that name."""
    fill(disk / "file", 5)
    prepare = (
        f'mount -t tmpfs tmpfs {disk} && head -c {7 * PAGE} /dev/urandom >{disk}/file && exec "$@"'
    )
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-c", prepare, "sh"]
    with held(OPENS, disk / "file", *inside) as process:
        row = row_of(cache("--pid", str(process.pid)), disk / "file")
        assert row["kind"] == "shmem"
        assert row["cached_bytes"] == row["size_bytes"] == 7 * PAGE


def test_file_of_somebody_else_is_not_known(disk: Path) -> None:
    """mincore would say 100 %."""
    folder = Path(f"/var/tmp/seawall-cache-{os.getpid()}")  # pytest's folders are root's alone
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None or not shutil.which("setpriv"):
        pytest.skip("an interpreter for all is missing: apt-get install python3 util-linux")
    folder.mkdir(mode=0o755)
    try:
        shutil.copytree(SOURCES, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        path = fill(folder / "roots", 20)
        path.chmod(0o644)
        keep_only(path, range(5))
        own = fill(folder / "own", 4)
        os.chown(own, int(NOBODY), int(NOBODY))
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        ran = run([*user, "env", f"PYTHONPATH={folder}/src", python, "-m", "seawall", "cache",
                   "--json", str(path), str(own)])  # fmt: skip
        page = json.loads(ran.answered().out)
        row = row_of(page, path)
        assert "cached_bytes" in row["unread"]
        assert "cached_bytes" not in row
        assert "fraction" not in row
        assert row_of(page, own)["cached_bytes"] == 4 * PAGE
        assert page["totals"]["unknown_files"] == 1
        assert page["total_cached_bytes"] == 4 * PAGE
        assert any("tells only their owner" in seen["why"] for seen in page["could_not_see"])
    finally:
        shutil.rmtree(folder)


def test_who_is_charged(disk: Path) -> None:
    """Two cgroups read one half each of a file; a third only maps it."""
    if why := cgroups.missing():
        pytest.skip(why)
    if not os.access("/proc/kpagecgroup", os.R_OK):
        pytest.skip("/proc/kpagecgroup is missing: a kernel with CONFIG_PROC_PAGE_MONITOR")
    path = fill(disk / "shared", 400)
    keep_only(path, range(0))
    names = [f"seawall-owner{n}-{os.getpid()}" for n in (1, 2)]
    with cgroups.cgroup(names[0], 64 << 20) as one, cgroups.cgroup(names[1], 64 << 20) as two:
        for group, at in ((one, 0), (two, 200)):
            reader = (
                "import os, sys; f = os.open(sys.argv[1], 0);"
                "os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM);"
                f"[os.pread(f, 1, n * {PAGE}) for n in range({at}, {at} + 200)]"
            )
            enter = ["sh", "-c", f'echo 0 > {group.entry} && exec "$@"', "sh"]
            subprocess.run([*enter, sys.executable, "-S", "-c", reader, str(path)], check=True)
        page = cache("--owners", str(path))
    (owner,) = page["owners"]
    shares = {found["name"]: found["pages"] / owner["sampled_pages"] for found in owner["cgroups"]}
    assert owner["sampled_pages"] >= 100
    for name in names:
        assert 0.4 < shares[f"/{name}"] < 0.6, shares


def test_the_advice_releases_the_cache(disk: Path) -> None:
    """The very line that is printed, run by hand."""
    if why := cgroups.missing():
        pytest.skip(why)
    name = f"seawall-advice-{os.getpid()}"
    with cgroups.cgroup(name, 128 << 20) as group:
        script = (
            "import os, sys; open(sys.argv[1], 'wb').write(bytes(60 << 20)); os.sync();"
            "print('held', flush=True); sys.stdin.read()"
        )
        enter = ["sh", "-c", f'echo 0 > {group.entry} && exec "$@"', "sh"]
        with held(script, disk / "written", *enter):
            page = cache(f"/{name}")
            assert page["scope"] == {"kind": "workload", "name": f"/{name}"}
            before = group.usage_bytes()
            assert before > 60 << 20
            line = next(words for words in page["advice"] if "echo " in words)
            command = "echo " + line.partition("echo ")[2]
            done = subprocess.run(["sh", "-c", command], check=False, capture_output=True)
            assert done.returncode == 0, done.stderr
            assert group.usage_bytes() < before * 0.6


def test_hanging_file_costs_only_its_own_answer(disk: Path) -> None:
    if not os.path.exists("/dev/fuse"):
        pytest.skip("/dev/fuse is missing: apt-get install fuse3, modprobe fuse")
    mount = disk / "fuse"
    mount.mkdir()
    server = subprocess.Popen(
        [sys.executable, fuse_server.__file__, str(mount), "a", "b"], stdout=subprocess.PIPE
    )
    try:
        assert server.stdout
        if server.stdout.readline() != b"mounted\n":
            pytest.skip("mounting FUSE is not allowed here: run with CAP_SYS_ADMIN")
        good = fill(disk / "good", 6)
        server.send_signal(signal.SIGSTOP)
        page = cache(str(mount / "a"), str(good), "--timeout", "10", most_seconds=30)
        assert row_of(page, good)["cached_bytes"] == 6 * PAGE
        told: list[dict[str, Any]] = page["could_not_see"]
        assert any(str(mount / "a") in row["what"] and "no answer" in row["why"] for row in told)
    finally:
        server.kill()  # whoever waits gets ENOTCONN
        server.communicate()
        subprocess.run(["umount", "-l", str(mount)], check=False)


def test_through_a_root_as_in_a_daemonset(disk: Path) -> None:
    """The host's tree at another place: paths stay the host's, links stay inside."""
    home, host = disk / "home", disk / "host"
    home.mkdir()
    host.mkdir()
    path = fill(home / "file", 11)
    (disk / "link").symlink_to(home)
    with held(MAPS, path) as process:
        subprocess.run(["mount", "--bind", "/", str(host)], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", str(host / "proc")], check=True)
        try:
            root = ("--root", str(host))
            assert row_of(cache(*root, str(disk / "link")), path)["cached_bytes"] == 11 * PAGE
            row = row_of(cache(*root, "--pid", str(process.pid)), path)
            assert (row["device"], row["inode"]) == identity(path)
            assert row["is_mapped"]
        finally:
            subprocess.run(["umount", "-R", "-l", str(host)], check=True)
