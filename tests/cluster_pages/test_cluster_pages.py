"""Tables, replay and the HTML page of the cluster's deaths."""

import html
import re
from html.parser import HTMLParser

from tests.cluster_pages.cluster_dumps import POLICY, START, crowd, death, dump, hog_deaths, pod

from seawall.cluster.judge.cluster_judge import JudgePolicy
from seawall.cluster.pages.cluster_html import ClusterReportOrigin, cluster_html
from seawall.cluster.pages.cluster_reading import ClusterReading, cluster_reading
from seawall.cluster.pages.cluster_replay_page import cluster_replay, replay_lines
from seawall.cluster.pages.cluster_tables import (
    cluster_deaths,
    cluster_suspects,
    deaths_lines,
    suspects_lines,
)
from seawall.views.terminal import Console


class Tags(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, data: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


PAPER = Console(width=80)
ORIGIN = ClusterReportOrigin("seawall cluster report", "0.1.0")


def reading(whole: dict, now_minutes: float | None = None) -> ClusterReading:
    now = None if now_minutes is None else START + now_minutes * 60.0
    return cluster_reading(whole["items"], "prod", now, {})


def test_suspects_are_a_table_with_score_and_mark() -> None:
    page = cluster_suspects(reading(dump(hog_deaths(), renewed_minutes=16.0)))
    lines = list(suspects_lines(page, PAPER, whole=False))
    assert any(
        re.match(r"ml/trainer +convicted +19\.2 +5\.3 +4  114 s ago +-$", row) for row in lines
    )
    assert max(map(len, lines)) <= 80


def test_no_suspects_is_an_answer_only_where_somebody_watches() -> None:
    watched = "\n".join(suspects_lines(cluster_suspects(reading(dump([], renewed_minutes=0.0))),
                                       PAPER, whole=False))  # fmt: skip
    assert "No workload is suspected." in watched
    nobody = "\n".join(suspects_lines(cluster_suspects(reading(dump([]), 0.0)), PAPER, whole=False))
    assert "NOBODY WATCHES" in nobody
    assert "No workload is suspected." not in nobody


def test_deaths_are_newest_first_and_fit() -> None:
    long = f"a-very-long-namespace-name/{'w' * 60}"
    deaths = [
        death(number, number, [pod(long, number), *crowd(number)],
              node=f"ip-10-0-{number}-17.eu-central-1.compute.internal")
        for number in range(40)
    ]  # fmt: skip
    page = cluster_deaths(reading(dump(deaths, renewed_minutes=41.0)))
    lines = list(deaths_lines(page, PAPER, whole=False))
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert lines[4].startswith("10:39:12Z")
    assert "and 23 earlier deaths more: --whole" in "\n".join(lines)
    assert len(list(deaths_lines(page, PAPER, whole=True))) >= 44


def test_a_replay_says_again_what_the_cluster_said() -> None:
    page = cluster_replay(reading(dump(hog_deaths(), renewed_minutes=16.0)))
    assert page.deaths_judged == 5
    assert page.deaths_left_out == 2
    assert not any(one.differs for one in page.verdicts)
    (hog,) = [one for one in page.verdicts if one.workload == "ml/trainer"]
    assert hog.then.state == hog.recorded == "convicted"
    assert hog.then.nodes_until_convicted == 2  # its records name it
    assert hog.then.convicted_by == "gpu-101"


def test_another_policy_convicts_later_or_never() -> None:
    whole = reading(dump(hog_deaths(), renewed_minutes=16.0))
    strict = cluster_replay(whole, JudgePolicy(POLICY.protected_namespaces, 0.001), "strict.yaml")
    text = "\n".join(replay_lines(strict, PAPER, whole=False))
    assert strict.other is not None
    assert strict.other.threshold_log10 == strict.policy.threshold_log10 + 2.0
    shielded = cluster_replay(whole, JudgePolicy(frozenset({"ml"})), "shield.yaml")
    (hog,) = [one for one in shielded.verdicts if one.workload == "ml/trainer"]
    assert hog.differs
    assert hog.other is not None
    assert hog.other.state == "cannot tell"
    words = "\n".join(replay_lines(shielded, PAPER, whole=False))
    assert "ml/trainer: not convicted any more" in words
    assert "namespace is protected" in words
    assert "strict.yaml" in text
    assert all(len(line) <= 80 for line in f"{text}\n{words}".splitlines())


def test_a_replay_of_nothing_suspects_nobody() -> None:
    page = cluster_replay(reading(dump([])))
    assert "No policy suspects anybody." in list(replay_lines(page, PAPER, whole=False))


def test_the_page_has_a_lane_for_each_node_and_loads_nothing() -> None:
    data = cluster_html(reading(dump(hog_deaths(), renewed_minutes=16.0)), ORIGIN).decode()
    for node in ("gpu-017", "gpu-101", "gpu-044", "gpu-163"):
        assert f'text-anchor="end">{node}</text>' in data
    assert data.count('class="death"') == 4 + 5 + 2  # of the suspect, of all, in two legends
    assert "kills nodes: 4 nodes dead" in data
    assert "by chance 1 in 12,936,990" in data
    assert "default-src 'none'" in data
    assert not re.search(r"\b(?:src=|href|url\()", data)
    assert "script" not in Tags(data).names


def test_hostile_names_are_text_in_the_page() -> None:
    whole = dump(hog_deaths(), renewed_minutes=16.0)
    evil = "<script>alert(1)</script>\"'&\x1b[2J"
    for item in whole["items"]:
        if item["kind"] == "NodeDeath":
            item["spec"]["nodeName"] = evil
            item["status"]["reason"] = evil
        if item["kind"] == "WorkloadQuarantine":
            item["spec"]["workload"]["name"] = evil
    data = cluster_html(reading(whole), ORIGIN).decode()
    tags = Tags(data)
    assert "script" not in tags.names
    assert not [name for name in tags.attributes if name.startswith("on")]
    assert "\x1b" not in data
    assert html.escape("<script>alert(1)</script>") in data


def test_a_page_of_nobody_who_watches_says_so() -> None:
    data = cluster_html(reading(dump([]), 0.0), ORIGIN).decode()
    assert "NOBODY WATCHES" in data
    assert "No workload is suspected" not in data
