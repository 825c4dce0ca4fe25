"""``seawall pods`` as text and as JSON, from a whole host written down by hand."""

import json
import re
from argparse import ArgumentParser, Namespace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_claim_join import claim
from tests.accounts.test_claims_properties import NO_BASE, ledger
from tests.case_host import parse_case
from tests.end_to_end.warm_verbs import seawall

from seawall.accounts.claim import SourceClaims
from seawall.accounts.claims.claims import joined
from seawall.accounts.entitlements import Entitlement
from seawall.accounts.pods.pod_danger import danger_of
from seawall.accounts.pods.pod_outside import with_outside
from seawall.accounts.pods.pod_table import PodTable
from seawall.cli import pods
from seawall.problems import UsageProblem
from seawall.readings.reading import UNLIMITED
from seawall.readings.snapshot import Snapshot
from seawall.views import pods_text
from seawall.views.documents.pods_document import PODS, PodsPage
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.pods_columns import ATTENTION, COLUMNS, KEYS, column
from seawall.views.pods_text import request
from seawall.views.terminal import Console
from seawall.words import brief

SCHEMA = json.loads((files("seawall.views") / "schemas/pods.json").read_text())
A, B, C = (digit * 64 for digit in "abc")
UID = "1858680e-b044-4fd5-9dd4-f137e30e2180"
POD = f"/kubepods/burstable/pod{UID}"
ROOT = "/sys/fs/cgroup"
MIB = 1 << 20


def memory(path: str, usage: int, limit: str = "max", pids: str = "", **more: int | str) -> str:
    """One cgroup v2 as its files."""
    stat = {"anon": usage, "file": 0, "kernel": 0, "shmem": 0, "inactive_file": 0,
            "active_file": 0, "file_dirty": 0, "file_writeback": 0}  # fmt: skip
    stat |= {key: value for key, value in more.items() if key in stat}
    stall = more.get("stall", "0.00")
    parts = {
        "memory.current": str(usage),
        "memory.max": limit,
        "memory.stat": "\n".join(f"{key} {value}" for key, value in stat.items()),
        "memory.events": f"low 0\nhigh 0\nmax 3\noom 0\noom_kill {more.get('kills', 0)}",
        "memory.swap.current": "0",
        "cgroup.procs": pids,
        "memory.pressure": f"some avg10={stall} avg60=0.00 avg300=0.00 total=0\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0",
    }
    return "".join(f"=== {ROOT}{path}/{name}\n{text}\n" for name, text in parts.items())


HOST = "".join([
    "why: one pod near its limit, one container full of cache, one hostile name\n",
    "=== /proc/1/mountinfo\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    f"=== {ROOT}/cgroup.controllers\ncpu memory pids\n",
    f"=== {ROOT}/cgroup.procs\n1\n",
    memory("/kubepods", 700 * MIB), memory("/kubepods/burstable", 700 * MIB),
    memory(POD, 700 * MIB, str(1024 * MIB)),
    memory(f"{POD}/{A}", 500 * MIB, str(512 * MIB), "10\n11", stall="34.50"),
    memory(f"{POD}/{B}", 190 * MIB, str(200 * MIB), "12", anon=10 * MIB, file=180 * MIB,
           inactive_file=170 * MIB, active_file=10 * MIB, file_dirty=4 * MIB),
    memory("/system.slice", 60 * MIB), memory("/system.slice/ssh.service", 50 * MIB, pids="20"),
    memory("/bad\\n\\x1b[31mname", 2 * MIB, pids="30"),
    f"=== /var/log/containers/web-0_shop_app-{A}.log\n",
    f"=== /var/log/pods/shop_web-0_{UID}/app/0.log\n",
]).encode()  # fmt: skip


@pytest.fixture
def table() -> PodTable:
    got = Snapshot(parse_case(HOST).rounds[0]).get(PodTable)
    assert isinstance(got, PodTable)
    return got


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The verb over the case, as an unpacked tree of files."""
    for path, data in parse_case(HOST).records[0].files.items():
        assert isinstance(data, bytes)
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def answer(*words: str) -> str:
        parser = ArgumentParser()
        pods.add_arguments(parser)
        given: Namespace = parser.parse_args(["--root", str(tmp_path), *words])
        assert pods.run(given) == 0
        return capsys.readouterr().out

    return answer


def test_text(run: Any) -> None:
    lines = run().splitlines()
    assert max(map(len, lines)) <= 80
    start = next(n for n, line in enumerate(lines) if "need" in line)
    assert lines[start] == "1 of 4 workloads needs a look:"
    assert lines[start + 1] == "  !! shop/web-0/app: 12.0 MiB left of 512 MiB"
    head = next(n for n, line in enumerate(lines) if "WORKLOAD" in line)
    names = [line[:24].rstrip() for line in lines[head + 1 : head + 6]]
    assert names[0] == "!! shop/web-0/app"
    assert names[1].startswith("   shop/web-0/bbbb")
    assert names[2] == "   unit:ssh.service"
    assert names[3].startswith("   /bad\\x0a\\x1b[31mname")
    assert lines[head + 5].startswith("   TOTAL of 2 in pods")
    assert lines[head + 6].startswith("   TOTAL of 2 of the host")
    first = lines[head + 1].split()
    assert first[2:5] == ["500M", "512M", "12M"]
    assert "34%" in first or "35%" in first
    assert lines[head + 5].split()[5] == "690M"
    assert lines[head + 6].split()[6] == "52M"
    assert "20.0 MiB to parents alone" in " ".join(lines)
    assert "stalls 4 of 4" in " ".join(lines)
    assert len(lines) <= 24
    lines = run("--limit", "0").splitlines()
    blind = lines.index("Could not see")
    assert any("no cgroup counts it" in line for line in lines[blind:])
    assert "\x1b" not in run()


def test_colour_marks_only_the_endangered(run: Any) -> None:
    text = run("--color", "always")
    red = re.findall(r"\x1b\[1;31m(.*?)\x1b\[0m", text)
    assert len(red) == 3  # the count, its line, its row
    assert all("need" in line or "shop/web-0/app" in line for line in red)


def test_everything_wide(run: Any) -> None:
    text = run("--all", "--wide")
    row = next(line for line in text.splitlines() if line.startswith("   shop/web-0 "))
    assert "700M" in row
    for title in ("CHARGE", "LIMIT", "LEFT", "WSET", "ANON", "CACHE", "CLEAN", "DIRTY", "KERN",
                  "STALL", "HITS"):  # fmt: skip
        assert title in text
    assert "No room" not in text
    assert "TOTAL of 2 in pods" in text


def test_requests_stand_in_the_wide_table(run: Any, tmp_path: Path) -> None:
    (tmp_path / "proc/12").mkdir(parents=True)
    (tmp_path / "proc/12/oom_score_adj").write_text("968\n")
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: {64 << 20} kB\nMemFree: 9 kB\n")
    lines = run("--wide").splitlines()
    head = next(line for line in lines if "CHARGE" in line)
    assert head.split()[-1] == "REQ"
    asked = [line.split()[-1] for line in lines[lines.index(head) + 1 :] if "190M" in line]
    assert asked == ["2.0G-2.1G"]  # 32 thousandths of 64 GiB, and less than 33
    app = next(line for line in lines[lines.index(head) + 1 :] if "shop/web-0/app" in line)
    assert app.split()[-1] == "?"
    assert "REQ" not in run()


def test_request_in_words() -> None:
    assert request(Entitlement(memory_request=(2 << 30, 2 << 30))) == "2.0G"
    assert request(Entitlement(memory_request=(0, 0))) == "0"
    assert request(Entitlement()) == request(None) == ""


def test_rows_that_did_not_fit_are_counted(run: Any) -> None:
    text = run("--limit", "1")
    assert "and 3 more: --limit 0" in text
    assert "TOTAL of 2 of the host" in text
    assert "more: --limit 0" not in run("--limit", "0")


def test_json(run: Any) -> None:
    page = json.loads(run("--json"))
    jsonschema.validate(page, SCHEMA, jsonschema.Draft202012Validator)
    rows = {row["name"]: row for row in page["workloads"]}
    app = rows["shop/web-0/app"]
    assert app["kind"] == "container"
    assert (app["namespace"], app["pod"], app["container"]) == ("shop", "web-0", "app")
    assert app["cgroup"] == f"{POD}/{A}"
    assert app["qos"] == "Burstable"
    assert (app["limit_bytes"], app["charge_bytes"]) == (512 * MIB, 500 * MIB)
    assert (app["distance_bytes"], app["distance_cgroup"]) == (12 * MIB, f"{POD}/{A}")
    assert app["danger"] == {"level": "critical", "what": "near_limit"}
    assert app["pressure_some_avg10"] == 0.345
    cached = next(row for row in page["workloads"] if row["container_id"] == B)
    assert (cached["anon_bytes"], cached["file_bytes"]) == (10 * MIB, 180 * MIB)
    assert (cached["reclaimable_bytes"], cached["dirty_bytes"]) == (176 * MIB, 4 * MIB)
    assert cached["working_set_bytes"] == 20 * MIB
    assert cached["danger"] is None
    ssh = rows["unit:ssh.service"]
    assert ssh["limit_bytes"] is None
    assert ssh["distance_bytes"] is None
    assert "peak_bytes" not in ssh
    assert "peak_bytes" in ssh["unread"]
    assert page["totals"]["charge_bytes"] == 742 * MIB
    assert page["totals"]["parents_own_bytes"] == 20 * MIB
    assert page["could_not_see"]


def test_this_very_machine_keeps_to_the_schema() -> None:
    for words in (["--json"], ["--json", "--all"]):
        page = seawall("pods", *words).answered().document
        jsonschema.validate(page, SCHEMA)
        known = {name for row in page["workloads"] for name in row}
        assert known <= set(SCHEMA["properties"]["workloads"]["items"]["properties"])
        leaves = sum(row.get("charge_bytes", 0) for row in page["workloads"] if row["is_leaf"])
        if "charge_bytes" in page["totals"] and not page["left_out"] and "--all" not in words:
            assert page["totals"]["charge_bytes"] == leaves


def test_schema_is_a_schema_and_is_strict_enough(run: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    page = json.loads(run("--json", "--all"))
    jsonschema.validate(page, SCHEMA)
    for field in ("name", "cgroup", "unread"):
        broken = json.loads(json.dumps(page))
        del broken["workloads"][0][field]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)
    declared = SCHEMA["properties"]["workloads"]["items"]["properties"]
    row = page["workloads"][0]
    assert set(row) <= set(declared), "every field that is written is described"
    assert {c.json_name for c in COLUMNS} <= set(declared)


def test_one_workload_and_what_is_in_it(run: Any) -> None:
    page = json.loads(run("--json", "shop/web-0"))
    assert [row["cgroup"] for row in page["workloads"]] == [f"{POD}/{A}", POD, f"{POD}/{B}"]
    assert page["totals"]["charge_bytes"] == 690 * MIB
    page = json.loads(run("--json", "pid:12"))
    assert [row["container_id"] for row in page["workloads"]] == [B]
    with pytest.raises(UsageProblem, match="near: shop/web-0/app"):
        run("shop/web-0/apq")


def test_what_a_pod_holds_as_a_whole_is_shown(table: PodTable) -> None:
    """Two of its containers have the socket: in no container's row, and not lost."""
    claims = joined([SourceClaims((claim(POD, 900),))], ledger(5000 * MIB), NO_BASE)
    table = with_outside(table, claims)
    chosen = choose(table, PodChoice())
    text = list(pods_text.lines(table, chosen, Console(width=80)))
    assert any("!! shop/web-0: really 1.6 GiB of 1.0 GiB, 900 MiB uncounted" in x for x in text)
    (row,) = [line.split() for line in text if line.startswith("!! shop/web-0 ")]
    assert row[2:7] == ["700M", "1.0G", "324M", "900M", "1.6G"]
    pods_total, host_total = [line.split() for line in text if "TOTAL" in line]
    assert pods_total[5:8] == ["690M", "900M", "1.6G"]
    assert host_total[6:9] == ["52M", "0", "52M"]
    assert "cannot be told: shop/web-0." in " ".join(text)
    shown = PodsPage(
        table=table, chosen=chosen, entitlements={}, claimed=claims, unseen=(), bundle_notes=()
    )
    page = PODS.of({"unread": []}, shown)
    objects = page["workloads"]
    assert [o["cgroup"] for o in objects if o["undivided_bytes"] == 900 * MIB] == [POD]
    leaves = sum(o["uncounted_bytes"] for o in objects if o["is_leaf"])
    assert leaves + 900 * MIB == page["totals"]["uncounted_bytes"] == 900 * MIB
    assert [r.workload.cgroup for r in choose(table, PodChoice(everything=True)).rows].count(
        POD
    ) == 1


def test_one_full_of_cache_is_not_called_far_from_its_limit(run: Any) -> None:
    text = run("pid:12")
    assert "None of 1 workload needs a look" in text
    assert "10M" in text.split("TOTAL")[0], "what is left to the limit is in the table"


@pytest.mark.parametrize("key", KEYS)
def test_every_column_sorts(table: PodTable, key: str) -> None:
    chosen = choose(table, PodChoice(sort=key, everything=True))
    assert len(chosen.rows) == len(table.rows)
    if key == ATTENTION:
        assert danger_of(chosen.rows[0])
        kinds = [row.workload.kind for row in chosen.rows[1:]]
        assert kinds == sorted(kinds, key=["pod", "container", "unit", "slice", "cgroup"].index)
        return
    if key == "name":
        names = [row.workload.name for row in chosen.rows]
        assert names == sorted(names)
        return
    values = [column(key).of(row, row.whole) for row in chosen.rows]
    numbers = [value for value in values if isinstance(value, int | float)]
    assert numbers == sorted(numbers, reverse=key != "distance")


def test_unlimited_sorts_before_any_limit_and_after_any_distance(table: PodTable) -> None:
    limits = [row.limit for row in choose(table, PodChoice(sort="limit")).rows]
    assert limits == [UNLIMITED, UNLIMITED, 512 * MIB, 200 * MIB]
    near = choose(table, PodChoice(sort="distance")).rows
    assert near[0].workload.container_id == B
    assert near[-1].workload.kind in ("unit", "cgroup")


def test_unknown_column_and_number_are_usage(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageProblem, match="no such column"):
        run("--sort", "size")
    for number in ("-1", "x", "1e3", "9" * 5000):
        with pytest.raises(SystemExit):
            run("--limit", number)
    assert "not a number of rows" in capsys.readouterr().err


def test_a_tree_without_cgroups_is_blind_not_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proc").mkdir()
    parser = ArgumentParser()
    pods.add_arguments(parser)
    for words in ([], ["--json"]):
        assert pods.run(parser.parse_args(["--root", str(tmp_path), *words])) == 0
    out = capsys.readouterr().out
    text, _, page = out.partition("\n{")
    assert "Could not see" in text
    assert "any workload" in text
    document = json.loads("{" + page)
    jsonschema.validate(document, SCHEMA)
    assert document["workloads"] == []
    assert document["could_not_see"][0]["what"] == "any workload"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"), (999, "999"), (1000, "1.0K"), (12 << 10, "12K"), (1023 << 10, "1.0M"),
        (999 << 20, "999M"), (int(3.44 * (1 << 30)), "3.4G"), (10 << 30, "10G"), (1 << 40, "1.0T"),
        (-(5 << 20), "-5.0M"), ((1 << 64) - 1, "16E"),
    ],
)  # fmt: skip
def test_brief(count: int, text: str) -> None:
    assert brief(count) == text
    assert len(brief(count)) <= 5
