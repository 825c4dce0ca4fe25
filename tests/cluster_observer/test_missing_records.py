"""Nodes that are back and tell nothing."""

from dataclasses import replace

import msgspec
from tests.cluster_observer.test_awaited_record import CONFIRMED, ROW

from seawall.cluster.objects.node_death_object import DeathPhase, NodeDeathObject
from seawall.cluster.observer.missing_records import MissingRecords

BACK = msgspec.structs.replace(ROW, boot_id="b2", ready="True")
DIED = replace(CONFIRMED, has_agent=True)
AT = DIED.observed_seconds
QUARTER = 900.0


def missing(records: MissingRecords, deaths: list[NodeDeathObject], at: float) -> dict[str, int]:
    return records.by_pool(deaths, {"n1": BACK}, ["gpu", "cpu"], at)


def test_a_quarter_of_an_hour_after_its_return_until_it_tells() -> None:
    records = MissingRecords()
    assert missing(records, [DIED], AT + 600) == {"gpu": 0, "cpu": 0}
    assert missing(records, [DIED], AT + 600 + QUARTER - 1)["gpu"] == 0
    assert missing(records, [DIED], AT + 600 + QUARTER) == {"gpu": 1, "cpu": 0}
    told = replace(DIED, record=(), phase=DeathPhase.EXPLAINED)
    assert missing(records, [told], AT + 700 + QUARTER)["gpu"] == 0


def test_who_is_not_waited_for() -> None:
    others = [
        replace(DIED, has_agent=False),
        replace(DIED, phase=DeathPhase.RETRACTED),
        replace(DIED, phase=DeathPhase.PLANNED),
        replace(DIED, node="gone for good"),
        replace(DIED, boot_id="b2"),  # it is Ready as it was before
        replace(DIED, observed_seconds=AT - 86400.0),
    ]
    for one in others:
        records = MissingRecords()
        for at in (AT, AT + QUARTER):
            assert missing(records, [one], at)["gpu"] == 0
    silent = MissingRecords()
    for at in (AT, AT + QUARTER):
        assert silent.by_pool([DIED], {"n1": ROW}, [], at) == {}


def test_a_node_that_dies_again_begins_anew() -> None:
    records = MissingRecords()
    missing(records, [DIED], AT)
    assert records.by_pool([DIED], {"n1": ROW}, ["gpu"], AT + 10) == {"gpu": 0}
    assert missing(records, [DIED], AT + QUARTER)["gpu"] == 0
    assert missing(records, [DIED], AT + 2 * QUARTER)["gpu"] == 1
