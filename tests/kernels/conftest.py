"""One disk image for all VMs of a test session."""

import shutil
from collections.abc import Iterator

import pytest
from tests.kernels.vm import Image, build_image, missing


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("node")
    yield build_image(folder)
    shutil.rmtree(folder)
