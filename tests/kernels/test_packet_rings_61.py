"""Packet rings with and without af_packet_diag, data in sockets and dma-bufs on Debian's 6.1."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.vm import Image, Outcome, run_job

from seawall.readings.dma_bufs import parse_bufinfo, parse_fdinfo

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
RX, MAPPED_RX = [65536, 1024, 2048], [16384, 2048, 2048]
HELD, MAPPED = 96 * MIB, 32 * MIB
HERE = Path(__file__).parent
DUMB_BYTES = 2048 * 4096 * 4

JOB = r"""
mount -t debugfs debugfs /sys/kernel/debug
in_group() { mkdir /sys/fs/cgroup/$1; shift
    sh -c 'echo $$ > /sys/fs/cgroup/'$group'/cgroup.procs; exec python3.11 "$@"' sh "$@"; }
start() { group=$1; in_group "$@" > /run/$1.out & until grep -q . /run/$1.out; do sleep 0.2; done; }
look() { seawall memory --json > $OUT/$1.json 2> $OUT/$1.err; }
end() { kill -9 $(cat /sys/fs/cgroup/$1/cgroup.procs); }
group=rings
(cat $JOB/commands; sleep 300) | in_group rings $JOB/ring_holder.py > /run/rings.out &
until [ $(grep -c . /run/rings.out) = 4 ]; do sleep 0.2; done
echo "== rings"; look without
insmod $JOB/af_packet_diag.ko; look with
end rings
echo "== sockets"; look before
start waiting $JOB/network_holders.py waiting
cat /run/waiting.out > $OUT/sent
sleep 2; look waiting
cat /sys/fs/cgroup/waiting/memory.stat > $OUT/memory.stat
cat /sys/fs/cgroup/waiting/memory.current > $OUT/memory.current
cat /proc/net/sockstat > $OUT/sockstat
end waiting
start flowing $JOB/network_holders.py flowing
sleep 1; look flowing; grep sock /sys/fs/cgroup/flowing/memory.stat > $OUT/flowing
end flowing
echo "== dma-buf"
for m in $(cat $JOB/order); do insmod $JOB/$m; done
start buffer $JOB/network_holders.py dumb_buffer
cat /run/buffer.out > $OUT/size; cat /sys/kernel/debug/dma_buf/bufinfo > $OUT/bufinfo
look buffer
umount /sys/kernel/debug; look unlisted
echo "== done"
"""


def graphics_modules(home: Path) -> dict[str, bytes]:
    """vgem and all that it needs, and the order in which insmod takes them."""
    for line in (home / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        if path.endswith("/vgem.ko"):
            order = [home / name for name in [*reversed(needs.split()), path]]
            names = "\n".join(file.name for file in order)
            return {"order": names.encode(), **{file.name: file.read_bytes() for file in order}}
    return {"order": b""}


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    home = Path("/lib/modules") / Path(image.kernel).name.removeprefix("vmlinuz-")
    commands = [["leave"], ["ring", 2, RX, None], ["ring", 0, MAPPED_RX, None], ["map", 1]]
    files = {
        "commands": "".join(json.dumps(command) + "\n" for command in commands).encode(),
        "ring_holder.py": (HERE.parent / "end_to_end/ring_holder.py").read_bytes(),
        "network_holders.py": (HERE / "guest/network_holders.py").read_bytes(),
        "af_packet_diag.ko": (home / "kernel/net/packet/af_packet_diag.ko").read_bytes(),
        **graphics_modules(home),
    }
    folder = tmp_path_factory.mktemp("network")
    outcome = run_job(image, JOB, folder, files=files, memory_mib=1024)
    assert outcome.status == 0, outcome.console[-4000:]
    return outcome


def page_of(node: Outcome, name: str) -> dict[str, Any]:
    text = node.text(f"{name}.json")
    assert text, node.text(f"{name}.err")
    page: dict[str, Any] = json.loads(text)
    return page


def claims_of(page: dict[str, Any], cgroup: str) -> list[dict[str, Any]]:
    return [claim for claim in page["claims"] if claim["cgroup"] == cgroup]


def test_without_the_module_only_what_is_mapped_is_told(node: Outcome) -> None:
    page = page_of(node, "without")
    (claim,) = claims_of(page, "/rings")
    assert (claim["bytes"], claim["class"]) == (MAPPED, "ring")
    assert "/rings" in {suspect["cgroup"] for suspect in page["suspects"]}
    assert "modprobe af_packet_diag" in json.dumps(page["could_not_see"])
    assert page["unexplained_bytes"] >= HELD - MAPPED


def test_with_the_module_every_byte_is(node: Outcome) -> None:
    page = page_of(node, "with")
    (claim,) = claims_of(page, "/rings")
    assert claim["bytes"] == claim["least_bytes"] == HELD
    assert claim["confidence"] == "exact"
    assert "af_packet_diag" not in json.dumps(page["could_not_see"])
    assert page["unexplained_bytes"] < 24 * MIB


def test_data_in_sockets_is_the_residual_and_the_charge_has_it(node: Outcome) -> None:
    """memory.stat ``sock`` is a budget inside memory.current; the pages are in no counter."""
    sent = int(node.text("sent"))
    before, page = page_of(node, "before"), page_of(node, "waiting")
    moved = page["residual_bytes"] - before["residual_bytes"]
    assert abs(moved - sent) < 0.1 * sent
    stat = dict(line.split() for line in node.text("memory.stat").splitlines())
    assert abs(int(stat["sock"]) - sent) < 0.1 * sent
    assert int(node.text("memory.current")) >= int(stat["sock"])
    (claim,) = [c for c in claims_of(page, "/waiting") if c["class"] == "socket"]
    assert claim["counted"] is True
    assert abs(claim["bytes"] - sent) < 0.1 * sent
    assert not [c for c in page["claims"] if c["class"] == "ring"]


def test_a_sender_at_full_rate_has_no_more_than_its_sockets(node: Outcome) -> None:
    claims = claims_of(page_of(node, "flowing"), "/flowing")
    assert {claim["class"] for claim in claims} <= {"socket"}
    assert all(claim["most_bytes"] <= 16 * MIB for claim in claims)
    assert not any(not claim["counted"] for claim in claims)


def test_dma_buf_of_a_graphics_driver(node: Outcome) -> None:
    """Its pages are the driver's to tell: the holder is a suspect."""
    assert int(node.text("size")) == DUMB_BYTES
    told = json.loads(node.text("dmabuf.json"))
    assert told["link"] == "/dmabuf:"
    assert parse_fdinfo(node.files["fdinfo"]) == (DUMB_BYTES, "drm")
    assert parse_bufinfo(node.files["bufinfo"]) == {told["inode"]: (DUMB_BYTES, "drm")}
    for name in ("buffer", "unlisted"):
        suspects = page_of(node, name)["suspects"]
        (row,) = [row for row in suspects if row["driver"] == "dma-buf drm"]
        assert row["cgroup"] == "/buffer"
        assert "32.0 MiB" in row["why"]
