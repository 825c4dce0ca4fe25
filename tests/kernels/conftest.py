"""One disk image for all VMs of a test session."""

import shutil
from collections.abc import Iterator

import pytest
from tests.kernels.built_modules import hold_tracepoints
from tests.kernels.vm import Image, build_image, missing

collect_ignore_glob = ["guest/*.py"]
"""Programs for the VM: to look for doctests in one would be to run it on this machine."""


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("node")
    yield build_image(folder, hold_tracepoints)
    shutil.rmtree(folder)
