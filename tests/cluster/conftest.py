"""One control plane for the whole session; a test that needs other times makes its own."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.plane_build import DEFAULT, TAGS, built, version_wanted
from tests.cluster.workloads import namespace


@pytest.fixture(scope="session")
def program() -> Path:
    path = built(version_wanted())
    if path is None:
        pytest.skip(f"no control plane of {version_wanted()} is built: make plane (needs Go)")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl, which makes the certificates: apt-get install openssl")
    return path


@pytest.fixture(scope="session")
def kwok(program: Path) -> Path:
    if version_wanted() not in TAGS:
        return program
    path = built(DEFAULT)
    if path is None:
        pytest.skip(
            f"no control plane of {DEFAULT} is built, whose kwok this one needs: make plane"
        )
    return path


@pytest.fixture(scope="session")
def plane(program: Path, kwok: Path) -> Iterator[ControlPlane]:
    with ControlPlane(program, kwok=kwok) as plane:
        yield plane


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[ApiClient]:
    with plane.client() as client:
        yield client


@pytest.fixture
def nodes(plane: ControlPlane) -> Iterator[KwokNodes]:
    with KwokNodes(plane) as nodes:
        yield nodes


@pytest.fixture
def space(client: ApiClient) -> Iterator[str]:
    name = namespace(client, f"test-{uuid.uuid4().hex[:8]}")
    yield name
    client.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def audit(plane: ControlPlane) -> AuditLog:
    return AuditLog(plane.audit_path)
