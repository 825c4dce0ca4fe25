"""When the machine was booted, beside a second source."""

import time

from seawall.host.live import LiveHost
from seawall.readings import boot_time
from seawall.readings.boot_time import BootTime, parse


def test_it_is_now_less_the_time_since_boot() -> None:
    host = LiveHost()
    try:
        found = boot_time.read(host)
    finally:
        host.close()
    assert isinstance(found, BootTime)
    expected = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    assert abs(found.unix_seconds - expected) <= 2


def test_the_line_stands_among_others() -> None:
    assert parse(b"cpu  1 2 3\nintr 7 0 0\nctxt 9\nbtime 1795364383\nprocesses 5\n") == BootTime(
        1795364383
    )
