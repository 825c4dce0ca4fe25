"""``why WORKLOAD`` and ``memory WORKLOAD`` of a cgroup that this test made, live and recorded."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import cgroups
from tests.end_to_end.warm_verbs import seawall

REASON = cgroups.missing()
NAME = f"seawall-one-{os.getpid()}"
MIB = 1 << 20
HOLDER = (
    "import sys, time; data = bytearray(len(sys.stdin.buffer.read(1)) * (58 << 20));"
    " print(len(data), flush=True); time.sleep(300)"
)


@pytest.fixture(scope="module")
def full_group() -> Iterator[Path]:
    """A cgroup at nine tenths of its limit, all of it anonymous memory, and a neighbour."""
    if REASON:
        pytest.skip(REASON)
    with cgroups.cgroup(NAME, 64 * MIB) as mine, cgroups.cgroup(f"{NAME}-b", 64 * MIB):
        child = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin
        assert child.stdout
        try:
            mine.add(child.pid)
            child.stdin.write(b"x")
            child.stdin.close()
            assert child.stdout.readline()
            yield mine.path
        finally:
            child.kill()
            child.wait()
            child.stdout.close()


@pytest.fixture(scope="module")
def bundle(full_group: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same moment, recorded."""
    assert full_group.exists()
    place = tmp_path_factory.mktemp("one") / "node.tgz"
    seawall("capture", "-o", str(place)).answered()
    return str(place)


@pytest.mark.system
@pytest.mark.parametrize("is_recorded", [False, True], ids=["live", "bundle"])
@pytest.mark.usefixtures("full_group")
def test_judged_for_it_alone(bundle: str, *, is_recorded: bool) -> None:
    source = ("--from", bundle) if is_recorded else ()
    told = seawall("why", f"/{NAME}", *source).answered().text.splitlines()
    assert len(told) <= 23
    assert max(map(len, told)) <= 80
    line = next(line for line in told if line.startswith(f"/{NAME}"))
    assert "of a limit of 64.0 MiB" in line
    assert "cannot be dropped" in line
    page = seawall("why", f"/{NAME}", "--json", *source).answered().document
    assert page["workload"] == f"/{NAME}"
    about = {
        row["workload"] for row in page["findings"]
        if row["verdict"] == "fires" and row.get("workload")
    }  # fmt: skip
    assert about <= {f"/{NAME}"}
    whole = seawall("memory", f"/{NAME}", *source).answered().text
    assert "charged of a limit of 64.0 MiB" in whole
    assert len(whole.splitlines()) <= 23
    of_it = seawall("memory", f"/{NAME}", "--json", *source).answered().document["workload"]
    assert of_it["limit_bytes"] == 64 * MIB
    assert 58 * MIB <= of_it["anon_bytes"] <= of_it["charge_bytes"] <= 64 * MIB
    assert of_it["grows_bytes"] <= 6 * MIB


@pytest.mark.system
@pytest.mark.parametrize("verb", ["why", "memory"])
@pytest.mark.usefixtures("full_group")
def test_unknown_name_is_answered_with_the_nearest(bundle: str, verb: str) -> None:
    for source in ((), ("--from", bundle)):
        near = seawall(verb, f"/{NAME}x", *source)
        assert near.status == 2
        assert near.out == b""
        assert near.err.decode().startswith(f"seawall: no workload '/{NAME}x'; near: /{NAME}")
        assert near.err.count(b"\n") == 1
