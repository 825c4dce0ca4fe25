"""The calls into NVML, by a library that a C compiler makes of the published declarations.

It stands in for libnvidia-ml.so.1 where there is no GPU: it proves names, argument order,
structure layout and what is done with return codes, and nothing of a real driver.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.host.driver_stand_in import ask as ask_with
from tests.host.driver_stand_in import build as build_library
from tests.host.driver_stand_in import needs_compiler, needs_gpu

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.nvml import Nvml
from seawall.readings.nvml import ask as ask_nvml

STAND_IN = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef int nvmlReturn_t;
typedef struct { int number; } *nvmlDevice_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
static struct { int number; } all[3] = {{0}, {1}, {2}};
static int initialised;
static int code(const char *name) { const char *v = getenv(name); return v ? atoi(v) : 0; }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    if (code("HANG")) for (;;) pause();
    if (flags != 1) return 2;
    initialised = !code("INIT");
    return code("INIT");
}
nvmlReturn_t nvmlShutdown(void) { initialised = 0; return 0; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    if (length < 80) return 7;
    strcpy(version, "590.48.01");
    return 0;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!initialised) return 1;
    *count = 3;
    return 0;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    if (index == 2) return 15;
    *device = (nvmlDevice_t)&all[index];
    return 0;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    if (length < 96) return 7;
    strcpy(name, device->number ? "NVIDIA GB10" : "NVIDIA H200\033[31m");
    return 0;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    strcpy(uuid, "GPU-1");
    return 0;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    if (device->number) return 3;
    memory->total = 150754820096ULL; memory->free = 100ULL; memory->used = 150754819996ULL;
    return 0;
}
#ifdef WITH_NUMA
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    if (device->number) return 3;
    *node = 4;
    return 0;
}
#endif
nvmlReturn_t PROCESSES(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    unsigned int i, there = device->number ? 300 : 1;
    if (*count < there) { *count = there; return 7; }
    for (i = 0; i < there; i++) {
        infos[i].pid = 1000 + i;
        infos[i].usedGpuMemory = i == 1 ? ~0ULL : 5000000000ULL + i;
        infos[i].gpuInstanceId = infos[i].computeInstanceId = 0xffffffff;
    }
    *count = there;
    return 0;
}
nvmlReturn_t GRAPHICS(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    *count = 0;
    return 0;
}
"""
LONGER = r"""
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
    nvmlDevice_t device, unsigned int *count, void *infos)
{
    memset(infos, 1, 32);
    *count = 1;
    return 0;
}
"""


def build(folder: Path, version: str = "_v3", *flags: str, source: str = STAND_IN) -> Path:
    names = [
        f"-D{short}=nvmlDeviceGet{kind}RunningProcesses{version}"
        for short, kind in (("PROCESSES", "Compute"), ("GRAPHICS", "Graphics"))
    ]
    build_library(source, folder / "libnvidia-ml.so.1", *names, *flags)
    return folder


def ask(folder: Path, **environment: str) -> Any:
    return ask_with("nvml", folder, **environment)


@pytest.mark.system
@needs_compiler
@pytest.mark.parametrize(("version", "flags"), [("_v3", ("-DWITH_NUMA",)), ("_v2", ())])
def test_structures_and_calls(tmp_path: Path, version: str, flags: tuple[str, ...]) -> None:
    answer = ask(build(tmp_path, version, *flags))
    assert answer["driver_version"] == "590.48.01"
    first, second, third = answer["devices"]
    assert first["name"] == "NVIDIA H200\x1b[31m"
    assert first["numa_node"] == (4 if flags else None)
    assert first["memory"] == {
        "total": 150754820096, "free": 100, "used": 150754819996,
    }  # fmt: skip
    assert first["processes"] == [[1000, 5000000000, "compute"]]
    assert second["memory"] == "not supported"
    assert second["numa_node"] is None
    assert len(second["processes"]) == 300, "asked again with room for all"
    assert second["processes"][1] == [1001, None, "compute"]
    assert second["processes"][299] == [1299, 5000000299, "compute"]
    assert third["memory"] == third["processes"] == "gpu is lost"


@pytest.mark.system
@needs_compiler
def test_the_longer_structure_of_some_535_drivers_is_not_asked_for(tmp_path: Path) -> None:
    """Their _v3 writes 32 bytes a process where 24 were published before and after."""
    body = STAND_IN.replace("nvmlReturn_t GRAPHICS", LONGER + "nvmlReturn_t GRAPHICS")
    answer = ask(build(tmp_path, "_v2", source=body))
    assert answer["devices"][0]["processes"] == [[1000, 5000000000, "compute"]]


@pytest.mark.system
@needs_compiler
def test_driver_that_refuses_or_hangs(tmp_path: Path) -> None:
    folder = build(tmp_path)
    assert ask(folder, INIT="18") == {"problem": "library and driver differ"}
    assert ask(folder, INIT="4") == {"problem": "no permission"}
    assert ask(folder, INIT="77") == {"problem": "error 77"}
    assert ask(folder, HANG="1") == ["no_answer", "a process did not let go"]
    old = build(tmp_path, "_v1")
    assert ask(old)["devices"][0]["processes"] == "function not found"


@pytest.mark.system
@needs_compiler
def test_what_the_driver_tells_may_be_odd(tmp_path: Path) -> None:
    """A name that is no UTF-8; more processes than memory could hold."""
    odd = STAND_IN.replace("NVIDIA GB10", "\\377GB10").replace("? 300 :", "? 4294967000u :")
    _, device, _ = ask(build(tmp_path, source=odd))["devices"]
    assert device["name"] == r"\xffGB10"
    assert device["processes"] == "error 7", "no array of a length that a broken driver tells"


def test_without_the_library_it_is_absent_by_name(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"\x7fELF no library")
    assert ask(tmp_path)[0] == "absent"


@pytest.mark.system
@needs_gpu
def test_real_driver_tells_of_its_devices() -> None:
    host = LiveHost()
    found = ask_nvml(host)
    host.close()
    assert not isinstance(found, Unread), found
    assert isinstance(found, Nvml)
    assert found.devices
    assert all(device.name.startswith("NVIDIA") for device in found.devices)
