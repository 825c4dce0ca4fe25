"""What Prometheus and a probe ask the observer for."""

import socket
import urllib.error
import urllib.request

import pytest

from seawall.cluster.observer.observer_metrics import ObserverEndpoint, ObserverMetrics


def _has_six() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


SIX = pytest.param("::1", marks=pytest.mark.skipif(not _has_six(), reason="no IPv6 here"))


@pytest.mark.parametrize("host", ["127.0.0.1", SIX])
def test_a_pod_of_either_family_is_scraped_and_probed(host: str) -> None:
    problems = [""]
    endpoint = ObserverEndpoint(host, 0, ObserverMetrics(), lambda: problems[0])
    endpoint.start()
    try:
        where = f"http://{f'[{host}]' if ':' in host else host}:{endpoint.port}"
        with urllib.request.urlopen(f"{where}/metrics", timeout=10) as answer:
            assert b"seawall_leader" in answer.read()
        with urllib.request.urlopen(f"{where}/healthz", timeout=10) as answer:
            assert answer.status == 200
        problems[0] = "the loop has not turned for 130 s"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"{where}/healthz", timeout=10)
    finally:
        endpoint.close()
