"""The table of states that a tenant can write is whole, and each of its tests is there."""

import re
from pathlib import Path

import pytest

from seawall.guard.tenant_states import LOOKS, OF_ONE, STATES, TenantState
from seawall.replay.state_schema import SCRATCH, SLOTS

REPOSITORY = Path(__file__).parents[2]
ROWS = [
    pytest.param(row, id=f"{of}.{row.names[0]}")
    for of, rows in (*STATES.items(), *LOOKS.items()) for row in rows
]  # fmt: skip
BOUND = re.compile(r"^(_?[A-Z][A-Z_]*(?:_MOST|_SECONDS|_BYTES|_KEPT)): Final = ", re.MULTILINE)


def test_every_slot_of_the_judge_has_a_row() -> None:
    """``SLOTS`` is whole itself: ``tests/replay/test_policy_state_codec.py``."""
    slots = {
        (kind.__name__, name)
        for kind in SLOTS if kind.__name__ not in OF_ONE
        for name in (*SLOTS[kind], *SCRATCH.get(kind, ()))
    }  # fmt: skip
    rows = [(of, name) for of, found in STATES.items() for row in found for name in row.names]
    assert len(rows) == len(set(rows)), "one row a slot"
    missing, gone = slots - set(rows), set(rows) - slots
    assert not missing, f"say in guard/tenant_states.py who can write it, what it costs: {missing}"
    assert not gone, f"no slot is called that any more: {gone}"


def test_every_bound_of_a_look_has_a_row() -> None:
    folder = REPOSITORY / "src/seawall"
    for module in (*(folder / "host/packet_rings").glob("*.py"), *map(folder.joinpath, LOOKS)):
        path = str(module.relative_to(folder))
        rows = {name for row in LOOKS.get(path, ()) for name in row.names}
        assert rows == set(BOUND.findall(module.read_text())), f"guard/tenant_states.py: {path}"


@pytest.mark.parametrize("row", ROWS)
def test_each_test_that_is_named_is_there(row: TenantState) -> None:
    if row.test:
        path, _, name = row.test.partition("::")
        assert f"\ndef {name}(" in (REPOSITORY / path).read_text()
