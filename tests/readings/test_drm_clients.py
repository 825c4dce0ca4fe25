"""What graphics drivers print of their clients: published examples, and who is asked."""

from collections.abc import Iterator, Sequence

import pytest

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings.driver_files import DriverFile, DriverFiles, Holder
from seawall.readings.drm_clients import DrmClients, DrmRegion, parse, read

# proc_pid_fdinfo(5).
I915 = b"""pos:    0
flags:  02100002
mnt_id: 26
ino:    284
drm-driver:     i915
drm-client-id:  39
drm-pdev:       0000:00:02.0
drm-total-system0:      6044 KiB
drm-shared-system0:     0
drm-active-system0:     0
drm-resident-system0:   6044 KiB
drm-purgeable-system0:  1688 KiB
drm-total-stolen-system0:       0
drm-resident-stolen-system0:    0
drm-engine-render:      346249 ns
drm-engine-capacity-video:      2
"""
# "Convert fdinfo memory stats to use the common drm_print_memory_stats helper", amd-gfx 2024.
AMDGPU = b"""pos:\t0
flags:\t02100002
mnt_id:\t24
ino:\t1204
drm-driver:\tamdgpu
drm-client-id:\t30
drm-pdev:\t0000:04:00.0
pasid:\t32785
drm-total-cpu:\t0
drm-shared-cpu:\t0
drm-resident-cpu:\t0
drm-total-gtt:\t22 MiB
drm-shared-gtt:\t0
drm-active-gtt:\t10 MiB
drm-resident-gtt:\t22 MiB
drm-total-vram:\t544428 KiB
drm-shared-vram:\t13584 KiB
drm-resident-vram:\t544428 KiB
drm-memory-vram:\t544428 KiB
drm-memory-gtt: \t22528 KiB
drm-memory-cpu: \t0 KiB
amd-requested-gtt:\t22528 KiB
drm-engine-gfx:\t39456116802 ns
"""
# amdgpu_fdinfo.c of 6.1: only the older names.
AMDGPU_61 = b"""pasid:\t32771
drm-driver:\tamdgpu
drm-pdev:\t0000:03:00.0
drm-client-id:\t8
drm-memory-vram:\t512 KiB
drm-memory-gtt: \t2048 KiB
drm-memory-cpu: \t0 KiB
"""
# Documentation/gpu/panthor.rst.
PANTHOR = b"""drm-driver:     panthor
drm-client-id:  10
drm-engine-panthor:     111110952750 ns
drm-maxfreq-panthor:    1000000000 Hz
panthor-resident-memory:        10396 KiB
drm-total-memory:       16480 KiB
drm-shared-memory:      0
drm-active-memory:      16200 KiB
drm-resident-memory:    16480 KiB
drm-purgeable-memory:   0
"""
# A Raspberry Pi, from the README of rpi-gpu-usage.
V3D = b"""drm-driver:              v3d
drm-client-id:           14
drm-engine-render:       1400777565939 ns
drm-total-memory:        74864 KiB
drm-shared-memory:       31600 KiB
drm-active-memory:       0
drm-resident-memory:     43264 KiB
drm-purgeable-memory:    0
"""
KIB = 1024


def test_i915_stolen_memory_is_a_region_of_its_own() -> None:
    found = parse(I915)
    assert (found.driver, found.client_id, found.pdev) == ("i915", 39, "0000:00:02.0")
    assert found.regions["system0"] == DrmRegion(
        total=6044 * KIB, shared=0, resident=6044 * KIB, purgeable=1688 * KIB, active=0
    )
    assert set(found.regions) == {"system0", "stolen-system0"}


def test_amdgpu_new_and_old_names_stand_side_by_side() -> None:
    gtt = parse(AMDGPU).regions["gtt"]
    assert (gtt.total, gtt.resident, gtt.active) == (22 << 20, 22 << 20, 10 << 20)
    assert gtt.memory == 22528 * KIB
    assert gtt.purgeable is None
    old = parse(AMDGPU_61).regions
    assert set(old) == {"vram", "gtt", "cpu"}
    assert old["gtt"] == DrmRegion(memory=2048 * KIB)


def test_drivers_without_a_pci_device_have_an_id_of_their_own() -> None:
    assert parse(PANTHOR).pdev is None
    assert parse(PANTHOR).regions["memory"].resident == 16480 * KIB
    assert parse(V3D).regions["memory"].shared == 31600 * KIB
    assert set(parse(V3D).regions) == {"memory"}


def test_other_files_are_no_clients() -> None:
    found = parse(b"pos:\t0\nflags:\t0100000\nmnt_id:\t15\nino:\t4\neventfd-count: 0\n")
    assert (found.driver, found.client_id, found.regions) == (None, None, {})


@pytest.mark.parametrize("size", [b"1 kB", b"1 GB", b"-1 KiB", b"0x10", b"", b"1e9", b"9" * 30])
def test_other_sizes_are_malformed(size: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(b"drm-driver:\txe\ndrm-resident-gtt:\t" + size + b"\n")


class Fdinfo:
    """Only what processes have in fdinfo."""

    def __init__(self, files: dict[str, bytes | Unread]) -> None:
        self.files = files
        self.asked: list[str] = []

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        self.asked += paths
        for path in paths:
            yield self.files.get(path, Unread(path, "absent"))


def holders(**fds: tuple[int, ...]) -> DriverFiles:
    """``p7=(3, 4)``: process 7 has a render node open twice, and a KVM node."""
    by_pid = {
        int(name[1:]): Holder(
            int(name[1:]), 100,
            (DriverFile("drm", 226, 128, len(numbers), numbers),
             DriverFile("misc:kvm", 10, 232, 1, (77,))), (),
        )
        for name, numbers in fds.items()
    }  # fmt: skip
    return DriverFiles(by_pid, {(226, 128): "amdgpu"}, 0)


def test_one_client_counts_once_whoever_holds_it() -> None:
    other_card = AMDGPU.replace(b"0000:04:00.0", b"0000:05:00.0")
    refused = Unread("/proc/9/fdinfo/3", "no_answer", "pid 9")
    host = Fdinfo(
        {
            "/proc/7/fdinfo/3": AMDGPU, "/proc/7/fdinfo/4": AMDGPU, "/proc/8/fdinfo/5": AMDGPU,
            "/proc/8/fdinfo/6": other_card, "/proc/9/fdinfo/3": refused,
            "/proc/9/fdinfo/4": b"drm-driver:\tnouveau\ndrm-client-id:\t1\n",
        }
    )  # fmt: skip
    found = read(host, holders(p7=(3, 4), p8=(5, 6), p9=(3, 4, 5)))  # type: ignore[arg-type]
    assert isinstance(found, DrmClients)
    assert [(c.pdev, c.client_id, c.pids) for c in found.clients] == [
        ("0000:04:00.0", 30, (7, 8)), ("0000:05:00.0", 30, (8,)),
    ]  # fmt: skip
    assert found.silent == {"nouveau": (9,)}
    assert found.unread == (refused,)
    assert "/proc/7/fdinfo/77" not in host.asked


def test_no_more_descriptors_are_asked_than_a_bound() -> None:
    host = Fdinfo({})
    many = {f"p{pid}": tuple(range(3, 67)) for pid in range(1, 101)}
    found = read(host, holders(**many))  # type: ignore[arg-type]
    assert isinstance(found, DrmClients)
    assert len(host.asked) == 4096
    assert found.left_out == 6400 - 4096


def test_descriptors_of_which_only_the_number_is_told_are_left_out() -> None:
    file = DriverFile("drm", 226, 128, 500, tuple(range(3, 67)))
    found = read(Fdinfo({}), DriverFiles({7: Holder(7, 100, (file,), ())}, {}, 0))  # type: ignore[arg-type]
    assert isinstance(found, DrmClients)
    assert found.left_out == 500 - 64
