"""In the end of a run: how long each of a newcomer's roads took."""

import pytest
from tests.release.newcomer_road import ROAD


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Passed or not."""
    lines = [
        str(value)
        for tests in terminalreporter.stats.values()
        for test in tests
        if getattr(test, "when", "") == "call"
        for name, value in test.user_properties
        if name == ROAD
    ]
    if lines:
        terminalreporter.section("from nothing to the first answer")
        for line in lines:
            terminalreporter.write_line(line)
