"""The calls into NVML, the driver API and the runtime, by libraries that a C compiler makes.

They stand in where there is no GPU: they prove names, argument order, structure layout and what
is done with return codes, and nothing of a real driver.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.host.driver_stand_in import ask as ask_with
from tests.host.driver_stand_in import build, needs_compiler, needs_gpu

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.readings.gpu_query import GpuQuery
from seawall.readings.gpu_query import ask as ask_query

COMMON = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int code(const char *name) { const char *v = getenv(name); return v ? atoi(v) : 0; }
"""
NVML = (
    COMMON
    + r"""
typedef struct { int number; } *Device;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} Pci;
static struct { int number; } all[2] = {{0}, {1}};
static int initialised;
int nvmlInitWithFlags(unsigned int flags)
{
    if (code("HANG")) for (;;) pause();
    if (code("CRASH")) abort();
    if (flags != 1) return 2;
    initialised = !code("NVML_INIT");
    return code("NVML_INIT");
}
int nvmlShutdown(void) { initialised = 0; return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned int n)
{ if (n < 80) return 7; strcpy(to, "590.48.01"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 13010; return 0; }
int nvmlDeviceGetCount_v2(unsigned int *to) { if (!initialised) return 1; *to = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int n, Device *to)
{ if (n == 1) return 15; *to = (Device)&all[n]; return 0; }
int nvmlDeviceGetName(Device d, char *to, unsigned int n)
{ if (n < 96) return 7; strcpy(to, "NVIDIA H200\033[31m"); return 0; }
int nvmlDeviceGetUUID(Device d, char *to, unsigned int n)
{ strcpy(to, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"); return 0; }
int nvmlDeviceGetMinorNumber(Device d, unsigned int *to) { *to = 3; return 0; }
int nvmlDeviceGetPciInfo_v3(Device d, Pci *to)
{ strcpy(to->busId, "00000000:19:00.0"); return 0; }
int nvmlDeviceGetMemoryInfo(Device d, Memory *to)
{ to->total = 150754820096ULL; to->free = 100; to->used = 150754819996ULL; return 0; }
int nvmlDeviceGetClockInfo(Device d, int kind, unsigned int *to)
{ *to = kind == 1 ? 345 : kind == 2 ? 3201 : 0; return 0; }
int nvmlDeviceGetMaxClockInfo(Device d, int kind, unsigned int *to)
{ *to = kind == 1 ? 1980 : 3201; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned int *to) { *to = 700000; return 0; }
int nvmlDeviceGetPowerUsage(Device d, unsigned int *to) { return 3; }
"""
)
CUDA = (
    COMMON
    + r"""
typedef struct { char bytes[16]; } Uuid;
int cuDriverGetVersion(int *to) { *to = 13010; return 0; }
int cuInit(unsigned int flags) { return flags ? 1 : code("CU_INIT"); }
int cuDeviceGetCount(int *to) { *to = 1; return 0; }
int cuDeviceGet(int *to, int n) { *to = 40 + n; return 0; }
int cuDeviceGetName(char *to, int n, int d)
{ if (d != 40) return 101; strcpy(to, "H200"); return 0; }
int cuDeviceGetUuid_v2(Uuid *to, int d)
{ int i; for (i = 0; i < 16; i++) to->bytes[i] = i; return 0; }
int cuDeviceTotalMem_v2(size_t *to, int d) { *to = 150754820096ULL; return 0; }
int cuDeviceGetAttribute(int *to, int attribute, int d)
{ *to = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute; return attribute == 38 ? 1 : 0; }
"""
)
RUNTIME = "int cudaRuntimeGetVersion(int *to) { *to = 12040; return 0; }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("libraries")
    for name, source in (
        ("libnvidia-ml.so.1", NVML), ("libcuda.so.590.48.01", CUDA), ("libcudart.so", RUNTIME),
    ):  # fmt: skip
        build(source, home / name)
    (home / "libcuda.so.1").symlink_to("libcuda.so.590.48.01")
    return home


def ask(folder: Path, **environment: str) -> Any:
    return ask_with("gpu_query", folder, **environment)


@pytest.mark.system
@needs_compiler
def test_structures_and_calls(folder: Path) -> None:
    answer = ask(folder, CUDA_VISIBLE_DEVICES="0")
    nvml, cuda = answer["nvml"], answer["cuda"]
    assert (nvml["driver_version"], nvml["cuda_version"], nvml["failed"]) == (
        "590.48.01",
        13010,
        [],
    )
    first, lost = nvml["devices"]
    assert (first["name"], first["minor"]) == ("NVIDIA H200\x1b[31m", 3)
    assert (first["total"], first["free"], first["bus_id"]) == (
        150754820096,
        100,
        "00000000:19:00.0",
    )
    assert (first["sm_mhz"], first["most_sm_mhz"], first["memory_mhz"]) == (345, 1980, 3201)
    assert (first["power_limit_milliwatts"], first["power_milliwatts"]) == (700000, None)
    assert first["failed"] == [["nvmlDeviceGetPowerUsage", 3], ["nvmlDeviceGetComputeMode", None]]
    assert lost == {"index": 1, "failed": [["nvmlDeviceGetHandleByIndex_v2", 15]]}
    (device,) = cuda["devices"]
    assert (device["name"], device["uuid"], device["compute_major"]) == ("H200", first["uuid"], 9)
    assert (device["multiprocessors"], device["total"]) == (16, 150754820096)
    assert device["failed"] == [["cuDeviceGetAttribute", 1]], "one figure less, and no more"
    assert answer["runtime_version"] == 12040
    assert answer["environment"]["CUDA_VISIBLE_DEVICES"] == "0"
    assert answer["libraries"]["cuda"]["path"] == str(folder / "libcuda.so.590.48.01")


@pytest.mark.system
@needs_compiler
def test_codes_are_kept_and_the_other_library_is_asked_all_the_same(folder: Path) -> None:
    answer = ask(folder, CU_INIT="999")
    assert answer["cuda"] == {"version": 13010, "devices": [], "failed": [["cuInit", 999]]}
    assert len(answer["nvml"]["devices"]) == 2
    assert ask(folder, NVML_INIT="9")["nvml"]["failed"] == [["nvmlInitWithFlags", 9]]


@pytest.mark.system
@needs_compiler
def test_a_driver_that_crashes_takes_only_the_child(folder: Path) -> None:
    assert ask(folder, CRASH="1") == ["failed", "the reading child died"]


def test_without_libraries_it_says_where_it_looked(tmp_path: Path) -> None:
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("this machine has a driver")
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF no library")
    answer = ask(tmp_path)
    assert answer["cuda"] is None
    tried = dict(map(tuple, answer["libraries"]["cuda"]["tried"]))
    assert "file too short" in tried["the loader's own search (LD_LIBRARY_PATH, /etc/ld.so.cache)"]
    assert tried["/usr/lib64"] == "not there"


@pytest.mark.system
@needs_gpu
def test_a_real_driver_tells_of_its_devices() -> None:
    host = LiveHost()
    found = ask_query(host)
    host.close()
    assert not isinstance(found, Unread), found
    assert isinstance(found, GpuQuery)
    assert found.devices
    assert found.driver_version == found.module_version
    assert [one.uuid for one in found.cuda_devices] == [one.uuid for one in found.devices]
    assert all(one.figures["total"] > 1 << 30 for one in found.devices)
