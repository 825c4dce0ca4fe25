"""``seawall numbers`` against ``docker stats`` of a real Docker engine."""

import io
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.containers import node as nodes
from tests.containers.node import BUSYBOX, HELD_BYTES, Node, remove_cgroups

pytestmark = pytest.mark.system

MIB = 1 << 20
LIMIT_BYTES = 256 * MIB
SCRIPT = (
    # Written once: inactive.  Written and read again: active.  Then tmpfs, then 50 MiB held.
    "busybox dd if=/dev/zero of=/once bs=1M count=24 2>/dev/null;"
    " busybox dd if=/dev/zero of=/twice bs=1M count=12 2>/dev/null;"
    " busybox cat /twice /twice >/dev/null;"
    " busybox dd if=/dev/zero of=/dev/shm/s bs=1M count=16 2>/dev/null;"
    " busybox dd if=/dev/zero bs=50M count=1 2>/dev/null | busybox sleep 1000"
)
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}


def program(name: str) -> str | None:
    """Debian's own first: a client alone may lie elsewhere."""
    return next((p for p in (f"/usr/bin/{name}", f"/usr/sbin/{name}") if Path(p).exists()),
                shutil.which(name))  # fmt: skip


class Engine:
    """dockerd without network, in the node's own mount namespace, data in a test folder."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder
        self._socket = f"unix:///run/seawall-docker-{node.pid}.sock"
        self.key = ""

    def begin(self) -> None:
        place = self.folder
        self.node.need(
            "sh", "-c",
            f"PATH=$PATH:/usr/sbin:/sbin {program('dockerd')} --iptables=false --ip6tables=false"
            f" --ip-forward=false --bridge=none --data-root {place}/data --exec-root /run/docker"
            f" --pidfile /run/docker.pid --host {self._socket} --storage-driver vfs"
            f" --exec-opt native.cgroupdriver=cgroupfs >{place}/log 2>&1 </dev/null &",
        )  # fmt: skip
        deadline = time.monotonic() + 30
        while self.docker("version").status:
            if time.monotonic() > deadline:
                log = (place / "log").read_text()[-1500:]
                pytest.skip(f"dockerd does not start here (a privileged host would do): {log}")
            time.sleep(0.2)

    def docker(self, *words: str) -> nodes.Ran:
        return self.node.run(str(program("docker")), "--host", self._socket, *words)

    def run(self) -> None:
        image = self.folder / "image.tar"
        image.write_bytes(root_of_busybox())
        made = self.docker("import", str(image), "seawall-test:1")
        assert made.status == 0, made.err
        begun = self.docker(
            "run", "-d", "--network", "none", "--memory", str(LIMIT_BYTES), "--name", "planted",
            "seawall-test:1", "/bin/busybox", "sh", "-c", SCRIPT,
        )  # fmt: skip
        assert begun.status == 0, begun.err
        self.key = begun.text.strip()

    def end(self) -> None:
        self.docker("rm", "-f", "planted")
        self.node.run("sh", "-c", "kill $(cat /run/docker.pid)")
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            if self.node.run("sh", "-c", "test -e /run/docker.pid").status:
                break
            time.sleep(0.1)
        if self.key:
            remove_cgroups(f"/docker/{self.key}", "/docker/buildkit", "/docker")


def root_of_busybox() -> bytes:
    """What ``docker import`` takes: the root of a machine with one program."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("bin", "proc", "dev", "sys", "tmp"):
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        data = BUSYBOX.read_bytes()
        member = tarfile.TarInfo("bin/busybox")
        member.size, member.mode = len(data), 0o755
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.fixture
def engine(node: Node, tmp_path: Path) -> Iterator[Engine]:
    for name in ("dockerd", "docker"):
        if program(name) is None:
            pytest.skip(f"{name} is missing: apt-get install docker.io")
    made = Engine(node, tmp_path)
    try:
        made.begin()
        made.run()
        yield made
    finally:
        made.end()
        subprocess.run(["umount", "-R", str(tmp_path)], capture_output=True, check=False)


def shown_by_docker(engine: Engine) -> tuple[float, float]:
    """Bytes that it prints, and what its rounding hides: 62.27MiB / 256MiB."""
    ran = engine.docker("stats", "--no-stream", "--format", "{{.MemUsage}}", "planted")
    assert ran.status == 0, ran.err
    match = re.match(r"([\d.]+)([KMG]?i?B) / 256MiB", ran.text)
    assert match, ran.text
    digits = len(match[1].partition(".")[2])
    unit = UNITS[match[2]]
    return float(match[1]) * unit, 0.5 * 10**-digits * unit


def our_numbers(engine: Engine) -> dict[str, int]:
    page = engine.node.seawall("numbers", engine.key[:12], "--json").answered().document
    assert page["limit_bytes"] == LIMIT_BYTES
    return {row["name"]: row["bytes"] for row in page["values"]}


def test_docker_stats_shows_what_we_say_it_shows(engine: Engine) -> None:
    """While the container is still: our value before and after, and Docker's in between."""
    deadline = time.monotonic() + 30
    while our_numbers(engine)["container_memory_rss"] < HELD_BYTES:
        assert time.monotonic() < deadline, our_numbers(engine)
        time.sleep(0.2)
    for _ in range(4):
        before = our_numbers(engine)
        printed, rounding = shown_by_docker(engine)
        after = our_numbers(engine)
        if before == after:
            break
    ours = after["20.10 and later"]
    print(f"docker stats {printed / MIB:.2f} MiB, seawall {ours / MIB:.3f} MiB")  # noqa: T201 - by -rP
    assert abs(ours - before["20.10 and later"]) < MIB / 4
    assert abs(printed - ours) <= rounding + abs(ours - before["20.10 and later"]), after
    # The other formulas are well away from it, so that it is this one that agrees.
    assert abs(after["before 17.06"] - ours) > 20 * MIB
    assert abs(after["17.06 to 19.03"] - ours) > 20 * MIB
    assert after["container_memory_total_active_file_bytes"] > 11 * MIB
