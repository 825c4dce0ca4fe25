"""The four kinds of objects that Seawall adds to a cluster, from the chart's own files."""

from pathlib import Path

import yaml
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.waiting import wait_until

FOLDER = Path(__file__).parents[2] / "packaging/chart/seawall/templates/crds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
API = "/apis/seawall.internal/v1alpha1"
SERVED_SECONDS = 20


def definitions() -> list[Object]:
    """The chart's, in which nothing is a template."""
    return [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]


def install(client: ApiClient) -> None:
    """All four, served by the time this returns; those that are there already are left alone."""
    for one in definitions():
        try:
            client.create(DEFINITIONS, one)
        except ApiError as problem:
            if problem.reason != "AlreadyExists":
                raise
    for one in definitions():
        path = f"{API}/{one['spec']['names']['plural']}"
        wait_until(lambda path=path: is_served(client, path), SERVED_SECONDS, f"{path} is served")


def is_served(client: ApiClient, path: str) -> bool:
    """Not so long as it is unknown, or its storage is still being made (429)."""
    try:
        client.get(path, limit=1)
    except ApiError as problem:
        if problem.status in {404, 429, 503}:
            return False
        raise
    return True
