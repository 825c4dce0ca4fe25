"""What alerts ask of the observer: the judge's verdict, for a score over the mark may be chance."""

from tests.cluster_pages.cluster_dumps import POLICY, START, hog_deaths, judged

from seawall.cluster.observer.observer_metrics import ObserverMetrics

NAME = "seawall_workload_verdict"


def series(metrics: ObserverMetrics) -> dict[str, str]:
    rows = [row for family in metrics.registry.collect() for row in family.samples]
    return {row.labels["name"]: row.labels["verdict"] for row in rows if row.name == NAME}


def test_each_workload_has_one_verdict_and_what_is_taken_away_is_gone() -> None:
    metrics = ObserverMetrics()
    _, first = judged(hog_deaths()[:4], POLICY, START - 86400.0)
    metrics.show_quarantines(first)
    assert series(metrics) == {"trainer": "suspected"}
    _, later = judged(hog_deaths(), POLICY, START - 86400.0)
    metrics.show_quarantines(later)
    assert series(metrics) == {"trainer": "convicted"}
    metrics.show_quarantines([])
    assert series(metrics) == {}
