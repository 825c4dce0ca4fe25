"""Claims in ``seawall memory`` and ``seawall pods``: text of 80 columns, and JSON."""

import json
import re
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_claim_join import claim
from tests.accounts.test_claims_properties import NO_BASE, ledger
from tests.case_host import parse_case
from tests.end_to_end.warm_verbs import seawall

from seawall.accounts.claim import Claim, SourceClaims, Suspect
from seawall.accounts.claims.claims import Claims, joined
from seawall.accounts.pods.pod_table import PodTable
from seawall.views.claims_text import holders
from seawall.views.documents.pods_document import PODS, PodsPage
from seawall.views.memory_page import claims_unseen
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.terminal import Console

MIB = 1 << 20
CASES = Path(__file__).parents[2] / "src/seawall/findings/rules/containers/over_limit_outside.cases"
SCHEMAS = {
    name: json.loads((files("seawall.views") / f"schemas/{name}.json").read_text())
    for name in ("memory", "pods")
}


def claims_of(*claims: Claim, suspects: tuple[Suspect, ...] = ()) -> Claims:
    has = ledger(4000 * MIB, 10 * MIB, hugetlb=3000 * MIB)
    return joined([SourceClaims(claims, suspects, ("rings of 2 namespaces",))], has, NO_BASE)


def text_of(claims: Claims, *, colour: bool = False) -> list[str]:
    return list(holders(claims, 4000 * MIB, Console(colour=colour)))


def suspect(name: str) -> Suspect:
    why = "3 processes have /dev/nvidia0 open"
    return Suspect(workload=name, cgroup=name, driver="nvidia", pids=(1, 2, 3), why=why)


def test_text_of_one_of_each() -> None:
    traced = claim("/pod", 1500, "traced", least_bytes=1400 * MIB, most_bytes=1600 * MIB,
                   kind="surface", driver="nvidia", give_back="end it",
                   missing="the rest")  # fmt: skip
    bound = claim("the NVIDIA driver", 1900, "bound", driver="nvidia", kind="surface")
    huge = claim("/db", 2048, kind="hugetlb", within="hugetlb")
    lines = text_of(claims_of(traced, bound, huge, suspects=(suspect("/other"),)))
    assert lines == [
        "",
        "Who holds uncounted memory",
        "  1.5 GiB: /pod (buffers of a driver, nvidia, traced), 1.4 GiB to 1.6 GiB",
        "    seen in: traced of /pod",
        "    not told: the rest",
        "    give back: end it",
        "  at most 500 MiB: the NVIDIA driver (buffers of a driver, upper bound)",
        "    seen in: bound of the NVIDIA driver",
        "",
        "Held by nobody known: 2.4 GiB of 3.9 GiB (between 1.8 GiB and 2.5 GiB).",
        "Suspects, for what nobody is known to hold; nothing is proved:",
        "  /other: 3 processes have /dev/nvidia0 open",
        "",
        "Who holds what is inside the lines above",
        "  2.0 GiB in hugetlb: /db (exact, in no cgroup's charge)",
    ]


def test_many_claims_are_told_in_one_line() -> None:
    """Twenty of 30 MiB and forty crumbs: ten by name, four of them explained."""
    large = [claim(f"/pod{n:02}", 30, give_back="end it") for n in range(20)]
    small = [claim(f"/crumb{n:02}", 0.5) for n in range(40)]
    lines = text_of(claims_of(*large, *small))
    named = [line for line in lines if line.startswith("  30.0 MiB: /pod")]
    assert len(named) == 10
    assert [line for line in lines if "give back" in line] == [
        "    give back: end it", *["    give back: as above"] * 3
    ]  # fmt: skip
    assert "  and 50 more, 320 MiB together (--json has them)" in lines
    assert len(lines) < 25


def test_many_suspects_are_cut() -> None:
    many = tuple(suspect(f"/pod{n}") for n in range(30))
    lines = text_of(claims_of(suspects=many))
    assert "  and 24 more (--json has them)" in lines


def test_hostile_names_steer_no_terminal() -> None:
    bad = claim("/x\x1b[31m\ny", 100, source="\x9b2J" + "s" * 300, give_back="\u202egive")
    for line in text_of(claims_of(bad, suspects=(suspect("/a\x1b]0;x\x07"),))):
        assert line.isprintable()


def test_every_line_fits_unless_a_word_does_not() -> None:
    words = " ".join(["word"] * 60)
    one = claim("/kubepods/pod1/" + "a" * 40, 100, source=words, give_back=words, missing=words)
    for line in text_of(claims_of(one)):
        assert len(line) <= 80 or max(map(len, line.split())) > 50


def test_nothing_claimed_says_what_would_tell() -> None:
    rows = claims_unseen(claims_of())
    assert [row.what for row in rows] == ["holders", "who holds the uncounted memory"]
    assert rows[0].why == "rings of 2 namespaces"
    assert "memory --who" in rows[1].provide
    assert len(claims_unseen(claims_of(claim("/a", 5)))) == 1
    assert claims_unseen(NO_BASE) == []


def test_fields_without_claims_are_named_as_unread() -> None:
    table = PodTable(rows=(), version=2, parents_own=None, root_own=None, unread=())
    page = PodsPage(
        table=table, chosen=choose(table, PodChoice()), entitlements={}, claimed=NO_BASE,
        unseen=(), bundle_notes=(),
    )  # fmt: skip
    fields = PODS.of({"unread": []}, page)
    assert fields["claims"] == []
    assert set(fields["unread"]) == {
        "unexplained_bytes", "unexplained_least_bytes", "unexplained_most_bytes",
    }  # fmt: skip


# --- both verbs over a whole host: the hog of a rule's case -----------------------------


@pytest.fixture
def root(tmp_path: Path) -> str:
    for path, data in parse_case((CASES / "rings_over.case").read_bytes()).records[0].files.items():
        assert isinstance(data, bytes)
        # The claims of a watcher that lives.
        data = re.sub(rb"1699999[0-9]+[.]0", f"{time.time() - 1:.1f}".encode(), data)
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return str(tmp_path)


def answer(verb: str, root: str) -> dict[str, Any]:
    page = seawall(verb, "--json", "--root", root).answered().document
    jsonschema.validate(page, SCHEMAS[verb])
    assert set(SCHEMAS[verb]["properties"]) >= set(page), "every field is in the schema"
    return page


def test_memory_names_the_hog_and_what_is_left(root: str) -> None:
    page = answer("memory", root)
    first = page["claims"][0]
    assert (first["workload"], first["cgroup"], first["class"]) == (*["/tenants/hog"] * 2, "ring")
    assert first["bytes"] == first["least_bytes"] == 1 << 30
    sender = page["claims"][1]
    assert (sender["workload"], sender["least_bytes"]) == ("/tenants/sender", 0)
    assert page["uncounted_bytes"] == first["bytes"] + sender["bytes"]
    assert page["shadow_charge_bytes"] == (20 + 190 + 199) * MIB + page["uncounted_bytes"]
    left = page["residual_bytes"] - page["uncounted_bytes"]
    assert page["unexplained_bytes"] == left
    assert page["unexplained_least_bytes"] <= left <= page["unexplained_most_bytes"]


def test_pods_shows_what_is_outside_and_marks_the_hog_alone(root: str) -> None:
    rows = {row["name"]: row for row in answer("pods", root)["workloads"]}
    hog = rows["/tenants/hog"]
    assert hog["uncounted_bytes"] == hog["uncounted_least_bytes"] == 1 << 30
    assert hog["shadow_charge_bytes"] == (1 << 30) + 20 * MIB
    assert hog["danger"] == {"level": "critical", "what": "over_outside"}
    assert rows["/tenants/forks"]["uncounted_bytes"] == 0
    dangers = {name: row["danger"] and row["danger"]["what"] for name, row in rows.items()}
    assert [name for name, what in dangers.items() if what == "over_outside"] == ["/tenants/hog"]


def test_pods_as_text_has_the_columns_where_they_matter(root: str) -> None:
    text = seawall("pods", "--root", root, "--sort", "really").answered().text
    lines = text.splitlines()
    assert "  !! /tenants/hog: really 1.0 GiB of 200 MiB, 1.0 GiB uncounted" in lines
    head = next(line for line in lines if "WORKLOAD" in line).split()
    assert head[:6] == ["WORKLOAD", "CHARGE", "LIMIT", "LEFT", "UNCOUNTED", "REALLY"]
    first = lines[lines.index(next(line for line in lines if "WORKLOAD" in line)) + 1].split()
    assert first[1:7] == ["/tenants/hog", "20M", "200M", "180M", "1.0G", "1.0G"]
    assert all(len(line) <= 80 for line in lines)


def test_pods_hides_the_columns_where_all_is_counted(root: str) -> None:
    Path(root, "run/seawall/claims").unlink()
    assert "UNCOUNTED" not in seawall("pods", "--root", root).answered().text
    assert "UNCOUNTED" in seawall("pods", "--root", root, "--wide").answered().text
