"""What the kernel answered through NETLINK_SOCK_DIAG, recorded on 6.18, and damaged answers."""

import contextlib
import errno
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.packet_rings.diag import DiagSocket, parse_replies
from seawall.host.packet_rings.ring_sockets import why_not_asked

# One V1 ring of 8 x 4096; a V2 socket with 4 x 12288 and a ring to send of 2 x 8192; V3 with
# 3 x 1 MiB and 5 x 16384; a socket without any.
RECORDED = bytes.fromhex(
    "640000001400020001000000871e0000110300003ef4340010100000000000001c0000000000000000000000"
    "0000000000000000000000000000000008000500000000002000020000100000080000000008000010000000"
    "000000000000000000000000840000001400020001000000871e0000110300003ff434001110000000000000"
    "1c00000000000000010000000000000000000000000000000000000008000500000000002000020000300000"
    "04000000001000000c0000000000000000000000000000002000030000200000020000000008000008000000"
    "000000000000000000000000840000001400020001000000871e00001103000040f434001210000000000000"
    "1c00000000000000020000000000000000000000000000000000000008000500000000002000020000001000"
    "0300000000080000000600003c00000010000000000000002000030000400000050000000010000014000000"
    "000000000000000000000000440000001400020001000000871e00001102000041f434001310000000000000"
    "1c0000000000000000000000000000000000000000000000000000000800050000000000"
)
DONE = bytes.fromhex("140000000300020001000000871e000000000000")

pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="recorded on little-endian")


def test_rings_of_every_version() -> None:
    assert parse_replies(RECORDED) == (
        [
            DiagSocket(3470398, 0, (4096, 8), None),
            DiagSocket(3470399, 0, (12288, 4), (8192, 2)),
            DiagSocket(3470400, 0, (1048576, 3), (16384, 5)),
            DiagSocket(3470401, 0, None, None),
        ],
        False,
    )


def test_the_end_of_an_answer() -> None:
    assert parse_replies(DONE) == ([], True)
    assert parse_replies(RECORDED[:100] + DONE)[1]


def test_no_module_is_enoent() -> None:
    refusal = struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -errno.ENOENT)
    with pytest.raises(FileNotFoundError):
        parse_replies(refusal)


@given(st.integers(0, len(RECORDED) - 1), st.binary(min_size=1, max_size=12))
def test_damage_raises_nothing_but_the_kernels_own_errors(where: int, damage: bytes) -> None:
    try:
        sockets, _ = parse_replies(RECORDED[:where] + damage + RECORDED[where + len(damage) :])
    except OSError:
        return
    assert len(sockets) <= 4
    for one in sockets:
        assert 0 <= one.inode < 1 << 32


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with contextlib.suppress(OSError):
        parse_replies(data)


@pytest.mark.parametrize(
    ("modules", "full", "is_asked"),
    [
        (b"af_packet_diag 16384 0 - Live 0x0\n", b"90.00", True),
        (b"unix_diag 16384 0 - Live 0x0\n", b"4.99", True),
        (b"unix_diag 16384 0 - Live 0x0\n", b"5.00", False),
        (b"not_af_packet_diag 1 0 - Live 0x0\n", b"90.00", False),
        (b"unix_diag 16384 0 - Live 0x0\n", None, True),
        (None, b"90.00", True),
    ],
)
def test_no_module_is_loaded_on_a_node_short_of_memory(
    modules: bytes | None, full: bytes | None, is_asked: bool, tmp_path: Path
) -> None:
    files = {"modules": modules, "pressure": full and b"some avg10=99.0\nfull avg10=%s\n" % full}
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    why_not = why_not_asked(str(tmp_path / "modules"), str(tmp_path / "pressure"))
    assert (why_not == "") is is_asked
    assert is_asked or "modprobe af_packet_diag" in why_not
