"""One moment of a host: each topic once, and what is known from the moment before."""

from tests.case_host import parse_case

from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot

HOST = b"why: one file\n=== /proc/meminfo\nMemTotal: 1024 kB\nMemFree: 512 kB\n"
LATER = b"why: one file\n=== /proc/meminfo\nMemTotal: 1024 kB\nMemFree: 256 kB\n"


def test_what_is_known_is_not_read_again() -> None:
    first = Snapshot(parse_case(HOST).rounds[0])
    known = first.get(Meminfo)
    assert first.get(Meminfo) is known
    later = parse_case(LATER).rounds[0]
    assert Snapshot(later, {Meminfo: known}).get(Meminfo) is known
    assert Snapshot(later).get(Meminfo) != known
