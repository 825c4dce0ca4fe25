"""The marks of `make bench`, with room for a shared machine, so that CI notices a fall."""

import pytest
from bench import figures
from bench.__main__ import table

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
TOLERANCE = 2.0  # times the mark: neighbours on the machine, not us


def within(figure: figures.Figure, tolerance: float) -> bool:
    if figure.at_least:
        return figure.value >= figure.mark / tolerance
    return figure.value <= figure.mark * tolerance


@pytest.mark.parametrize(
    "measure",
    [figures.why_figures, figures.capture_figures, figures.scan_figures, figures.guard_figures],
)
def test_marks(measure: object) -> None:
    assert callable(measure)
    found = measure()
    if not found:
        pytest.skip("needs root and a memory cgroup of version 1")
    print("\n".join(table(found)))  # noqa: T201 - shown by -rP
    for figure in found:
        # Memory and sizes are ours alone: no tolerance.
        tolerance = 1.0 if figure.unit == "MB" else TOLERANCE
        assert within(figure, tolerance), figure
