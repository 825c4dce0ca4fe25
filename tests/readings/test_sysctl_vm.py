import pytest
from tests.readings.kernel_files import DEBIAN_6_1, UBUNTU_3_2, case, content, this_machine, tree

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import sysctl_vm
from seawall.readings.sysctl_vm import VmSysctls, parse_hexadecimal


def read_case(text: str) -> VmSysctls:
    value = sysctl_vm.read(case(text))
    assert isinstance(value, VmSysctls)
    return value


def test_settings_of_6_1() -> None:
    with tree(DEBIAN_6_1) as host:
        value = sysctl_vm.read(host)
    assert isinstance(value, VmSysctls)
    kbytes = int(content(DEBIAN_6_1, "/proc/sys/vm/min_free_kbytes"))
    assert value.min_free_bytes == kbytes * 1024
    assert (value.overcommit_memory, value.overcommit_ratio_percent) == (0, 50)
    assert (value.dirty_ratio_percent, value.dirty_background_ratio_percent) == (20, 10)
    assert (value.dirty_bytes, value.dirty_background_bytes) == (0, 0)
    assert (value.swappiness, value.vfs_cache_pressure) == (60, 100)
    assert value.watermark_scale_factor == 10
    assert value.kernel_panic_seconds == -1
    assert (value.lru_gen_enabled, value.lru_gen_min_ttl_seconds) == (0, 0.0)
    assert value.unread == ()


def test_this_machine_agrees_with_its_files() -> None:
    with this_machine() as host:
        value = sysctl_vm.read(host)
        panic = host.read("/proc/sys/kernel/panic")
    assert isinstance(value, VmSysctls)
    assert isinstance(panic, bytes)
    assert value.kernel_panic_seconds == int(panic)


def test_absent_is_none_and_refused_is_named() -> None:
    value = read_case(
        "=== /proc/sys/vm/swappiness\n1\n=== /proc/sys/vm/panic_on_oom !refused\n"
        "=== /proc/sys/vm/max_map_count\nmany\n=== /sys/kernel/mm/lru_gen/enabled\n0x0007\n"
        "=== /sys/kernel/mm/lru_gen/min_ttl_ms\n1500\n"
        "=== /proc/sys/vm/dirty_expire_centisecs\n3000\n"
    )
    assert value.swappiness == 1
    assert value.watermark_scale_factor is None
    assert value.panic_on_oom is None
    assert [(u.path, u.why) for u in value.unread] == [
        ("/proc/sys/vm/panic_on_oom", "refused"),
        ("/proc/sys/vm/max_map_count", "malformed"),
    ]
    assert (value.lru_gen_enabled, value.lru_gen_min_ttl_seconds) == (7, 1.5)
    assert (value.dirty_expire_centisecs, value.dirty_writeback_centisecs) == (3000, None)


def test_unread_as_a_whole_when_nothing_is_there() -> None:
    with tree(UBUNTU_3_2) as host:
        value = sysctl_vm.read(host)
    assert isinstance(value, Unread)
    assert value.path == "/proc/sys/vm"


@pytest.mark.parametrize("data", [b"", b"7", b"0x", b"0x-7", b"0x_7", b"0X7", b"0x" + b"f" * 17])
def test_malformed_hexadecimal(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse_hexadecimal(data)
