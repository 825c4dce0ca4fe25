"""One control plane for the whole session; a test that needs other times makes its own."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.acted_scene import TOLERATION_SECONDS
from tests.cluster.actor_process import InForceWriter, ready_for_actors
from tests.cluster.api_client import ApiClient
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import KwokNodes
from tests.cluster.node_pool import NodePool
from tests.cluster.observed_scene import WITH_ACTOR
from tests.cluster.plane_build import PlaneProblem, programs, version_wanted
from tests.cluster.workloads import namespace


@pytest.fixture(scope="session")
def built_programs() -> tuple[Path, Path]:
    """Of the control plane, and of its kwok."""
    version = version_wanted()
    try:
        found = programs(version)
    except PlaneProblem as problem:
        pytest.skip(str(problem))
    if shutil.which("openssl") is None:
        pytest.skip("no openssl, which makes the certificates: apt-get install openssl")
    return found


@pytest.fixture(scope="session")
def program(built_programs: tuple[Path, Path]) -> Path:
    return built_programs[0]


@pytest.fixture(scope="session")
def kwok(built_programs: tuple[Path, Path]) -> Path:
    return built_programs[1]


@pytest.fixture(scope="session")
def plane(program: Path, kwok: Path) -> Iterator[ControlPlane]:
    # Where an actor plays along a copy has to be there still when it is held.
    times = Times(toleration=TOLERATION_SECONDS) if WITH_ACTOR else Times()
    with ControlPlane(program, times, kwok=kwok) as plane:
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


@pytest.fixture(scope="session")
def slow_plane(program: Path, kwok: Path) -> Iterator[ControlPlane]:
    """Pods of a silent node are deleted after 20 s, as they are after 300 s in life."""
    with ControlPlane(program, Times(toleration=TOLERATION_SECONDS), kwok=kwok) as plane:
        yield plane


@pytest.fixture
def pool(slow_plane: ControlPlane) -> Iterator[NodePool]:
    with slow_plane.client() as client, KwokNodes(slow_plane) as nodes:
        ready_for_actors(client)
        pool = NodePool(client, nodes, f"pool-{uuid.uuid4().hex[:4]}", 8)
        with InForceWriter(slow_plane):  # it looks for its map once a minute
            yield pool
        client.delete(f"/api/v1/namespaces/{pool.space}")
