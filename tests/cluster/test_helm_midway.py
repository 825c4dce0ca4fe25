"""Helm upgrades, rolls back and uninstalls a release on a real API server while its actor has six
levers half pulled.  No kubelet runs its pods here: what its Deployment says is run beside it.
"""

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.acted_scene import TOLERATION_SECONDS, until
from tests.cluster.actor_process import ADMISSION, ActorProcess
from tests.cluster.api_client import Object
from tests.cluster.control_plane import ControlPlane, Times, exists
from tests.cluster.custom_resources import DEFINITIONS, definitions
from tests.cluster.levers_midway import COPIES, LeversMidway, levers_midway
from tests.cluster.observed_scene import WHOLE_SCENARIO
from tests.cluster.plane_build import version_wanted
from tests.cluster.rendered_manifests import CHART, NAMESPACE
from tests.cluster.test_actor_midway import (
    assert_all_is_as_before,
    assert_all_is_put_back,
    wait_until_done,
)
from tests.cluster.test_helm_release import JobRunner, Release, helm_program  # noqa: F401 - a fixture
from tests.cluster.undone_objects import is_gated
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import namespace

from seawall.cluster.actor.pod_hold import HoldStage

MUTATES = tuple(map(int, version_wanted().split("."))) >= (1, 36)
pytestmark = [
    pytest.mark.cluster, pytest.mark.timeout(1200), WHOLE_SCENARIO,
    pytest.mark.skipif(not MUTATES, reason="no MutatingAdmissionPolicy before 1.36"),
]  # fmt: skip

VALUES = ("--set=actor.enabled=true,actor.levers.moveInnocents=true",
          "--set=guard.enabled=false,agent.enabled=false")  # fmt: skip
"""Nothing on the nodes: those would be two more pods on each of 36."""
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/seawall-actor"
MIDWAY_SECONDS = 180.0
NEXT = "seawall.internal/next"


@pytest.fixture
def released(
    program: Path,
    kwok: Path,
    helm_program: Path,  # noqa: F811
    tmp_path: Path,
) -> Iterator[tuple[Release, LeversMidway]]:
    """Six levers before the first is pulled, and the release whose actor will do it."""
    with (
        ControlPlane(program, Times(toleration=TOLERATION_SECONDS), kwok=kwok) as plane,
        plane.client() as admin,
    ):
        namespace(admin, NAMESPACE)
        release = Release(plane, helm_program, tmp_path)
        release.run("install", "seawall", str(CHART), *VALUES)
        with levers_midway(plane, is_released=True) as scene:
            yield release, scene


class ReleasedActor(ActorProcess):
    """By the release's account and rights, and by the command of its Deployment."""

    def token(self) -> str:
        with self.plane.client() as client:
            path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.account}/token"
            kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            return str(client.create(path, {**kind, "spec": {}})["status"]["token"])

    def command(self, *more: str) -> list[str]:
        with self.plane.client() as client:
            pod = client.get(DEPLOYMENT)["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == self.account
        (container,) = pod["containers"]
        words = container["command"]
        own = words[: words.index("--metrics-address")]
        found = super().command(*more)
        return [sys.executable, "-m", *own, *found[found.index("--server") :]]


def next_chart(folder: Path) -> Path:
    """Of another version, in which each object and each kind has one more label."""
    chart = folder / "next"
    shutil.copytree(CHART, chart)
    names = chart / "templates/_names.tpl"
    label = "app.kubernetes.io/part-of: seawall\n"
    names.write_text(names.read_text().replace(label, f'{label}{NEXT}: "1"\n'))
    for path in (chart / "templates/crds").glob("*.yaml"):
        path.write_text(path.read_text().replace(label, f'{label}    {NEXT}: "1"\n', 1))
    about = chart / "Chart.yaml"
    about.write_text(about.read_text().replace("ersion: 0.1.0", "ersion: 0.2.0"))
    return chart


def has_next(scene: LeversMidway) -> set[bool]:
    """Of policies, kinds and the actor, whether they are those of the next chart."""
    paths = [DEPLOYMENT, *(f"{DEFINITIONS}/{one['metadata']['name']}" for one in definitions())]
    found = [scene.client.get(path) for path in paths]
    found += [one for one in policies(scene) if one["metadata"]["name"].startswith("seawall-")]
    return {NEXT in one["metadata"]["labels"] for one in found}


def policies(scene: LeversMidway) -> list[Object]:
    return [one for kind in ("validatingadmissionpolicies", "mutatingadmissionpolicies")
            for one in scene.client.items(f"{ADMISSION}/{kind}")]  # fmt: skip


def bring_midway(scene: LeversMidway, actor: ActorProcess) -> None:
    until(actor, lambda: 0 < len(scene.running("stopCopies")) < COPIES, MIDWAY_SECONDS)
    scene.die()
    until(actor, scene.is_midway, MIDWAY_SECONDS)


def test_an_upgrade_and_a_rollback_by_helm_midway_pull_no_lever_twice(
    released: tuple[Release, LeversMidway], tmp_path: Path
) -> None:
    """The actor works on while helm changes its rights and fences; then the release's next one."""
    release, scene = released
    first, second, third = (ReleasedActor(scene.plane, tmp_path) for _ in range(3))
    assert has_next(scene) == {False}
    with first:
        bring_midway(scene, first)
        release.run("upgrade", "seawall", str(next_chart(tmp_path)), *VALUES)
    assert has_next(scene) == {True}
    print("left when it was upgraded:", scene.left())
    with second:
        before = len(scene.writes(second.user))
        until(second, lambda: HoldStage.ENDLESS not in scene.stages(), MIDWAY_SECONDS)
        until(second, lambda: len(scene.writes(second.user)) > before, MIDWAY_SECONDS)
        left = scene.left()
        release.run("rollback", "seawall", "1")
    assert has_next(scene) == {False}
    assert left, "else it was not midway"
    print("left when it was rolled back:", left)
    with third:
        wait_until_done(scene, third)
        scene.assert_each_write_once(third.user)
        assert_all_is_put_back(scene)


@pytest.mark.parametrize("has_hook", [True, False], ids=["its own undo", "undo by a person"])
def test_an_uninstall_by_helm_midway_leaves_nothing(
    released: tuple[Release, LeversMidway], tmp_path: Path, *, has_hook: bool
) -> None:
    """By the hook while the actor works on; without it, where the actor is gone, by the verb when
    neither chart nor kinds are there.
    """
    release, scene = released
    with ReleasedActor(scene.plane, tmp_path) as actor:
        bring_midway(scene, actor)
        if has_hook:
            with JobRunner(scene.plane, tmp_path) as runner:
                release.run("uninstall", "seawall")
            assert runner.status == 0, runner.said
        else:
            actor.signal(signal.SIGKILL)
            print("left:", scene.left(), *scene.stages())
            release.run("uninstall", "seawall", "--no-hooks")
            for one in definitions():
                path = f"{DEFINITIONS}/{one['metadata']['name']}"
                scene.client.delete(path)
                wait_until(lambda path=path: not exists(scene.client, path), 60, f"{path} is gone")
    assert not [one for one in policies(scene) if one["metadata"]["name"].startswith("seawall")]
    assert not exists(scene.client, DEPLOYMENT)
    wait_until(lambda: is_taken(scene, "stopCopies"), 60, "a new copy is made without a gate")
    if not has_hook:
        assert scene.marks()
        assert_all_is_put_back(scene)
    assert_all_is_as_before(scene)


def is_taken(scene: LeversMidway, lever: str) -> bool:
    """Whether a copy as the owner would make it is taken as it is."""
    one = scene.pods(lever)[0]
    keep = ("labels", "ownerReferences", "generateName")
    metadata = {name: one["metadata"][name] for name in keep}
    metadata["labels"].pop("seawall.internal/changed-by", None)
    spec = {name: value for name, value in one["spec"].items()
            if name not in ("nodeName", "schedulingGates")}  # fmt: skip
    made = scene.client.request(
        "POST", f"/api/v1/namespaces/{scene.pools[lever].space}/pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, dryRun="All",
    )  # fmt: skip
    return not is_gated(made)
