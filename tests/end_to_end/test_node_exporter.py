"""``seawall numbers --node`` against a real node exporter, and against ``free``."""

import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest
from tests.end_to_end.verbs import seawall

MIB = 1 << 20
DRIFT_BYTES = 64 * MIB
"""Between two readings half a second apart, on a machine on which others work."""
LOOKS = 5
NAMES = (
    "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SReclaimable", "Shmem",
    "AnonPages", "Slab", "Active_file", "Inactive_file", "Dirty", "Writeback",
)  # fmt: skip


def ours() -> dict[str, int]:
    page = seawall("numbers", "--node", "--json").answered().document
    return {f"{row['tool']}: {row['name']}": row["bytes"] for row in page["values"]}


@pytest.fixture
def exporter() -> Iterator[str]:
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        pytest.skip("no node exporter: apt-get install prometheus-node-exporter")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    command = [program, f"--web.listen-address={address}", "--collector.disable-defaults",
               "--collector.meminfo"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield f"http://{address}/metrics"
        finally:
            running.kill()


def scraped(url: str) -> dict[str, int]:
    deadline = time.monotonic() + 10
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with opener.open(url, timeout=5) as answer:
                lines = answer.read().decode().splitlines()
                break
        except OSError:
            assert time.monotonic() < deadline, "the node exporter does not answer"
            time.sleep(0.1)
    rows = (line.split() for line in lines if line.startswith("node_memory_"))
    return {name: int(float(value)) for name, value in rows}


@pytest.mark.system
def test_every_metric_of_the_node_exporter(exporter: str) -> None:
    """Between one scrape before and one after; drift beyond both may be small."""
    first = scraped(exporter)
    numbers = ours()
    last = scraped(exporter)
    compared = 0
    for name in NAMES:
        metric = f"node_memory_{name}_bytes"
        if metric not in first:
            continue
        low, high = sorted((first[metric], last[metric]))
        value = numbers[f"node exporter: {metric}"]
        assert low - DRIFT_BYTES <= value <= high + DRIFT_BYTES, (metric, low, value, high)
        compared += 1
    assert compared >= 12
    total = "node_memory_MemTotal_bytes"
    assert numbers[f"node exporter: {total}"] == first[total]


def free() -> dict[str, int]:
    words = subprocess.run(["free", "-b"], capture_output=True, text=True, check=True).stdout
    head, row = words.splitlines()[:2]
    return dict(zip(head.split(), map(int, row.split()[1:]), strict=False))


def beyond(before: dict[str, int], value: int, after: dict[str, int], column: str) -> int:
    """How far a value lies outside what was shown before and after it, bytes."""
    low, high = sorted((before[column], after[column]))
    return max(low - value, value - high, 0)


def test_free_of_this_machine() -> None:
    """Other tests take and give memory back meanwhile; a wrong formula is wrong each time."""
    if shutil.which("free") is None:
        pytest.skip("no free: apt-get install procps")
    version = subprocess.run(["free", "-V"], capture_output=True, text=True, check=True).stdout
    numbered = tuple(int(part) for part in re.findall(r"\d+", version.split()[-1])[:3])
    used = "used (procps 4.0.1 and later)" if numbered >= (4, 0, 1) else (
        "used (procps 3.3.12 to 4.0.0)")  # fmt: skip
    pairs = [("free", "free"), ("buff/cache", "buff/cache"), ("available", "available"),
             ("shared", "shared"), ("used", used)]  # fmt: skip
    for _ in range(LOOKS):
        before, numbers, after = free(), ours(), free()
        apart = {
            column: beyond(before, numbers[f"free: {name}"], after, column)
            for column, name in pairs
        }
        if max(apart.values()) < DRIFT_BYTES:
            break
    else:
        pytest.fail(f"bytes apart in each of {LOOKS} looks: {apart}, {before}, {after}")
