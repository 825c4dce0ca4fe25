"""Rings, framebuffers and CUDA's host memory for real; a GPU where there is one."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end import cgroups, ring_sizes
from tests.end_to_end.innocents import why_no_rings
from tests.end_to_end.verbs import ENVIRONMENT, Ran, seawall
from tests.lab.running import cgroup_of, is_running, left, pids_in, start, wait_for
from tests.lab.test_lab_runs import SCHEMA

pytestmark = pytest.mark.system
MIB = 1 << 20
RINGS = ("rings", "--size", "64MiB", "--limit", "32MiB", "--rate", "0")


@pytest.fixture(autouse=True)
def machine() -> Iterator[None]:
    """Nothing is left after a test, whatever it did."""
    if why := cgroups.missing():
        pytest.skip(why)
    yield
    seawall("lab", "clean")
    assert left() == []


@contextlib.contextmanager
def going(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A run and its worker, which is in its cgroup; ended, whatever the test did."""
    process = start(*words)
    try:
        folder = cgroup_of(process)
        wait_for("its worker", lambda: pids_in(folder))
        (worker,) = pids_in(folder)
        yield process, worker
    finally:
        process.kill()
        process.communicate()


def page_of(ran: Ran) -> dict[str, Any]:
    page = ran.answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["removed"] is True
    assert left() == []
    return page


def refused(*words: str) -> str:
    ran = seawall("lab", *words, "--json")
    assert (ran.status, ran.out) == (2, b"")
    assert b"Traceback" not in ran.err
    said = ran.err.decode()
    assert said.startswith("seawall: ")
    assert said.count("\n") == 1
    assert left() == []
    return said


# --- rings -------------------------------------------------------------------------------


@pytest.fixture
def rings() -> None:
    if why := why_no_rings():
        pytest.skip(why)


def test_rings_are_taken_and_no_cgroup_counts_them(rings: None) -> None:
    page = page_of(seawall("lab", *RINGS, "--for", "2", "--json"))
    assert page["ended"] == "time"
    assert page["done_bytes"] == 64 * MIB, "twice its limit"
    assert page["processes"]["survived"] == 1
    assert page["last"]["oom_kills"] == 0
    assert page["peak"]["bytes"] < 16 * MIB
    available = page["available"]
    assert available["before_bytes"] - available["least_bytes"] > 0


def test_the_kernel_says_so_while_it_runs_and_the_rate_is_held(rings: None) -> None:
    with going("rings", "--size", "24MiB", "--rate", "4MiB", "--for", "60") as (process, worker):
        began = time.monotonic()
        wait_for("all of it", lambda: ring_sizes.bytes_of(worker) == 24 * MIB)
        assert time.monotonic() - began > 3, "six pieces of 4 MiB, one each second"
        with ring_sizes.namespace_of(worker) as namespace:
            assert sum(ring_sizes.rings(namespace).values()) == 24 * MIB
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=15)
            assert ring_sizes.rings(namespace) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_every_end_gives_the_rings_back(rings: None, number: signal.Signals) -> None:
    with going(*RINGS, "--for", "60") as (process, worker):
        wait_for("its rings", lambda: ring_sizes.bytes_of(worker) == 64 * MIB)
        with ring_sizes.namespace_of(worker) as namespace:
            process.send_signal(number)
            out, err = process.communicate(timeout=15)
            wait_for("its death", lambda: not is_running(worker))
            wait_for("the end of its rings", lambda: ring_sizes.rings(namespace) == {})
    if number == signal.SIGKILL:
        rows = seawall("lab", "clean", "--json").answered().document["leftovers"]
        assert rows
        assert all(row["removed"] for row in rows)
    else:
        assert process.returncode == 128 + number, err.decode()
        assert b"all removed, checked" in out
    assert left() == []


def test_when_the_lab_is_stopped_the_rings_go_in_time(rings: None) -> None:
    with going(*RINGS, "--for", "2") as (process, worker):
        process.send_signal(signal.SIGSTOP)
        wait_for("its own end", lambda: not is_running(worker), 8)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=20)


def test_what_it_prints_names_the_commands_beside_it(rings: None) -> None:
    text = seawall("lab", *RINGS, "--for", "1").answered().text
    for words in ("seawall memory --who --for 10", "look for:", "packet_set_ring", "taken"):
        assert words in text, words
    assert max(len(line) for line in text.splitlines() if "/seawall-lab-" not in line) <= 80
    text = " ".join(text.split())
    assert "64.0 MiB were taken, and the cgroup counted" in text
    assert "no limit held this memory" in text
    assert "MemAvailable fell by" in text


def test_seawall_names_the_labs_cgroup_and_what_it_really_takes(rings: None) -> None:
    with going(*RINGS, "--for", "60") as (process, worker):
        wait_for("its rings", lambda: ring_sizes.bytes_of(worker) == 64 * MIB)
        folder = cgroup_of(process)
        claims = seawall("memory", "--json").answered().document["claims"]
        rows = seawall("pods", "--json").answered().document["workloads"]
    (claim,) = [c for c in claims if c["cgroup"] and c["cgroup"].endswith(folder.name)]
    assert (claim["class"], claim["confidence"], claim["bytes"]) == ("ring", "exact", 64 * MIB)
    (row,) = [row for row in rows if row["cgroup"].endswith(folder.name)]
    assert row["uncounted_bytes"] == 64 * MIB
    assert row["shadow_charge_bytes"] > row["limit_bytes"] == 32 * MIB


def test_too_much_is_refused_even_when_it_is_meant(rings: None) -> None:
    said = refused("rings", "--size", "8TiB", "--yes-large")
    assert "half of what this machine has to give (MemAvailable" in said


def test_without_the_capability_nothing_starts() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing: apt-get install util-linux")
    done = subprocess.run(
        ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", sys.executable, "-m",
         "seawall", "lab", "rings"],
        env=ENVIRONMENT, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"packet sockets need CAP_NET_RAW" in done.stderr
    assert left() == []


# --- framebuffers ------------------------------------------------------------------------


@pytest.fixture
def software() -> None:
    """Mesa's renderer without a GPU; skipped where there is none, or a real one."""
    ran = seawall("lab", "egl", "--size", "16MiB", "--dry-run", "--json")
    if ran.status == 2 and (b" is missing" in ran.err or b"EGL finds no display" in ran.err):
        pytest.skip(
            f"{ran.err.decode().strip()}: apt-get install libegl1 libgles2 libegl-mesa0 "
            "libgl1-mesa-dri"
        )
    driver = ran.answered().document["plan"]["driver"]
    if not driver["is_software"]:
        pytest.skip(f"a real driver is here ({driver['name']}): see the tests on a GPU")


def test_software_surfaces_are_counted_and_it_says_so(software: None) -> None:
    words = ("--size", "64MiB", "--rate", "0", "--for", "3")
    page = page_of(seawall("lab", "egl", *words, "--json"))
    assert page["done_bytes"] == 64 * MIB
    assert page["peak"]["bytes"] > 64 * MIB
    assert page["plan"]["driver"]["free_bytes"] is None
    text = seawall("lab", "egl", *words).answered().text
    assert "this driver is software: its surfaces are" in text
    assert "this kind of memory is counted here" in " ".join(text.split())


def test_a_software_renderer_that_leaks_is_killed_at_its_limit(software: None) -> None:
    words = ("--size", "400MiB", "--limit", "192MiB", "--rate", "0", "--for", "10")
    page = page_of(seawall("lab", "egl", *words, "--json"))
    assert page["processes"]["killed"] == 1
    assert page["ended"] == "nobody_left"
    assert 64 * MIB <= page["done_bytes"] < 192 * MIB
    text = " ".join(seawall("lab", "egl", *words).answered().text.split())
    assert "this kind of memory is counted here" in text, "it is dead, but it was counted"


def test_without_the_libraries_it_says_what_is_missing(tmp_path: Path) -> None:
    """A library of that name that is none."""
    (tmp_path / "libEGL.so.1").write_bytes(b"not a library")
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "lab", "egl"],
        env={**ENVIRONMENT, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"libEGL.so.1 cannot be loaded" in done.stderr
    assert left() == []


# --- CUDA, with a stand-in -----------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("a stand-in for libcuda needs gcc: apt-get install gcc libc6-dev")
    folder = tmp_path_factory.mktemp("cuda")
    source = Path(__file__).with_name("fake_cuda.c")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", folder / "libcuda.so.1", source],
        check=True, timeout=60,
    )  # fmt: skip
    return folder


def cuda(library: Path, *words: str, how: str = "") -> tuple[Ran, list[str]]:
    """A run with the stand-in, and how that was called."""
    log = library / "log"
    log.unlink(missing_ok=True)
    extra = {"LD_LIBRARY_PATH": str(library), "FAKE_CUDA_LOG": str(log), "FAKE_CUDA": how}
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "lab", *words, "--json"],
        env={**ENVIRONMENT, **extra}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    calls = log.read_text().splitlines() if log.exists() else []
    assert left() == []
    return Ran(done.returncode, done.stdout, done.stderr, 0.0), calls


@pytest.mark.parametrize(
    ("kind", "call"),
    [("cuda-host", "cuMemHostAlloc 33554432 0"), ("cuda-managed", "cuMemAllocManaged 33554432 1")],
)
def test_cuda_is_called_as_its_manual_says(library: Path, kind: str, call: str) -> None:
    words = (kind, "--size", "32MiB", "--limit", "64MiB", "--rate", "0", "--for", "2")
    ran, calls = cuda(library, *words)
    page = page_of(ran)
    assert page["done_bytes"] == 32 * MIB
    assert page["peak"]["bytes"] > 32 * MIB, "managed memory is written on the host"
    assert page["plan"]["driver"]["name"] == "Stand-in 7, CUDA 12.8"
    assert page["plan"]["driver"]["free_bytes"] == (6 << 30 if kind == "cuda-managed" else None)
    # Once to ask, in a child; once to take.
    assert [c for c in calls if "Mem" in c] == [call]
    assert calls.count("cuInit 0") == 2
    assert calls.count("cuDeviceGet 0") == 2
    assert calls.count("cuCtxCreate_v2 0 7") == 2
    assert calls.count("cuDeviceGetAttribute 83 7") == 1


def test_cuda_at_its_rate_is_ended_by_its_limit(library: Path) -> None:
    words = ("cuda-host", "--size", "96MiB", "--limit", "48MiB", "--rate", "256MiB", "--for", "10")
    ran, calls = cuda(library, *words)
    page = page_of(ran)
    assert page["processes"]["killed"] == 1, "the stand-in takes what is counted"
    assert [c for c in calls if "Mem" in c] == ["cuMemHostAlloc 33554432 0"] * 2


def test_a_driver_without_memory_is_noted(library: Path) -> None:
    words = ("cuda-host", "--size", "32MiB", "--rate", "64MiB", "--for", "2")
    ran, _ = cuda(library, *words, how=f"oom {20 * MIB}")
    page = page_of(ran)
    assert page["done_bytes"] == 16 * MIB
    assert page["notes"] == ["stopped at 16.0 MiB: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"]


@pytest.mark.parametrize(
    ("kind", "how", "expected"),
    [
        ("cuda-host", "none", "the CUDA driver sees no device here"),
        ("cuda-host", "old", "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"),
        ("cuda-host", "crash", "the driver's library ended the process that asked it (-6)"),
        ("cuda-managed", "unmanaged", "Stand-in 7, CUDA 12.8: no managed memory on this device"),
        ("cuda-managed", "", "more than 3.0 GiB, half of what the device has free (6.0 GiB"),
    ],
)
def test_what_is_missing_is_said_before_anything_starts(
    library: Path, kind: str, how: str, expected: str
) -> None:
    ran, calls = cuda(library, kind, "--size", "3500MiB", how=how)
    assert (ran.status, ran.out) == (2, b"")
    assert expected in ran.err.decode()
    assert not [c for c in calls if c.startswith(("cuMemHostAlloc", "cuMemAllocManaged"))]


def test_an_older_library_is_told(library: Path, tmp_path: Path) -> None:
    (tmp_path / "old.c").write_text("int cuInit(unsigned f) { return 0; }\n")
    subprocess.run(
        ["gcc", "-shared", "-o", tmp_path / "libcuda.so.1", tmp_path / "old.c"], check=True
    )
    ran, _ = cuda(tmp_path, "cuda-host")
    assert ran.status == 2
    assert b"the driver's library is too old: it has no cuDriverGetVersion" in ran.err


# --- on a real GPU -------------------------------------------------------------------------


def real_gpu() -> str | None:
    """Why there is none."""
    if not os.path.exists("/dev/nvidiactl"):
        return "no GPU here: run this on a machine with the NVIDIA driver (/dev/nvidiactl)"
    ran = seawall("lab", "cuda-host", "--size", "2MiB", "--dry-run")
    return ran.err.decode().strip() if ran.status == 2 else None


@pytest.mark.parametrize("kind", ["egl", "cuda-host", "cuda-managed"])
def test_on_a_real_gpu(kind: str) -> None:
    if why := real_gpu():
        pytest.skip(why)
    words = ("--size", "256MiB", "--limit", "1GiB", "--rate", "0", "--for", "10", "--json")
    page = page_of(seawall("lab", kind, *words))
    assert page["done_bytes"] == 256 * MIB
    assert page["processes"]["survived"] == 1


@pytest.mark.parametrize("kind", ["cuda-host", "cuda-managed"])
def test_without_a_gpu_it_says_what_is_missing(kind: str) -> None:
    if real_gpu() is None:
        pytest.skip("a GPU is here")
    said = refused(kind)
    assert "libcuda.so.1" in said or "CUDA" in said
