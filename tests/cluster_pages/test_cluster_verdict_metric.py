"""What alerts ask of the observer: the judge's verdict, for a score over the mark may be chance."""

from dataclasses import replace

from tests.cluster_pages.cluster_dumps import POLICY, START, hog_deaths, judged

from seawall.cluster.objects.workload_quarantine_object import QuarantineState
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


def test_when_a_quarantine_ends_is_told_only_while_it_is_in_force() -> None:
    metrics = ObserverMetrics()
    _, rows = judged(hog_deaths(), POLICY, START - 86400.0)

    def ends() -> dict[str, float]:
        name = "seawall_quarantine_expiry_timestamp_seconds"
        found = [row for family in metrics.registry.collect() for row in family.samples]
        return {row.labels["name"]: row.value for row in found if row.name == name}

    metrics.show_quarantines(rows)
    assert ends() == {}
    active = [replace(one, state=QuarantineState.ACTIVE) for one in rows]
    metrics.show_quarantines(active)
    assert ends() == {"trainer": active[0].expires_seconds}
    metrics.show_quarantines([replace(one, state=QuarantineState.RELEASED) for one in rows])
    assert ends() == {}
