"""``seawall numbers`` against ``docker stats`` of a real Docker engine."""

import io
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.containers.docker_engine import Engine
from tests.containers.node import BUSYBOX, HELD_BYTES, Node

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


def run_planted(engine: Engine) -> str:
    """A container that holds what ``SCRIPT`` says; its id."""
    image = engine.folder / "image.tar"
    image.write_bytes(root_of_busybox())
    engine.need("import", str(image), "seawall-test:1")
    engine.keys.append(
        engine.need(
            "run", "-d", "--network", "none", "--memory", str(LIMIT_BYTES), "--name", "planted",
            "seawall-test:1", "/bin/busybox", "sh", "-c", SCRIPT,
        ).strip()
    )  # fmt: skip
    return engine.keys[-1]


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
    made = Engine(node, tmp_path)
    try:
        made.begin()
        run_planted(made)
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
    page = engine.node.seawall("numbers", engine.keys[0][:12], "--json").answered().document
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
