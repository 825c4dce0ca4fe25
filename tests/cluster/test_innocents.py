"""Nodes end, fall silent and come back, and nobody did it: scenarios 7 to 9, 13 and 14.

Scenario 4 is in ``test_cluster_observer.py``; ``scenario_campaign.py`` plays all of them often.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.api_client import ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.innocent_scenarios import (
    busy_nodes,
    companions,
    planned_ends,
    power_cycled_job,
    silent_zone,
    slow_power_cycles,
)
from tests.cluster.observed_cluster import counting
from tests.cluster.observed_scene import WHOLE_SCENARIO, ObservedScene, observed_scene
from tests.cluster.slow_killer import node_report
from tests.cluster.workloads import pods

from seawall.cluster.objects.api_group import NODE_REPORT, path_of
from seawall.cluster.observer.record_evidence import PROVED_PODS_MOST

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400), WHOLE_SCENARIO]

CULPRITS_A_REPORT = 5


@pytest.mark.parametrize(
    "play",
    [
        silent_zone,
        companions,
        planned_ends,
        power_cycled_job,
        slow_power_cycles,
        busy_nodes,
    ],
)
def test_nobody_innocent_is_convicted(
    plane: ControlPlane, tmp_path: Path, play: Callable[[ObservedScene, random.Random], Object]
) -> None:
    with observed_scene(plane, tmp_path) as scene:
        print(play(scene, random.Random(1)))
        assert scene.convicted() == scene.right


def test_an_agent_that_accuses_a_thousand_workloads_convicts_none(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """It says so before its node dies, and after; five at a time is what a report holds."""
    with observed_scene(plane, tmp_path) as scene:
        pool = scene.pool("pool")
        for number in range(10):
            pool.deploy(f"app-{number}", 6)
        pool.wait_until_running()
        everybody = [pod for name in pool.workloads for pod in pods(scene.client, pool.space, name)]
        by_node = Counter(pod["spec"]["nodeName"] for pod in everybody)
        ((name, count),) = by_node.most_common(1)
        assert count > PROVED_PODS_MOST
        bound = [pod for pod in everybody if pod["spec"]["nodeName"] == name]
        path = path_of(NODE_REPORT, name)
        scene.client.create(path_of(NODE_REPORT), node_report(scene.client, name, everybody[:5]))
        for first in range(0, 1000, CULPRITS_A_REPORT):
            accused = [everybody[(first + more) % len(everybody)]
                       for more in range(CULPRITS_A_REPORT)]  # fmt: skip
            scene.client.patch(path, node_report(scene.client, name, accused, first))
        with pytest.raises(ApiError) as refused:
            scene.client.patch(path, node_report(scene.client, name, everybody, 2000))
        assert refused.value.status == 422
        scene.nodes.die(name)
        scene.wait_until(lambda: len(counting(scene.client)) == 1, 40, "it died")
        assert scene.clock.verdicts == {}, "five at once is more than can be believed"
        # Then one by one those that were bound to it, which is believed of the first two.
        for number, pod in enumerate(bound):
            scene.client.patch(path, node_report(scene.client, name, [pod], 3000 + number))
            time.sleep(2)
        first = (pool.space, bound[0]["metadata"]["labels"]["app"])
        assert "suspected" in scene.clock.verdicts[first]
        assert scene.convicted() == set()
        assert scene.clock.standing == {}, "who accuses more than two accuses nobody"
        assert {who for _, who in scene.clock.verdicts} <= {
            pod["metadata"]["labels"]["app"] for pod in bound
        }
