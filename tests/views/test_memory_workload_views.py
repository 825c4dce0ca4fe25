"""``seawall memory WORKLOAD`` and ``why WORKLOAD`` over a whole host written down by hand."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.accounts.test_claim_join import claim
from tests.accounts.test_claims_properties import NO_BASE, ledger
from tests.case_host import parse_case
from tests.end_to_end.verbs import Ran
from tests.end_to_end.warm_verbs import seawall
from tests.views.test_pods_views import HOST, POD, A, B, memory

from seawall.accounts.cgroup_memory.memory_parts import parts_of
from seawall.accounts.claim import SourceClaims
from seawall.accounts.claims.claims import joined
from seawall.accounts.claims.shadow_charge import sum_of, uncounted_claims
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.pods.pod_outside import with_outside
from seawall.accounts.pods.pod_table import PodTable
from seawall.host.host import Unread
from seawall.readings.snapshot import Snapshot
from seawall.views.documents.memory_document import MEMORY
from seawall.views.memory_workload_page import WorkloadMemoryPage
from seawall.views.memory_workload_text import lines
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/memory.json").read_text())
MIB = 1 << 20
SHORT = "=== /proc/meminfo\nMemTotal: 67108864 kB\nMemFree: 8192 kB\nMemAvailable: 8192 kB\n"
AMPLE = SHORT.replace("MemAvailable: 8192", "MemAvailable: 50331648")


@pytest.fixture
def node(tmp_path: Path) -> Callable[[str, str], Ran]:
    """``node(more, *words)``: the verb over the case and more files, as an unpacked tree."""

    def answer(more: str, *words: str) -> Ran:
        for path, data in parse_case(HOST + more.encode()).records[0].files.items():
            assert isinstance(data, bytes)
            place = tmp_path / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return seawall(*words, "--root", str(tmp_path))

    return answer


def test_kinds_limit_and_room(node: Callable[..., Ran]) -> None:
    told = node(AMPLE, "memory", "shop/web-0/app").answered().text
    assert max(map(len, told.splitlines())) <= 80
    assert len(told.splitlines()) <= 23
    rows = [" ".join(line.split()) for line in told.splitlines()]
    assert "shop/web-0/app" in rows
    assert "CRITICAL: 12.0 MiB left of 512 MiB" in rows
    assert "500 MiB charged of a limit of 512 MiB; 500 MiB of it cannot be dropped" in rows
    assert "12.0 MiB left to its limit" in rows
    assert "500 MiB anonymous" in rows
    assert "0 B swap, beside the charge" in rows
    assert "? sockets" in rows  # the stat of this case has no such line: not 0
    assert any(row.startswith("no OOM kill counted since it began") for row in rows)
    assert "the node has 48.0 GiB of 64.0 GiB left" in rows
    assert "runs out" not in told
    assert "ssh" not in told


def test_cache_of_a_container_is_room(node: Callable[..., Ran]) -> None:
    told = " ".join(node(AMPLE, "memory", B[:12]).answered().text.split())
    assert "10.0 MiB left to its limit, 190 MiB once cache is dropped" in told
    assert "180 MiB file: page cache, 4.0 MiB of it waits to be written" in told


def test_shortage_of_the_node_is_said_where_it_comes_first(node: Callable[..., Ran]) -> None:
    alone = " ".join(node(SHORT, "memory", "shop/web-0/app").answered().text.split())
    assert "it runs out before any limit of this workload does" in alone
    unlimited = " ".join(node(SHORT, "memory", "unit:ssh").answered().text.split())
    assert "it runs out before any limit of this workload does" in unlimited
    assert "without a limit of its own" in unlimited
    page = node(SHORT, "memory", "unit:ssh", "--json").answered().document
    assert page["is_node_short"] is True
    assert page["workload"]["is_stopped_by_node"] is True


def test_json_follows_the_schema(node: Callable[..., Ran]) -> None:
    page = node(AMPLE, "memory", "shop/web-0/app", "--json").answered().document
    jsonschema.validate(page, SCHEMA)
    one = page["workload"]
    assert one["name"] == "shop/web-0/app"
    assert one["charge_bytes"] == one["anon_bytes"] == 500 * MIB
    assert one["limit_bytes"] == 512 * MIB
    assert one["grows_bytes"] == 12 * MIB
    assert "socket_bytes" in one["unread"]
    assert "lines" not in page


@pytest.mark.parametrize("verb", ["memory", "why", "pods"])
def test_unknown_and_ambiguous_names_are_answered_alike(
    node: Callable[..., Ran], verb: str
) -> None:
    near = node(AMPLE, verb, "shop/web-0/ap")
    assert near.status == 2
    assert near.err.startswith(b"seawall: no workload 'shop/web-0/ap'; near: shop/web-0/app, ")
    assert near.err.count(b"\n") == 1
    assert near.out == b""
    double = AMPLE + f"=== /var/log/pods/shop_web-0_{'1' * 8}-b044-4fd5-9dd4-f137e30e2180/x/0.log\n"
    other = f"/kubepods/burstable/pod{'1' * 8}-b044-4fd5-9dd4-f137e30e2180"
    double += memory(other, MIB) + memory(f"{other}/{'d' * 64}", MIB, pids="50")
    both = node(double, verb, "shop/web-0")
    assert both.status == 2
    assert b"'shop/web-0' could be shop/web-0 (" in both.err
    assert POD.encode() in both.err
    assert other.encode() in both.err


def test_name_of_a_terminal_s_enemy_is_written_out(node: Callable[..., Ran]) -> None:
    told = node(AMPLE, "memory", "pid:30").answered()
    assert b"\x1b" not in told.out
    wrong = node(AMPLE, "memory", "\x1b[31mno")
    assert wrong.status == 2
    assert b"\x1b" not in wrong.err


def test_modes_of_the_whole_node_take_no_workload(node: Callable[..., Ran]) -> None:
    for option in ("--who", "--census", "--watch", "--learn-base"):
        refused = node(AMPLE, "memory", "shop/web-0/app", option)
        assert refused.status == 2
        assert f"{option} is about the whole node" in refused.err.decode()
    whole = node(AMPLE, "memory", "/")
    assert whole.status == 2
    assert b"seawall memory" in whole.err


def test_uncounted_memory_of_it_and_of_nobody_else() -> None:
    app = "shop/web-0/app"
    mine = claim(app, 1024, cgroup=f"{POD}/{A}/nested", workload=app)
    others = claim("b", 2048, cgroup=f"{POD}/{B}", workload="b")
    claims = joined([SourceClaims((mine, others))], ledger(8 << 30), NO_BASE)
    snapshot = Snapshot(parse_case(HOST + AMPLE.encode()).rounds[0])
    table, headroom = snapshot.get(PodTable), snapshot.get(Headroom)
    assert isinstance(table, PodTable)
    assert isinstance(headroom, Headroom | Unread)
    table = with_outside(table, claims)
    row = next(row for row in table.rows if row.workload.name == "shop/web-0/app")
    within = sum_of(c for c in uncounted_claims(claims.claims) if c.workload == "shop/web-0/app")
    page = WorkloadMemoryPage(
        workload=row.workload, row=row, parts=parts_of(row.memcg), limit_name="",
        claims=within.claims, suspects=(), headroom=headroom, unseen=(), bundle_notes=(),
    )  # fmt: skip
    told = "\n".join(lines(page, Console()))
    assert "Uncounted memory of it: 1.0 GiB: 1.5 GiB with its charge" in told
    assert "2.0 GiB" not in told
    whole = MEMORY.of({"unread": []}, page)
    assert whole["workload"]["uncounted_bytes"] == 1 << 30
    assert [c["bytes"] for c in whole["claims"]] == [1 << 30]
