"""/proc/PID/maps and what is made of it with the links in /proc/PID/fd."""

import mmap
import os
from pathlib import Path

import pytest
from tests.case_host import parse_case
from tests.readings.parser_samples import MAPS

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.problems import ParseProblem
from seawall.readings.process_files import FileUses
from seawall.readings.process_maps import parse, read_maps


def test_each_file_once() -> None:
    first, second = parse(MAPS)
    assert first.span == "400000-40b000", "as its link in map_files is called: no leading zeros"
    assert (first.device, first.inode, first.name) == ("fe:00", 2195791, "/usr/bin/a b")
    assert first.is_code
    assert second.span == "7f82acd78000-7f82ad578000"
    assert second.name == "/data/x\ny (deleted)"
    assert not second.is_code


def test_code_may_come_later() -> None:
    data = b"1000-2000 r--p 0 fe:00 7 /l.so\n2000-3000 r-xp 0 fe:00 7 /l.so\n"
    (file,) = parse(data)
    assert file.is_code
    assert file.span == "1000-2000"


@pytest.mark.parametrize(
    "data",
    [b"1000-2000 r-xp 0 fe:00 x /a\n", b"1000 r-xp 0 fe:00 7 /a\n", b"1000-2000 r\n", b"zz-1 r-xp"],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_own_maps(tmp_path: Path) -> None:
    """Against what this process knows of itself."""
    path = tmp_path / "held file"
    path.write_bytes(bytes(8192))
    host = LiveHost()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        found = read_maps(host, os.getpid())
    host.close()
    assert not isinstance(found, Unread)
    (held,) = [one for one in found if one.name == str(path)]
    assert held.inode == path.stat().st_ino
    assert any(one.is_code and "libc" in one.name for one in found)


CASE = rb"""
=== /proc/7/maps
00400000-0040b000 r-xp 00000000 fe:00 11 /bin/app
00500000-0050b000 r--p 00000000 fe:00 12 /lib/x.so
00600000-0060b000 rw-s 00000000 00:01 13 /dev/zero (deleted)
00700000-0070b000 rw-s 00000000 00:01 14 /dev/nvidia0
00800000-0080b000 rw-s 00000000 00:01 15 /SYSV00000000 (deleted)
=== /proc/7/fd/0 -> /dev/null
=== /proc/7/fd/1 -> pipe:[44]
=== /proc/7/fd/3 -> /var/log/app.log
=== /proc/7/fd/4 -> /lib/x.so
=== /proc/7/fd/5 -> /tmp/x (deleted)
=== /proc/7/fd/6 -> /tmp/x (deleted)
=== /proc/7/ns/mnt -> mnt:[1]
=== /proc/8/maps
00400000-0040b000 r-xp 00000000 fe:00 11 /bin/app
=== /proc/8/fd/3 -> /var/log/app.log
=== /proc/8/ns/mnt -> mnt:[1]
=== /proc/9/maps !no_answer
=== /proc/9/fd/3 -> /var/log/app.log
=== /proc/9/ns/mnt -> mnt:[2]
"""


def test_uses_of_several_processes() -> None:
    host = parse_case(CASE).rounds[0]
    uses = FileUses()
    for pid in (7, 8, 9):
        uses.look_at(host, pid)
    found = [(use.name, sorted(use.pids), use.ways, use.is_mapped) for use in uses.files]
    files = "/proc/7/map_files"
    assert found == [
        ("/bin/app", [7, 8], [f"{files}/400000-40b000", "/proc/8/map_files/400000-40b000"], True),
        ("/lib/x.so", [7], [f"{files}/500000-50b000"], True),
        ("/dev/zero", [7], [f"{files}/600000-60b000"], True),
        ("/SYSV00000000", [7], [f"{files}/800000-80b000"], True),
        ("/var/log/app.log", [7, 8], ["/proc/7/fd/3", "/proc/8/fd/3"], False),
        ("/tmp/x", [7], ["/proc/7/fd/5"], False),
        ("/tmp/x", [7], ["/proc/7/fd/6"], False),
        ("/var/log/app.log", [9], ["/proc/9/fd/3"], False),
    ]
    assert uses.files[0].code_of == {7, 8}
    assert [(unread.path, unread.why) for unread in uses.unread] == [("/proc/9/maps", "no_answer")]
