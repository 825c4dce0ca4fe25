"""/proc/net/sockstat, and the unit in which kernels count it."""

import socket
from contextlib import closing

import pytest
from tests.readings.kernel_files import case

from seawall.host.live import LiveHost
from seawall.readings.kernel import Kernel
from seawall.readings.kernel import read as read_kernel
from seawall.readings.kmem_tcp import KmemTcp
from seawall.readings.kmem_tcp import read as read_kmem_tcp
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.sockstat import Sockstat, read

TEXT = "TCP: inuse 27 orphan 0 tw 13 alloc 31 mem 100\nUDP: inuse 9 mem 5\n"
EMPTY = Memcg(path="/", version=1, usage=None, limit=None, stat={}, events={}, events_local={})


@pytest.mark.parametrize(
    ("release", "page", "unit"),
    [
        ("6.1.0", 4096, 4096),
        ("4.18.0-553.el8.aarch64", 65536, 4096),
        ("5.14.0", 65536, 4096),
        ("6.6.0", 65536, 65536),
        ("3.10.0", 65536, 65536),
    ],
)
def test_units(release: str, page: int, unit: int) -> None:
    text = f"why: x\n=== /proc/sys/kernel/osrelease\n{release}\n=== ?page_size\n{page}\n"
    host = case(f"{text}=== /proc/net/sockstat\n{TEXT}")
    kernel = read_kernel(host)
    assert isinstance(kernel, Kernel)
    found = read(host, kernel)
    assert isinstance(found, Sockstat)
    assert (found.tcp_bytes, found.udp_bytes) == (100 * unit, 5 * unit)


def test_where_proc_net_leads_nowhere() -> None:
    host = case(f"why: x\n=== /proc/1/net/sockstat\n{TEXT}")
    kernel = read_kernel(host)
    assert isinstance(kernel, Kernel)
    assert isinstance(read(host, kernel), Sockstat)


def test_data_that_waits_moves_it() -> None:
    with closing(LiveHost()) as host, closing(socket.create_server(("127.0.0.1", 0))) as server:
        kernel = read_kernel(host)
        assert isinstance(kernel, Kernel)
        before = read(host, kernel)
        pairs = []
        sent = 0
        for _ in range(12):
            one = socket.create_connection(server.getsockname())
            pairs += [one, server.accept()[0]]
            one.setblocking(False)
            while True:
                try:
                    sent += one.send(bytes(65536))
                except BlockingIOError:
                    break
        after = read(host, kernel)
        for one in pairs:
            one.close()
    assert isinstance(before, Sockstat)
    assert isinstance(after, Sockstat)
    # Others' sockets come and go; per-CPU reserves are a megabyte each at most.
    assert after.tcp_bytes - before.tcp_bytes > sent * 0.8 - (8 << 20), sent


def test_tcp_of_v1_cgroups() -> None:
    by_path = dict.fromkeys(("/", "/a", "/b"), EMPTY)
    host = case(
        "why: x\n=== /m/memory.kmem.tcp.usage_in_bytes\n0\n"
        "=== /m/a/memory.kmem.tcp.usage_in_bytes\n8192\n"
        "=== /m/b/memory.kmem.tcp.usage_in_bytes\nx\n"
    )
    assert read_kmem_tcp(host, Memcgs(1, by_path, "/m", ())) == KmemTcp({"/a": 8192})
    assert read_kmem_tcp(host, Memcgs(2, by_path, "/m", ())) == KmemTcp({})
