"""What drivers still hold when nobody has their files open, and when nothing may be said."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.test_driver_claims import (
    KVM,
    MLX5,
    NONE,
    NVIDIA0,
    UVM,
    holder,
    kernel,
    modules,
    pools,
)
from tests.readings.kernel_files import SEED_5_10, content

from seawall.accounts.drivers.driver_holders import DriverHolder, DriverHolders, LeftBehind, account
from seawall.readings import slabinfo as slabinfo_file
from seawall.readings.driver_files import DriverFiles
from seawall.readings.driver_modules import DriverModule, DriverModules
from seawall.readings.meminfo import Meminfo

GIB = 1 << 30
SLABINFO = slabinfo_file.parse(content(SEED_5_10, "/proc/slabinfo"))
SEED_1 = LeftBehind(
    driver="the NVIDIA driver",
    bytes=8_650_926 * 4096,
    source="/proc/slabinfo nvidia_pte_cache-2782818403: 8,650,926 objects",
)


def holders(files: DriverFiles, loaded: Any, **changes: Any) -> DriverHolders:
    given: dict[str, Any] = {"pools": pools(), "slabinfo": SLABINFO, "meminfo": NONE, **changes}
    return account(files=files, modules=loaded, kernel=kernel("5.10.0"), **given)


def test_holders_by_driver_oldest_first() -> None:
    files = DriverFiles(
        {7: holder(7, 300, NVIDIA0, UVM), 8: holder(8, 200, UVM), 9: holder(9, 1, MLX5, KVM)},
        {(231, 192): "mlx5_core"}, 0,
    )  # fmt: skip
    found = holders(files, modules("nvidia")).by_driver
    assert found["the NVIDIA driver"] == DriverHolder(
        driver="the NVIDIA driver", pids=(8, 7), nodes=("/dev/nvidia-uvm", "/dev/nvidia0"),
        oldest_start_ticks=200,
    )  # fmt: skip
    assert set(found) == {"the NVIDIA driver", "the mlx5_core driver", "the kvm driver"}


def test_memory_that_only_the_driver_could_hold_is_left_behind() -> None:
    found = holders(DriverFiles({}, {}, 0), modules("nvidia"))
    assert found.is_complete
    assert found.left_behind == (SEED_1,)
    assert found.idle == {"the NVIDIA driver"}


def test_seed_1_on_amd_keeps_memory_after_its_holder_has_gone() -> None:
    told = pools(gtt_used=(("card0", 31 * GIB), ("card1", 15 << 20)))
    found = holders(DriverFiles({}, {}, 0), modules("amdgpu"), pools=told)
    assert [(one.driver, one.bytes) for one in found.left_behind] == [
        ("the amdgpu driver", 31 * GIB), ("the amdgpu driver", 15 << 20),
    ]  # fmt: skip
    assert found.left_behind[0].source == "/sys/class/drm/card0/device/mem_info_gtt_used"


def in_use(references: int | None) -> DriverModules:
    one = DriverModule(name="nvidia", version=None, references=references)
    return replace(modules("nvidia"), by_name={"nvidia": one})


@pytest.mark.parametrize(
    ("files", "loaded"),
    [
        # somebody holds it; a mapping or a descriptor in flight keeps the module in use;
        # built in; not loaded at all; not every process was asked; unknown
        (DriverFiles({7: holder(7, 1, NVIDIA0)}, {}, 0), modules("nvidia")),
        (DriverFiles({}, {}, 0), in_use(1)),
        (DriverFiles({}, {}, 0), in_use(None)),
        (DriverFiles({}, {}, 0), modules("amdgpu")),
        (DriverFiles({}, {}, 1), modules("nvidia")),
        (DriverFiles({}, {}, 0), NONE),
    ],
)
def test_nothing_is_left_behind_without_proof(files: DriverFiles, loaded: Any) -> None:
    assert holders(files, loaded).left_behind == ()


def test_what_the_kernel_counts_for_ttm_is_the_only_ttm_drivers() -> None:
    info = Meminfo(mem_total=64 * GIB, mem_free=0, gpu_active=5 * GIB)
    nobody = DriverFiles({}, {}, 0)
    (left,) = holders(nobody, modules("xe", "ttm"), meminfo=info, slabinfo=NONE).left_behind
    assert (left.driver, left.bytes, left.source) == (
        "the xe driver", 5 * GIB, "/proc/meminfo GPUActive",
    )  # fmt: skip
    two = holders(nobody, modules("xe", "amdgpu", "ttm"), meminfo=info, slabinfo=NONE)
    assert two.left_behind == ()
