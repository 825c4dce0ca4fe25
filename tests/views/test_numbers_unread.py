"""``seawall numbers`` and ``cache --dirty`` of a pod whose files cannot all be read."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.verbs import Ran
from tests.end_to_end.warm_verbs import seawall
from tests.readings.kernel_files import FILES
from tests.views.test_numbers_views import place

SCHEMA = json.loads((files("seawall.views") / "schemas/numbers.json").read_text())
POD = "/kubepods.slice/kubepods-pod5ea0a11d_0001_4000_8000_000000000001.slice"
SCOPE = f"{POD}/cri-containerd-{'ab' * 32}.scope"
GROUP = "/sys/fs/cgroup"
MIB = 1 << 20
MEMINFO = (
    "MemTotal: 4000000 kB\nMemFree: 2000000 kB\nMemAvailable: 2500000 kB\n"
    "Active(file): 100000 kB\nInactive(file): 300000 kB\nDirty: 90000 kB\nWriteback: 10000 kB\n"
)
VMSTAT = (
    "nr_dirty 22500\nnr_writeback 2500\nnr_dirty_threshold 119000\n"
    "nr_dirty_background_threshold 59000\n"
)
ZONEINFO = (
    "Node 0, zone Normal\n  pages free 500000\n        min 100\n        low 200\n"
    "        high 300\n        spanned 1000000\n        present 1000000\n"
    "        managed 1000000\n        protection: (0, 0)\n"
)


def stat(*, anon: int, inactive: int, active: int, dirty: int, slab: int = 0) -> str:
    return (
        f"anon {anon}\nfile {inactive + active}\nkernel {4 * MIB}\nshmem 0\n"
        f"file_mapped 0\nfile_dirty {dirty}\nfile_writeback 0\ninactive_anon {anon}\n"
        f"active_anon 0\ninactive_file {inactive}\nactive_file {active}\n"
        f"slab_reclaimable {slab}\nslab_unreclaimable 0\n"
    )


def pod(**changed: str | None) -> dict[str, str | None]:
    """Path -> content; a pod of 512 MiB and its container of 400 MiB.  None: not there."""
    tree: dict[str, str | None] = {
        "/proc/1/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "/proc/meminfo": MEMINFO, "/proc/vmstat": VMSTAT, "/proc/zoneinfo": ZONEINFO,
        f"{GROUP}/cgroup.controllers": "memory\n",
        f"{GROUP}/kubepods.slice/memory.current": f"{330 * MIB}\n",
        f"{GROUP}/kubepods.slice/memory.max": "max\n",
        f"{GROUP}/kubepods.slice/memory.stat": stat(
            anon=100 * MIB, inactive=150 * MIB, active=50 * MIB, dirty=62 * MIB
        ),
        f"{GROUP}{POD}/memory.current": f"{320 * MIB}\n",
        f"{GROUP}{POD}/memory.max": f"{512 * MIB}\n",
        f"{GROUP}{POD}/memory.stat": stat(
            anon=100 * MIB, inactive=150 * MIB, active=50 * MIB, dirty=62 * MIB),
        f"{GROUP}{SCOPE}/memory.current": f"{319 * MIB}\n",
        f"{GROUP}{SCOPE}/memory.max": f"{400 * MIB}\n",
        f"{GROUP}{SCOPE}/memory.swap.current": "4096\n",
        f"{GROUP}{SCOPE}/memory.events": "max 3\n",
        f"{GROUP}{SCOPE}/memory.stat": stat(
            anon=100 * MIB, inactive=150 * MIB, active=50 * MIB, dirty=60 * MIB),
    }  # fmt: skip
    names = ("ratio", "background_ratio", "bytes", "background_bytes", "expire_centisecs",
             "writeback_centisecs")  # fmt: skip
    for name, value in zip(names, (20, 10, 0, 0, 3000, 500), strict=True):
        tree[f"/proc/sys/vm/dirty_{name}"] = f"{value}\n"
    return tree | changed


def made(folder: Path, tree: dict[str, str | None], *folders: str) -> str:
    """The tree for --root; ``folders`` stand where files should be."""
    text = b"".join(
        f"=== {path}\n{content}".encode()
        for path, content in tree.items()
        if content is not None and path not in folders
    )
    place(folder, text)
    for path in folders:
        (folder / path.lstrip("/")).mkdir(parents=True)
    return str(folder)


def prose(ran: Ran) -> str:
    return re.sub(r"\s+", " ", ran.answered().text)


def document(*words: str) -> dict[str, Any]:
    page = seawall(*words, "--json").answered().document
    if words[0] == "numbers":
        jsonschema.validate(page, SCHEMA)
    return page


# --- numbers ---------------------------------------------------------------------------


def test_whole_pod_misses_nothing(tmp_path: Path) -> None:
    root = made(tmp_path, pod())
    page = document("numbers", SCOPE, "--root", root)
    assert page["limit_bytes"] == 400 * MIB
    assert not [row for row in page["could_not_see"] if "cgroup" in row["what"]]
    assert "could not be read" not in prose(seawall("numbers", SCOPE, "--root", root))


@pytest.mark.parametrize("name", ["memory.max", "memory.stat", "memory.swap.current",
                                  "memory.events"])  # fmt: skip
@pytest.mark.parametrize("how", ["junk", "folder"])
def test_every_unread_file_of_the_container_is_named(how: str, name: str, tmp_path: Path) -> None:
    path = f"{GROUP}{SCOPE}/{name}"
    if how == "junk":
        root = made(tmp_path, pod(**{path: "what is this\n"}))
    else:
        root = made(tmp_path, pod(), path)
    page = document("numbers", SCOPE, "--root", root)
    assert [row["what"] for row in page["could_not_see"] if path in row["what"]]
    text = prose(seawall("numbers", SCOPE, "--root", root))
    assert "nothing that was asked for was missing" not in text
    missing = {
        "memory.max": "limit_bytes", "memory.stat": "held_bytes",
        "memory.swap.current": "container_memory_swap", "memory.events": "memory.events max",
    }  # fmt: skip
    assert missing[name] in page["unread"]
    if name == "memory.max":
        assert "its own limit could not be read. It is at most 62 % of the limit of" in text
    else:
        assert f"Not shown, for a file could not be read: {page['unread'][-1]}" in text


def test_an_unread_limit_above_is_told_too(tmp_path: Path) -> None:
    path = f"{GROUP}{POD}/memory.max"
    root = made(tmp_path, pod(**{path: "x\n"}))
    text = prose(seawall("numbers", SCOPE, "--root", root))
    assert f"the limit of {POD} above it could not be read. It is at most 80 % of its" in text
    assert path in text


def test_a_pod_says_what_of_its_containers_was_not_read(tmp_path: Path) -> None:
    root = made(tmp_path, pod(**{f"{GROUP}{SCOPE}/memory.max": "x\n"}))
    text = prose(seawall("numbers", POD, "--root", root))
    assert re.search(r"abababab\S* 319 MiB 169 MiB 100 MiB \?", text)
    blind = made(tmp_path / "b", pod(**{f"{GROUP}{SCOPE}/memory.stat": "x\n"}))
    assert "kubectl top pod" in document("numbers", POD, "--root", blind)["unread"]
    assert f"{GROUP}{SCOPE}/memory.max" in text
    tools = {row["tool"] for row in document("numbers", POD, "--root", root)["values"]}
    assert {"crictl statsp", "kubectl top pod", "kubelet"} <= tools
    assert tools.isdisjoint({"crictl stats", "docker stats", "podman stats"})


def test_no_counter_names_the_file_and_the_reason(tmp_path: Path) -> None:
    path = f"{GROUP}{SCOPE}/memory.current"
    ran = seawall("numbers", SCOPE, "--root", made(tmp_path, pod(**{path: "x\n"})))
    assert ran.status == 2
    assert path.encode() in ran.err
    assert b"expected a number" in ran.err


def test_dirty_cache_and_slab(tmp_path: Path) -> None:
    changed = stat(anon=100 * MIB, inactive=150 * MIB, active=50 * MIB, dirty=300 * MIB,
                   slab=9 * MIB)  # fmt: skip
    root = made(tmp_path, pod(**{f"{GROUP}{SCOPE}/memory.stat": changed}))
    text = prose(seawall("numbers", SCOPE, "--root", root))
    assert "200 MiB (63 %) is page cache that can be dropped, of which 200 MiB must be" in text
    # 319 less 200 of page cache less 9 of slab.
    assert "110 MiB cannot be dropped without swap" in text
    page = document("numbers", SCOPE, "--root", root)
    assert page["held_bytes"] == 110 * MIB
    assert page["alert"]["bytes"] == 119 * MIB
    assert "cAdvisor 0.50" in page["alert"]["needs"]
    assert page["alert"]["fallback"] == {
        "metric": "container_memory_working_set_bytes", "bytes": 169 * MIB
    }  # fmt: skip
    assert "container_memory_total_active_file_bytes (cAdvisor 0.50 and later)" in text


def test_counters_that_lag_are_not_printed_as_facts(tmp_path: Path) -> None:
    small = {f"{GROUP}{SCOPE}/memory.current": f"{100 * MIB}\n"}
    text = prose(seawall("numbers", SCOPE, "--root", made(tmp_path / "a", pod(**small))))
    assert "100 MiB (100 %) is page cache" in text
    assert "at least one counter lags (200 MiB of page cache is counted)" in text
    assert "Alert on" not in text
    late = {f"{GROUP}{POD}/memory.current": f"{290 * MIB}\n"}
    text = prose(seawall("numbers", POD, "--root", made(tmp_path / "b", pod(**late))))
    assert "have 29.0 MiB more than their pod: the counters were read at different" in text
    near = {f"{GROUP}{POD}/memory.current": f"{319 * MIB + 4096}\n"}
    text = prose(seawall("numbers", POD, "--root", made(tmp_path / "c", pod(**near))))
    assert "charged to the pod itself" not in text
    more = prose(seawall("numbers", POD, "--root", made(tmp_path / "d", pod())))
    assert "1.0 MiB more is charged to the pod itself, such as" in more


def test_hidden_processes_make_a_sum_a_lower_bound(tmp_path: Path) -> None:
    line = "7 (x) S 1 7 7 0 -1 4194560 1 0 1 0 1 6 0 0 20 0 1 0 1 1 25 18446744073709551615 1 1"
    root = made(
        tmp_path,
        pod(**{f"{GROUP}{SCOPE}/cgroup.procs": "7\n8\n9\n", "/proc/7/stat": f"{line} 0 0 0 0\n"}),
    )
    text = prose(seawall("numbers", SCOPE, "--root", root))
    assert "top, ps (RES, RSS; at least, 1 of 3 processes)" in text
    assert "2 of 3 processes are gone or hidden: it is more than the 100 KiB shown" in text
    row = next(
        row
        for row in document("numbers", SCOPE, "--root", root)["values"]
        if row["tool"] == "top, ps"
    )
    assert (row["bytes"], row["note"]) == (102_400, "at least, 1 of 3 processes")


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("5.10-seed", "Suspects are drivers"),
        ("6.1-debian-qemu", "nothing is suspected"),
        ("6.18-vm", "nothing is suspected"),
    ],
)
def test_drivers_are_suspects_only_when_much_is_in_no_counter(kernel: str, words: str) -> None:
    assert words in prose(seawall("numbers", "--node", "--root", str(FILES / kernel)))


def test_a_node_without_mem_available(tmp_path: Path) -> None:
    old = MEMINFO.replace("MemAvailable: 2500000 kB\n", "")
    root = made(tmp_path, pod(**{"/proc/meminfo": old}))
    text = prose(seawall("numbers", "/", "--root", root))
    assert "no MemAvailable (Linux 3.14 has): 1.9 GiB free and 391 MiB of file cache" in text
    alert = document("numbers", "/", "--root", root)["alert"]
    assert alert["metric"].startswith("node_memory_MemFree_bytes + ")
    assert alert["bytes"] == (2_000_000 + 400_000) << 10


# --- cache --dirty ---------------------------------------------------------------------


def dirty(root: str) -> tuple[str, dict[str, Any]]:
    page = document("cache", "--dirty", "--root", root)
    return prose(seawall("cache", "--dirty", "--root", root)), page


def unseen(page: dict[str, Any]) -> str:
    return " ".join(row["what"] for row in page["could_not_see"])


def test_parents_are_netted(tmp_path: Path) -> None:
    tree = pod(**{f"{GROUP}{SCOPE}/memory.stat": stat(
        anon=0, inactive=150 * MIB, active=50 * MIB, dirty=40 * MIB)})  # fmt: skip
    text, page = dirty(made(tmp_path, tree))
    rows = {row["cgroup"]: row for row in page["dirty"]["workloads"]}
    assert rows[POD]["dirty_bytes"] == 62 * MIB
    assert rows[POD]["beside_dirty_bytes"] == 22 * MIB
    assert rows[SCOPE]["beside_dirty_bytes"] == 40 * MIB
    assert re.search(r"\(beside those below\) 22\.0 MiB", text)


def test_a_container_over_its_own_limit_comes_first(tmp_path: Path) -> None:
    text, page = dirty(made(tmp_path, pod()))
    (row,) = page["dirty"]["workloads"]
    # 200 MiB of page cache and 81 that it may still take: 20 % of them.
    pages = (200 + 81) * 256
    assert row["limits"]["stop_bytes"] == pages * 819 // 4096 * 4096
    words = "is over its own limit: 60.0 MiB to write, and its writers stop at 56.2 MiB"
    assert words in text
    assert text.index(words) < text.index("nobody waits for the node's limit")


def test_a_container_whose_pages_are_not_told_keeps_its_row(tmp_path: Path) -> None:
    path = f"{GROUP}{SCOPE}/memory.stat"
    text, page = dirty(made(tmp_path, pod(**{path: "x\n"})))
    rows = {row["cgroup"]: row for row in page["dirty"]["workloads"]}
    assert "dirty_bytes" in rows[SCOPE]["unread"]
    assert "?: its memory.stat could not be read" in text
    assert "is over its own limit" not in text, "whose pages they are is not known"
    assert path in unseen(page)


def test_no_settings(tmp_path: Path) -> None:
    tree = {path: None if "/vm/" in path else content for path, content in pod().items()}
    text, page = dirty(made(tmp_path, tree))
    assert "vm.dirty_* could not be read: what the limits come from is not told" in text
    assert "/proc/sys/vm" in unseen(page)
    assert "nothing that was asked for was missing" not in text


def test_no_zoneinfo(tmp_path: Path) -> None:
    text, page = dirty(made(tmp_path, pod(**{"/proc/zoneinfo": None})))
    assert "10 % of what may become dirty (free memory and page cache, not all 3.8" in text
    assert "/proc/zoneinfo" in unseen(page)
    assert "Its limits need vm.dirty_*, /proc/zoneinfo" in text


def test_no_vmstat(tmp_path: Path) -> None:
    text, page = dirty(made(tmp_path, pod(**{"/proc/vmstat": None})))
    assert page["dirty"]["dirty_bytes"] == 90_000 << 10
    assert page["dirty"]["writeback_bytes"] == 10_000 << 10
    assert "limits" in page["dirty"]["unread"]
    assert "Computed from free memory and page cache: the kernel's own could not be" in text
    assert "/proc/vmstat" in unseen(page)


def test_an_unread_setting_is_not_zero(tmp_path: Path) -> None:
    gone: dict[str, str | None] = {
        "/proc/sys/vm/dirty_ratio": "0\n", "/proc/sys/vm/dirty_bytes": None, "/proc/vmstat": None
    }  # fmt: skip
    text, page = dirty(made(tmp_path, pod(**gone)))
    assert {"computed_limits", "dirty_setting_bytes"} <= set(page["dirty"]["unread"])
    assert "/proc/sys/vm/dirty_bytes" in unseen(page)
    assert "the node's limits could not be told" in text
    assert page["dirty"]["dirty_background_setting_bytes"] == 0


def test_words_by_setting(tmp_path: Path) -> None:
    fixed = pod(**{"/proc/sys/vm/dirty_bytes": f"{64 * MIB}\n", "/proc/sys/vm/dirty_ratio": "0\n"})
    text, _ = dirty(made(tmp_path, fixed))
    assert "computed from vm.dirty_bytes: 64.0 MiB" in text
    # 10 % of 2.3 GiB is not below 64 MiB.
    assert "vm.dirty_background_ratio 10: not below the limit, so the kernel takes half" in text
    assert "Not: echo 1 > /proc/sys/vm/drop_caches" in text
