"""``seawall cache`` as text and as JSON, from pages made by hand."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema

from seawall.accounts.cache.page_cache import CacheFile, CacheTotals
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.host.host import Unread
from seawall.readings.memcg import Memcg
from seawall.readings.meminfo import Meminfo, parse
from seawall.views.cache_advice import advice
from seawall.views.cache_page import CachePage, Owners
from seawall.views.cache_text import lines
from seawall.views.document import head, render
from seawall.views.documents.cache_document import CACHE
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/cache.json").read_text())
MIB = 1 << 20
KUBELET = CacheFile(
    path="/usr/bin/kubelet", host_path="", device=65024, inode=7, kind="file",
    size_bytes=180 * MIB, cached_bytes=3 * MIB, dirty_bytes=0, writeback_bytes=0,
    evicted_bytes=170 * MIB, recently_evicted_bytes=120 * MIB, method="cachestat", deleted=False,
    overlay=None, workloads=("unit:kubelet.service",), pids=frozenset({700}), is_mapped=True,
    is_system=True,
)  # fmt: skip
HOSTILE = replace(
    KUBELET, path="/data/\x1b[2J\n" + "x" * 200 + "/end.so", inode=8, is_system=False,
    cached_bytes=900 * MIB, size_bytes=1000 * MIB, dirty_bytes=5 * MIB, recently_evicted_bytes=0,
    workloads=("a/b/\x1b[31mc", "shop/db/app", "shop/web/app"),
)  # fmt: skip
SECRET = replace(
    KUBELET, path="/secret", inode=9, is_system=False, cached_bytes=None, dirty_bytes=None,
    writeback_bytes=None, evicted_bytes=None, recently_evicted_bytes=None, workloads=(),
)  # fmt: skip
TOTALS = CacheTotals(
    files=5, unknown_files=1, size_bytes=1400 * MIB, cached_bytes=903 * MIB, dirty_bytes=5 * MIB,
    evicted_bytes=170 * MIB, recently_evicted_bytes=120 * MIB,
)  # fmt: skip
MEMINFO = parse(b"MemTotal: 8388608 kB\nMemFree: 1 kB\nCached: 2097152 kB\n")


def group(version: Any, cache: int = 600 * MIB) -> MemoryGroup:
    memcg = Memcg(
        path="/kubepods/pod1", version=version, usage=800 * MIB, limit=None, file=cache,
        inactive_file=cache - 7 * MIB, active_file=7 * MIB, stat={}, events={}, events_local={},
    )  # fmt: skip
    return MemoryGroup(memcg, None, "/sys/fs/cgroup/kubepods/pod1", (700,))


def page(**changes: Any) -> CachePage:
    made = CachePage(
        scope="node", name="this node", files=(HOSTILE, KUBELET, SECRET), left_out=2,
        totals=TOTALS, folders=0, meminfo=MEMINFO, group=group(2), kernel_version=(6, 8),
        walked=False, mounts=(),
    )  # fmt: skip
    return replace(made, **changes)


def text(made: CachePage, width: int = 80) -> str:
    return "\n".join(lines(made, Console(width=width)))


def test_rows_fit_and_nothing_steers_the_terminal() -> None:
    shown = text(page())
    table = [line for line in shown.splitlines() if "echo" not in line and "/sys/" not in line]
    assert max(map(len, table)) <= 80
    assert "\x1b" not in shown
    assert "/end.so" in shown, "the end of a long path tells most"
    row = next(line for line in shown.splitlines() if "kubelet" in line)
    assert row.split() == ["3.0M", "2", "%", "-", "120M", "S", "/usr/bin/kubelet"]


def test_not_known_is_never_all_of_it() -> None:
    shown = text(page())
    row = next(line for line in shown.splitlines() if "/secret" in line)
    assert row.split() == ["?", "-", "?", "?", "?", "/secret"]
    assert shown.startswith("At least 903 MiB")
    assert "the kernel tells only the file's owner" in " ".join(shown.split())


def test_the_rest_of_cached_is_not_nothing() -> None:
    shown = " ".join(text(page()).split())
    assert "That is 44 % of the 2.0 GiB in Cached of this machine; 1.1 GiB is in files" in shown
    assert "--walk" in shown
    whole = page(totals=replace(TOTALS, cached_bytes=3 << 30))
    assert "That is all of the 2.0 GiB" in text(whole)
    assert "in Cached" not in text(page(meminfo=Unread("/proc/meminfo", "refused")))


def test_mincore_tells_no_dirty_pages() -> None:
    sums = CacheTotals(files=4, mincore_files=4, cached_bytes=MIB, size_bytes=MIB)
    shown = text(page(totals=sums))
    assert "0 B dirty" not in shown
    assert "by mincore" in shown


def test_nothing_looked_at() -> None:
    shown = text(page(files=(), totals=CacheTotals(), scope="paths", name="/empty\x07"))
    assert shown.startswith("No file that could be looked at in /empty\\x07.")


def test_advice_is_for_one_cgroup_by_its_own_file() -> None:
    v2 = list(advice(page()))
    assert any(f"echo {300 * MIB} > /sys/fs/cgroup/kubepods/pod1/memory.reclaim" in w for w in v2)
    v1 = list(advice(page(group=group(1))))
    assert any("echo 0 > /sys/fs/cgroup/kubepods/pod1/memory.force_empty" in w for w in v1)
    before = list(advice(page(kernel_version=(5, 15))))
    assert any("This kernel has no memory.reclaim" in words for words in before)
    assert not any("echo" in words for words in before)
    for words in (v1, v2, before):
        assert any(w.startswith("Not drop_caches") and "no dirty page" in w for w in words)
    assert len(list(advice(page(group=None)))) == 2


def test_owners_are_called_a_sample() -> None:
    owner = Owners(
        path="/usr/bin/kubelet", device=1, inode=2, sampled=256,
        by_cgroup=(("unit:kubelet.service", 192), ("the root cgroup", 64)),
    )  # fmt: skip
    shown = " ".join(text(page(owners=(owner,))).split())
    assert "a sample of their pages" in shown
    assert "75 % unit:kubelet.service, 25 % the root cgroup (of 256 pages sampled)" in shown


def test_document() -> None:
    top = head("cache", Unread("kernel", "absent"), None)
    made = json.loads(render(CACHE.of(top, page(mounts=("/mnt",)))))
    jsonschema.validate(made, SCHEMA)
    hostile, kubelet, secret = made["files"]
    assert hostile["path"].startswith("/data/")
    assert (kubelet["cached_bytes"], kubelet["is_system"]) == (3 * MIB, True)
    assert kubelet["workloads"] == ["unit:kubelet.service"]
    assert "cached_bytes" not in secret
    assert {"cached_bytes", "dirty_bytes"} <= set(secret["unread"])
    assert made["total_cached_bytes"] == 903 * MIB
    assert made["files_left_out"] == 2
    assert abs(made["explained_fraction"] - 903 / 2048) < 1e-9
    assert isinstance(MEMINFO, Meminfo)
    blind = CACHE.of(top, page(meminfo=Unread("/proc/meminfo", "refused")))
    assert "host_cached_bytes" in blind["unread"]
    assert "explained_fraction" not in blind


def test_files_that_are_not_shown_are_counted_with_their_size() -> None:
    made = page(files=(HOSTILE,), left_out=25, gone=4)
    shown = text(made)
    assert "and 25 more files, 3.0 MiB in all, none above 900 MiB: --top N" in shown
    assert "4 files were gone before they could be asked" in " ".join(shown.split())
    assert CACHE.of(head("cache", Unread("/x", "absent"), None), made)["files_gone"] == 4
    assert "gone before" not in text(page())


def test_nothing_to_do_is_never_said_beside_limit_hits() -> None:
    full = group(1)
    hit = replace(full, memcg=replace(full.memcg, failcnt=1400))
    words = " ".join(advice(page(group=hit)))
    assert "hit its limit 1,400 times since it began" in words
    assert "Nothing, as a rule" not in words
    calm = replace(full, memcg=replace(full.memcg, failcnt=0))
    assert "Nothing, as a rule" in " ".join(advice(page(group=calm)))
