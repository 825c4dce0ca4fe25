"""Lines to the kernel's log and to pstore, and the datagram."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guard.telling import BOOT, GIB, HOSTILE, MIB, group, is_harmless, node, verdict

from seawall.guard.settings import Settings
from seawall.guard.tell import kmsg_line
from seawall.guard.tell.datagram import MOST_BYTES, Datagram, resolve_host, split_address
from seawall.guard.tell.kmsg_line import (
    BURST,
    INFO,
    KEPT_FOR_WARNINGS,
    REFILL_SECONDS,
    WARNING,
    LineFile,
    kernel_record,
)
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.plain import plain
from seawall.guard.tell.teller import Teller
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group

RECORD_MOST = 976  # LOG_LINE_MAX: the kernel refuses what is longer


def facts(name: str = "shop/cart/worker") -> dict[str, object]:
    row = {"name": name, "counted_bytes": 1, "outside_bytes": 2, "limit_bytes": 3}
    return {"node": "node-7", "boot_id": BOOT, "residual_bytes": 5 * MIB, "top": [row] * 3}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.settimeout(10)
        yield end


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("shop/cart", 20, "shop/cart"),
        ("a\x1b[2Jb", 20, "a\\x1b[2Jb"),
        ("a\nb\x00", 20, "a\\x0ab\\x00"),
        ("\udcff", 20, "\\xff"),
        ("\u202e\U0001f600", 30, "\\u202e\\U0001f600"),
        ("dev-\\x2d.slice", 30, "dev-\\x2d.slice"),
        ("x" * 10_000, 10, "xxxxxxx..."),
        ("\n" * 10, 10, "\\x0a\\x0..."),
    ],
)
def test_names_become_plain(text: str, most: int, shown: str) -> None:
    assert plain(text, most) == shown


def test_a_record_is_one_line_of_its_level() -> None:
    assert kernel_record(WARNING, "killed x") == b"<4>seawall-guard: killed x\n"
    assert kernel_record(INFO, "y", 3) == b"<6>seawall-guard: y (3 lines before were left out)\n"


def test_a_hostile_name_makes_no_second_record() -> None:
    record = kernel_record(WARNING, "<0>panic\n" + HOSTILE, 7)
    assert record.count(b"\n") == 1
    assert is_harmless(record)
    assert 800 < len(record) <= RECORD_MOST
    assert record.startswith(b"<4>seawall-guard: <0>panic\\x0a\\x1b[2J\\x0ashop/\\u202ecart")
    line = kmsg_line.pmsg_record(HOSTILE, 1_795_295_047.0)
    assert line.startswith(b"2026-11-21T21:04:07Z seawall-guard: \\x1b[2J")
    assert line.count(b"\n") == 1


def test_lines_are_bounded_and_warnings_have_places_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.touch()
    lines = LineFile(str(path))
    lines.open()
    assert sum(lines.may_say(1000.0, INFO) for _ in range(100)) == BURST - KEPT_FOR_WARNINGS
    assert sum(lines.may_say(1000.0, WARNING) for _ in range(100)) == KEPT_FOR_WARNINGS
    assert lines.left_out == 200 - BURST
    assert not lines.may_say(1000.0 + REFILL_SECONDS / 2, WARNING)
    assert lines.may_say(1000.0 + REFILL_SECONDS, WARNING)
    assert lines.say(b"<6>x\n")
    assert path.read_bytes() == b"<6>x\n"
    lines.close()


def test_a_device_that_is_not_there_is_a_problem_and_is_not_made(tmp_path: Path) -> None:
    lines = LineFile(str(tmp_path / "pmsg0"))
    lines.open()
    assert lines.problem == f"{tmp_path}/pmsg0: No such file or directory"
    assert not lines.say(b"x")
    assert not list(tmp_path.iterdir())


def test_a_datagram_arrives_whole_and_small(listener: socket.socket) -> None:
    datagram = Datagram(f"127.0.0.1:{listener.getsockname()[1]}")
    datagram.open()
    assert not datagram.send({"id": "x", "sentence": "nothing is prepared"})
    datagram.prepare(facts())
    assert datagram.send({"id": "5eed0000-0001", "sentence": "killed"})
    data = listener.recv(65536)
    assert json.loads(data) == {
        "schema": "seawall.datagram/1", **facts(),
        "decision": {"id": "5eed0000-0001", "sentence": "killed"},
    }  # fmt: skip
    datagram.close()


def test_a_datagram_stays_small_whatever_the_names(listener: socket.socket) -> None:
    datagram = Datagram(f"127.0.0.1:{listener.getsockname()[1]}")
    datagram.open()
    for name in ("shop/cart/worker", "\\" * 100, "x" * 2000):
        datagram.prepare(facts(name))
        for sentence in ("short", HOSTILE, '"' * 5000):
            if not datagram.send({"id": "5eed0000-0001", "sentence": sentence}):
                pytest.fail(f"nothing was sent for {name[:9]} and {sentence[:9]}")
            data = listener.recv(65536)
            assert len(data) <= MOST_BYTES
            assert json.loads(data)["decision"]["id"] == "5eed0000-0001"
    datagram.close()


def test_nobody_who_listens_is_no_error_that_ends_anything() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    datagram = Datagram(f"127.0.0.1:{port}")
    datagram.open()
    datagram.prepare(facts())
    before = time.monotonic()
    for _ in range(20):
        datagram.send({"id": "x", "sentence": "y"})
    assert time.monotonic() - before < 5
    datagram.close()


@pytest.mark.parametrize("to", ["", "host", "host:", ":1", "host:99999", "host:-1", "h:٣"])
def test_addresses_that_are_none(to: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        split_address(to)
    datagram = Datagram(to)
    datagram.open()
    assert bool(datagram.problem) == bool(to)


def test_addresses() -> None:
    assert split_address("[::1]:9000") == ("::1", 9000)
    assert split_address("collector.example:514") == ("collector.example", 514)
    assert resolve_host("::1", 1.0) == (socket.AF_INET6, "::1")
    family, number = resolve_host("localhost", 10.0)
    assert number in ("127.0.0.1", "::1")
    assert family in (socket.AF_INET, socket.AF_INET6)


def test_a_host_that_nobody_knows_is_a_problem() -> None:
    datagram = Datagram("nobody.invalid:514")
    datagram.open()
    assert datagram.problem.startswith("datagram_to nobody.invalid:514: n")


def test_it_names_the_largest_shadow_charges(tmp_path: Path, listener: socket.socket) -> None:
    """What is counted and what is held outside, in one: who holds a little outside is not large."""

    def made(name: str, charge: int, outside: int) -> Group:
        one = group(name, f"/{name}", outside=outside)
        one.charge_bytes = charge
        return one

    few = [made(f"few{n}", 10 * MIB, 5) for n in range(3)]
    large, rings = made("large", 9 * GIB, 0), made("rings", 1 * GIB, 9 * GIB)
    small = made("small", 2 * GIB, 1 * GIB)
    large.outside = NOTHING_OUTSIDE
    settings = Settings(datagram_to=f"127.0.0.1:{listener.getsockname()[1]}")
    teller = Teller(settings, Paths(str(tmp_path), kmsg="/none", pmsg="/none"), BOOT, None)
    teller.open()
    seen = {one.path: one for one in (*few, small, large, rings)}
    teller.status(node(), seen, "near", {})
    teller.verdict(verdict())
    teller.close()
    rows = json.loads(listener.recv(65536))["top"]
    assert [row["name"] for row in rows] == ["rings", "large", "small"]
    assert [row["counted_bytes"] + row["outside_bytes"] for row in rows] == [
        10 * GIB, 9 * GIB, 3 * GIB
    ]  # fmt: skip
