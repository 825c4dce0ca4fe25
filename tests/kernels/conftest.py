"""One disk image for all VMs of a test session; in the end a line of each node with a guard."""

import shutil
from collections.abc import Iterator

import pytest
from tests.kernels.built_modules import hold_tracepoints
from tests.kernels.guard_boots import NODE_LINE
from tests.kernels.vm import Image, build_image, missing


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("node")
    yield build_image(folder, hold_tracepoints)
    shutil.rmtree(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Passed or not: with seed, scenario, who died, and how the canary was served."""
    lines = [
        str(value)
        for tests in terminalreporter.stats.values()
        for test in tests
        if getattr(test, "when", "") == "call"
        for name, value in test.user_properties
        if name == NODE_LINE
    ]
    if lines:
        terminalreporter.section("nodes with the guard")
        for line in lines:
            terminalreporter.write_line(line)
