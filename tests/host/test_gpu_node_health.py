"""The driver's library as a node's health asks it: a stand-in of C, for no GPU is here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.host.driver_stand_in import build, needs_compiler

LIBRARY = """
typedef struct { unsigned long long total, free, used; } memory_t;
static long devices[8];
int nvmlInitWithFlags(unsigned flags) { return START; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (index == 2) return 15;
  *device = &devices[index]; devices[index] = index; return 0;
}
int nvmlDeviceGetMemoryInfo(long *device, memory_t *memory) {
  memory->total = 100; memory->used = 40 + *device; memory->free = 60 - *device; return 0;
}
int nvmlDeviceGetTotalEccErrors(long *device, int kind, int counter, unsigned long long *count) {
  if (kind != 1 || counter != 0) return 2;
  *count = *device * 7; return 0;
}
int nvmlDeviceGetRemappedRows(
    long *device, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
  if (*device) return 3;
  *a = 1; *b = 2; *pending = 1; *failed = 0; return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(long *device, unsigned *count, void *rows) {
  if (*count != 0 || rows) return 2;
  if (*device) { *count = 1; return 7; }
  return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(long *device, unsigned *count, void *rows) {
  return 0;
}
"""
ASK = """
import json
from seawall.host.gpu_node_health import gpu_node_health
print(json.dumps(gpu_node_health()))
"""


def asked(folder: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


@needs_compiler
def test_each_device_with_what_it_could_be_asked(tmp_path: Path) -> None:
    build(LIBRARY.replace("START", "0"), tmp_path / "libnvidia-ml.so.1")
    assert asked(tmp_path) == {
        "devices": [
            {"index": 0, "uncorrected": 0, "has_processes": False, "total": 100, "free": 60,
             "used": 40, "remap_pending": True, "remap_failed": False},
            {"index": 1, "uncorrected": 7, "has_processes": True, "total": 100, "free": 59,
             "used": 41},
            {"index": 2, "problem": "gpu is lost"},
        ]
    }  # fmt: skip


@needs_compiler
def test_a_driver_that_is_not_there_is_the_answer(tmp_path: Path) -> None:
    build(LIBRARY.replace("START", "9"), tmp_path / "libnvidia-ml.so.1")
    assert asked(tmp_path) == {"problem": "driver not loaded"}


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has the library")
def test_without_the_library_there_is_no_answer(tmp_path: Path) -> None:
    assert "FileNotFoundError" in asked(tmp_path)
