"""``seawall numbers`` as text and as JSON: published containers, hand-made ones, hostile ones."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_tool_numbers import V1, V2
from tests.end_to_end.verbs import Ran
from tests.end_to_end.warm_verbs import seawall
from tests.readings.kernel_files import FILES, KERNELS

SCHEMA = json.loads((files("seawall.views") / "schemas/numbers.json").read_text())
INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
NOTEBOOK = (
    "kubeflow/jupyter-ningsheng-0kctiqfg/notebook",
    "--from",
    f"{INCIDENTS}/page-cache/bundle",
)
AT_LIMIT = (NOTEBOOK[0], "--from", f"{INCIDENTS}/page-cache/bundle-at-the-limit")
MIB = 1 << 20


def answer(*words: str) -> dict[str, Any]:
    """The document, held against its schema and its own arithmetic."""
    page = seawall("numbers", "--json", *words).answered().document
    jsonschema.validate(page, SCHEMA)
    assert set(SCHEMA["properties"]) >= set(page), "every field is in the schema"
    for row in page["values"]:
        total = sum(part["sign"] * part["bytes"] for part in row["inputs"])
        bounded = "at least 0" in row["formula"] or "that is not above" in row["formula"]
        assert row["bytes"] == total or bounded, row
    return page


def shown(page: dict[str, Any]) -> dict[str, int]:
    return {f"{row['tool']}: {row['name']}": row["bytes"] for row in page["values"]}


def prose(ran: Ran) -> str:
    return re.sub(r"\s+", " ", ran.answered().text)


def place(folder: Path, text: bytes) -> str:
    """A case's files as a tree for --root."""
    _, *sections = re.split(rb"(?m)^=== ", text)
    for section in sections:
        path, _, body = section.partition(b"\n")
        target = folder / path.decode().lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
    (folder / "proc").mkdir(exist_ok=True)
    return str(folder)


# --- the published container -----------------------------------------------------------


def test_seed_4_every_tool() -> None:
    page = answer(*NOTEBOOK)
    numbers = shown(page)
    prometheus = "Prometheus (cAdvisor): container_memory_"
    assert page["workload"] == NOTEBOOK[0]
    assert page["limit_bytes"] == 8 << 30
    assert numbers[prometheus + "usage_bytes"] == 1_710_297_088
    assert numbers[prometheus + "cache"] == 1_059_909_632
    assert numbers[prometheus + "rss"] == 546_828_288
    # The report's docker stats, of 2019, printed 619.9MiB at another moment; these files
    # give 620.3, and Docker of today prints 630.7 for them.
    assert numbers["docker stats: 17.06 to 19.03"] == 650_387_456
    assert abs(numbers["docker stats: 17.06 to 19.03"] / MIB - 619.9) < 0.5
    assert numbers["docker stats: 20.10 and later"] == 661_315_584
    for name in (prometheus + "working_set_bytes", "kubectl top pod: MEMORY", "crictl stats: MEM"):
        assert numbers[name] == 661_315_584
    assert page["alert"]["metric"] == "container_memory_working_set_bytes"
    # 133,479 and 164 pages: the two processes of the bundle, within 1 MiB of rss.
    assert numbers["top, ps: RES, RSS"] == (133_479 + 164) * 4096


def test_seed_4_as_a_person_reads_it() -> None:
    text = prose(seawall("numbers", *NOTEBOOK))
    assert "1.6 GiB in use, 20 % of its limit, 6.4 GiB left. 1012 MiB (62 %) is page cache" in text
    assert "It looks like a leak and is none" in text
    assert re.search(
        r"631 MiB 8 % 7\.4 GiB A\.FTK container_memory_working_set_bytes; kubectl", text
    )
    assert re.search(r"620 MiB 8 % 7\.4 GiB A\.\.\.K docker stats \(17\.06 to 19\.03\)", text)
    assert "memory.usage_in_bytes 1.6 GiB - inactive_file 1000 MiB" in text
    exact = prose(seawall("numbers", *NOTEBOOK, "--bytes"))
    assert "memory.usage_in_bytes 1,710,297,088 - inactive_file 1,048,981,504" in exact


def test_the_pods_own_address_does_where_only_the_container_was_published() -> None:
    assert shown(answer(NOTEBOOK[0].rpartition("/")[0], *NOTEBOOK[1:])) == shown(answer(*NOTEBOOK))


def test_at_its_limit_the_cache_is_told_apart() -> None:
    page = answer(*AT_LIMIT)
    numbers = shown(page)
    assert numbers["Prometheus (cAdvisor): container_memory_usage_bytes"] == 37_580_955_648
    assert numbers["docker stats: 20.10 and later"] == 662_777_856
    assert page["held_bytes"] == 37_580_955_648 - 36_918_177_792 - 12_390_400
    assert [row["count"] for row in page["counts"]] == [180_422]
    text = prose(seawall("numbers", *AT_LIMIT))
    assert "815 MiB of it must be written before it can be dropped" in text


# --- hand-made -------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "version"), [(V1, 1), (V2, 2)])
def test_both_versions_from_a_tree_of_files(text: bytes, version: int, tmp_path: Path) -> None:
    page = answer("/c", "--root", place(tmp_path, text))
    assert page["cgroup_version"] == version
    name = "Prometheus (cAdvisor): container_memory_working_set_bytes"
    assert shown(page)[name] == 700_000
    assert not [name for name in shown(page) if "docker" in name], "it is no container"
    assert page["limit_bytes"] == (4_000_000 if version == 1 else None)
    assert page["parts"] == {
        "anonymous_bytes": 350_000, "inactive_file_bytes": 300_000, "active_file_bytes": 140_000,
        "shmem_bytes": 150_000, "shmem_is_estimate": False, "kernel_bytes": 30_000,
        "rest_bytes": 30_000, "unread": page["parts"]["unread"],
    } | ({"swap_bytes": 5_000} if version == 2 else {})  # fmt: skip


def test_a_limit_that_was_not_read_is_not_unlimited(tmp_path: Path) -> None:
    text = V2.replace(b"=== /sys/fs/cgroup/c/memory.max\nmax\n", b"")
    root = place(tmp_path, text)
    page = answer("/c", "--root", root)
    assert "limit_bytes" not in page
    assert "limit_bytes" in page["unread"]
    text = prose(seawall("numbers", "/c", "--root", root))
    assert "its own limit could not be read" in text
    assert "/sys/fs/cgroup/c/memory.max: No such file" in text


def test_the_root_is_the_node() -> None:
    assert answer("/")["scope"] == "node"
    assert answer()["scope"] == "node"


def test_active_cache_makes_the_working_set_misleading(tmp_path: Path) -> None:
    """2 of 3 MiB are active page cache: an alert on the working set would cry wolf."""
    text = V1.replace(b"1000000\n", b"3145728\n").replace(b"_file 140000", b"_file 2097152")
    page = answer("/c", "--root", place(tmp_path, text))
    assert page["alert"]["bytes"] == 3_145_728 - 300_000 - 2_097_152
    assert page["alert"]["metric"].startswith("container_memory_usage_bytes - ")


def test_unknown_and_ambiguous_workloads(tmp_path: Path) -> None:
    both = V1 + V1.replace(b"/c/", b"/other/c/").partition(b"\n")[2]
    root = place(tmp_path, both)
    wrong = seawall("numbers", "nobody", "--root", root)
    assert (wrong.status, wrong.out) == (2, b"")
    assert b"no workload 'nobody'" in wrong.err
    pod = b"kubepods/burstable/pod5ea0a11d-0001-4000-8000-00000000000%d/" + b"%s" * 64
    for number in (1, 2):
        name = (pod % ((number,) + (b"a",) * 63 + (b"%d" % number,))).decode()
        place(tmp_path, V1.replace(b"/memory/c/", b"/memory/" + name.encode() + b"/"))
    twice = seawall("numbers", "aaaa", "--root", root)
    assert twice.status == 2
    assert twice.err.count(b"container:aaaaaaaaaaaa") == 2


def test_node_and_workload_exclude_each_other() -> None:
    ran = seawall("numbers", "/a", "--node")
    assert ran.status == 2
    assert b"--node" in ran.err


def test_a_hostile_name_steers_no_terminal(tmp_path: Path) -> None:
    text = V1.replace(b"/memory/c/", b"/memory/c\x1b[2J\x07/")
    ran = seawall("numbers", "/c\x1b[2J\x07", "--root", place(tmp_path, text)).answered()
    assert b"\x1b" not in ran.out
    assert b"\\x1b[2J" in ran.out


@pytest.mark.parametrize("words", [NOTEBOOK, AT_LIMIT, ("--node",)])
def test_eighty_columns_and_no_colour(words: tuple[str, ...]) -> None:
    ran = seawall("numbers", *words).answered()
    assert b"\x1b" not in ran.out
    assert ran.out.isascii()
    wide = [line for line in ran.text.splitlines() if len(line) > 80]
    assert not [line for line in wide if " " in line.strip()], wide
    assert "Could not see" in ran.text
    coloured = seawall("numbers", *words, "--color", "always").answered().text
    # The node's own numbers move between two runs.
    if words != ("--node",):
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == ran.text


# --- the node --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_node_of_every_kernel(kernel: str) -> None:
    page = answer("--node", "--root", str(FILES / kernel))
    meminfo = (FILES / kernel / "proc/meminfo").read_text()
    free = int(re.search(r"MemFree: +(\d+)", meminfo)[1]) << 10  # type: ignore[index]
    assert shown(page)["free: free"] == free
    assert shown(page)["node exporter: node_memory_MemFree_bytes"] == free


def test_no_meminfo_is_unusable_input(tmp_path: Path) -> None:
    ran = seawall("numbers", "/", "--root", place(tmp_path, b""))
    assert ran.status == 2
    assert b"/proc/meminfo" in ran.err
