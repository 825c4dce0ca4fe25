"""The story of ``seawall cluster why``, from deaths that the judge has judged."""

import re

import pytest
from tests.cluster_pages.cluster_dumps import (
    START,
    crowd,
    death,
    dump,
    hog_deaths,
    lease,
    pod,
)

from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.pages.cluster_reading import LEASE, ClusterReading, cluster_reading
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage, cluster_why
from seawall.cluster.pages.cluster_why_text import why_lines
from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Console


def reading(whole: dict, *, now_minutes: float | None = None, **missing: NotSeen) -> ClusterReading:
    now = None if now_minutes is None else START + now_minutes * 60.0
    return cluster_reading(whole["items"], "prod", now, missing)


def text(page: ClusterWhyPage, *, whole: bool = False, width: int = 80) -> str:
    return "\n".join(why_lines(page, Console(width=width), whole=whole))


def test_the_story_names_the_workload_its_nodes_the_odds_and_what_comes_next() -> None:
    page = cluster_why(reading(dump(hog_deaths(), renewed_minutes=16.0)), "")
    shown = text(page)
    assert page.answer == "killer"
    assert "CONVICTED: Deployment ml/trainer kills nodes: 4 nodes dead, the last 114 s ago" in shown
    assert re.findall(r"gpu-\d+(?=  10:)", shown) == ["gpu-017", "gpu-101", "gpu-044", "gpu-163"]
    assert "gpu-101  10:04:30Z  12 min ago  silent, no record" in shown
    # To be checked by hand: of 200 nodes 4 ran it; of 5 dead ones 4: 4 * 196 / C(200, 5) + ...
    assert "of 200 nodes 4 ran it; 5 died, 4 with it: by chance 1 in 12,936,990" in shown
    assert "nothing was changed: Seawall observes here" in shown
    assert "its pod on gpu-163 is moved to another node at 10:19:18Z (in 3 min)" in shown
    assert "kubectl -n ml scale deployment trainer --replicas=0" in shown
    assert "41.0 GiB of 64.0 GiB that was lost" in shown
    assert "the end of gpu-101: no record of the node itself came" in shown
    for innocent in ("shop/web", "shop/cart", "db/replica"):
        assert innocent not in shown


@pytest.mark.parametrize("with_records", [True, False])
@pytest.mark.parametrize("subject", ["", "gpu-044", "ml/trainer", "shop/web", "nobody"])
def test_it_is_one_screen(subject: str, *, with_records: bool) -> None:
    deaths = hog_deaths(with_records=with_records)
    deaths += [
        death(200 + number, 15 + number, [pod("ml/trainer", 200 + number, nodes=3), *crowd(number)])
        for number in range(30)
    ]
    page = cluster_why(reading(dump(deaths, renewed_minutes=50.0)), subject)
    lines = text(page).splitlines()
    assert len(lines) <= 23
    assert [line for line in lines if len(line) > 80] == []
    if subject in ("", "ml/trainer"):
        assert "before these: --whole" in text(page)
        assert len(re.findall(r"  gpu-\d+  1", text(page, whole=True))) == 34


def test_a_pod_that_was_moved_already_is_not_announced() -> None:
    shown = text(cluster_why(reading(dump(hog_deaths(), renewed_minutes=60.0)), ""))
    assert "its pod on gpu-163 may run elsewhere since 10:19:18Z (41 min ago)" in shown
    assert "is moved to another node" not in shown


def test_a_node_that_was_reset_keeps_its_pods() -> None:
    deaths = [death(1, 0.0, crowd(1), kind=DeathKind.RESET)]
    page = cluster_why(reading(dump(deaths, renewed_minutes=1.0)), "gpu-001")
    assert page.headline.startswith("node gpu-001 was reset 60 s ago")
    assert not page.outlook


def test_of_a_suspect_that_is_not_convicted_no_command_is_shown() -> None:
    page = cluster_why(reading(dump(hog_deaths()[:4], renewed_minutes=1.0)), "")
    assert page.answer == "suspect"
    assert "Deployment ml/trainer is suspected: 1 node died with it" in page.headline
    assert not page.commands
    assert "kills nodes" not in text(page)


def test_without_an_observer_nothing_is_called_healthy() -> None:
    whole = dump([])
    page = cluster_why(reading(whole, now_minutes=0.0), "")
    shown = text(page)
    assert "NOBODY WATCHES: no observer holds its lease" in shown
    assert "so whether nodes died is not known" in shown
    assert "no node died" not in shown
    assert "no workload is suspected" not in shown


def test_a_lease_that_has_run_out_says_since_when() -> None:
    whole = dump(hog_deaths()[:1], renewed_minutes=-500.0)
    shown = text(cluster_why(reading(whole, now_minutes=0.0), ""))
    assert "NOBODY WATCHES since 01:40:12Z (8 h ago)" in shown
    assert "nobody watches any more" in shown
    assert "is suspected" not in shown


def test_a_lease_that_may_not_be_read_is_not_seen() -> None:
    refused = NotSeen("whether anybody watches", "leases is forbidden", "get and list leases")
    page = cluster_why(reading(dump([]), now_minutes=0.0, **{LEASE: refused}), "")
    shown = text(page)
    assert "not seen: whether anybody watches: leases is forbidden" in shown
    assert "NOBODY" not in shown


def test_an_observer_that_watches_and_saw_nothing() -> None:
    page = cluster_why(reading(dump([], renewed_minutes=0.0), now_minutes=0.1), "")
    assert page.answer == "none"
    assert page.headline == "no node died, and no workload is suspected"
    assert "200 nodes watched since 10-29 10:00Z" in text(page)


def test_an_innocent_is_said_to_be_none() -> None:
    page = cluster_why(reading(dump(hog_deaths(), renewed_minutes=16.0)), "shop/web")
    assert page.answer == "innocent"
    assert page.headline.startswith("shop/web is not suspected: it was on ")
    assert "kubectl" not in text(page)


def test_a_planned_and_a_retracted_death_are_no_deaths() -> None:
    whole = reading(dump(hog_deaths(), renewed_minutes=16.0))
    planned = cluster_why(whole, "gpu-091")
    assert planned.headline == "node gpu-091 went away as planned (drained: cluster autoscaler)"
    retracted = cluster_why(whole, "gpu-092")
    assert "was only out of reach, and did not die" in retracted.headline
    assert not planned.outlook
    assert not retracted.outlook


def test_names_from_the_api_steer_nothing() -> None:
    whole = dump(hog_deaths(), renewed_minutes=16.0)
    for item in whole["items"]:
        if item["kind"] == "NodeDeath":
            item["spec"]["nodeName"] += "\x1b[2J\u202e\n"
            for workload in item["status"]["workloads"]:
                workload["ownerName"] += "\x1b]0;x\x07"
        if item["kind"] == "WorkloadQuarantine":
            item["spec"]["workload"]["name"] = "tr;rm -rf $(x)\x1b[31m"
    shown = text(cluster_why(reading(whole), ""), whole=True)
    assert shown.isascii()
    assert not set(shown) & {"\x1b", "\x07"}
    assert "'tr;rm -rf $(x)" in shown  # one word for the shell


def test_an_object_that_is_wrong_is_named_and_the_others_are_read() -> None:
    whole = dump(hog_deaths(), renewed_minutes=16.0)
    whole["items"][1]["spec"]["heartbeatAt"] = "yesterday"
    whole["items"] += [{"kind": "NodeDeath"}, 7, {"kind": "Lease", "metadata": {"name": []}}]
    page = cluster_why(reading(whole), "")
    assert page.answer == "killer"
    whys = [row.why for row in page.unseen]
    assert any("heartbeatAt: expected a time of RFC 3339, found 'yesterday'" in why for why in whys)
    assert len([row for row in page.unseen if row.what == "an object"]) == 4


def test_the_newest_time_of_a_file_is_its_moment() -> None:
    whole = dump(hog_deaths())
    assert reading(whole).as_of_unix_seconds == pytest.approx(START + 14.1 * 60 + 0.4, abs=0.01)
    whole["items"].append(lease(START + 3600.0))
    assert reading(whole).as_of_unix_seconds == START + 3600.0
    assert time_words(START)[:19] == "2026-11-28T10:00:12"
