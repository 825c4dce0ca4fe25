"""``seawall gpu repair --do`` on a node of one's own: nodes, a plugin's container, a pod.

Seed's order: the host's nodes, then the plugin, then the pod; each out of turn is refused.
"""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.containers import node as nodes
from tests.containers.gpu_node import NODES, Wanted, set_up
from tests.containers.node import new_uid
from tests.containers.plugin_pod import Api, Pod, kubelet, serving
from tests.containers.test_gpu_runc import SOME, UVM, missing, rule
from tests.end_to_end.verbs import Ran
from tests.host.as_nobody import as_nobody

from seawall.cli import gpu_repair

pytestmark = [pytest.mark.system, pytest.mark.beside]
PLUGIN = "nvidia-device-plugin-x7k2p"
DECOY = "my-device-plugin"
HANDLES_TERM = "trap 'exit 0' TERM; while :; do busybox sleep 0.1; done"
SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-repair.json").read_text())


class Scene:
    """A node without nvidia-uvm's nodes, a plugin, one that is called so, and a pod they served."""

    def __init__(self, node: nodes.Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.plugin = Pod(node, folder, PLUGIN, new_uid())
        self.decoy = Pod(node, folder, DECOY, new_uid())
        self.pod = Pod(node, folder, "job-0", new_uid())
        self.given = Wanted(name="x", nodes=SOME, promised=None, program=HANDLES_TERM)

    def start(self) -> None:
        self.plugin.start(self.given)
        self.decoy.start(self.given, has_folder=False)
        self.pod.start(Wanted(name="x", nodes=SOME, promised=None), has_folder=False)

    def end(self) -> None:
        for pod in (self.plugin, self.decoy, self.pod):
            pod.end()

    def repair(self, *words: str, env: Sequence[str] = ()) -> Ran:
        return self.node.run("/usr/bin/env", "-u", "KUBECONFIG", *env, *_seawall(*words))


def _seawall(*words: str) -> list[str]:
    return [sys.executable, "-m", "seawall", "gpu", "repair", *words]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("repair")
    with nodes.node(folder) as plain:
        set_up(plain, SOME)
        found = Scene(plain, folder)
        try:
            found.start()
            yield found
        finally:
            found.end()


def states(ran: Ran) -> dict[int, str]:
    """By number; and the document is as its schema says."""
    page = ran.document
    jsonschema.validate(page, SCHEMA)
    return {step["number"]: step["state"] for step in page["steps"]}


def test_the_plan_changes_nothing_and_has_its_order(scene: Scene) -> None:
    done = scene.repair("shop/job-0/app", "--json")
    assert done.status == 0, done.err
    assert list(states(done)) == [2, 6, 7, 9]
    assert scene.node.run("test", "-e", UVM).status == 1


def test_what_would_be_for_nothing_is_refused(scene: Scene) -> None:
    done = scene.repair("--plugin", "--do", "6")
    assert done.status == 10, done.text
    assert "refused: Restart the device plugin" in done.text
    assert "first 2, or it is for nothing" in " ".join(done.text.split())
    assert scene.plugin.is_running()


def test_nodes_are_made_and_tried(scene: Scene) -> None:
    done = scene.repair("--host", "--do", "2")
    assert done.status == 0, done.text + done.err.decode()
    words = " ".join(done.text.split())
    assert "/dev/nvidia-uvm made: c 510:0, mode 666" in words
    assert "tried: /dev/nvidia-uvm, /dev/nvidia-uvm-tools may be read and written here" in words
    assert "Verified: what was to be done is done" in words
    assert scene.node.need("stat", "-c", "%t:%T", UVM).strip() == "1fe:0"
    again = scene.repair("--host", "--do", "2")
    assert again.status == 0, again.text


def test_who_is_only_called_a_plugin_is_not_ended(scene: Scene) -> None:
    done = scene.repair(f"shop/{DECOY}/app", "--do", "6", "--timeout", "10")
    assert done.status == 11, done.text
    assert "is called a device plugin and does not mount" in " ".join(done.text.split())
    plan = scene.repair("--plugin", "--json").document
    assert [step["id"] for step in plan["steps"]] == [f"plugin:{scene.plugin.made[0].cgroup}",
                                                      "recreate:meanwhile"]  # fmt: skip
    assert [note.split()[0] for note in plan["notes"]] == [f"shop/{DECOY}/app"]
    assert scene.decoy.is_running()
    assert scene.plugin.is_running()


def test_the_pod_is_not_made_anew_before_its_plugin(scene: Scene) -> None:
    done = scene.repair("shop/job-0/app", "--do", "7")
    assert done.status == 10
    assert "first 6, or it is for nothing: Restart the device plugin" in " ".join(done.text.split())
    assert scene.pod.is_running()


def test_a_plugin_without_a_kubelet_is_told(scene: Scene) -> None:
    """Nobody starts it again: then it was ended, and that is said."""
    lone = Pod(scene.node, scene.folder, "lone-device-plugin", new_uid())
    try:
        lone.start(scene.given)
        done = scene.repair("shop/lone-device-plugin/app", "--do", "6", "--timeout", "8", "--json")
        assert done.status == 10
        steps = [one for one in done.document["steps"] if one["number"] == 6]
        assert [step["state"] for step in steps] == ["failed"], steps
        step = steps[0]
        assert "the kubelet started no new container" in step["words"]
        assert b"sends: SIGTERM to process" in done.err
        assert not lone.is_running()
    finally:
        lone.end()


def test_the_plugin_is_restarted_and_its_dev_is_looked_into(scene: Scene) -> None:
    whole = Wanted(name="x", nodes=NODES, promised=None, program=HANDLES_TERM)
    old = scene.plugin.made[-1]
    with kubelet(scene.plugin, whole):
        done = scene.repair(f"shop/{PLUGIN}/app", "--do", "all", "--timeout", "30")
    words = " ".join(done.text.split())
    assert done.status == 0, done.text + done.err.decode()
    assert f"SIGTERM ended process {old.pid}" in words
    new = scene.plugin.made[-1]
    assert f"looked: new container {new.key[:12]} (pid {new.pid}): /dev/nvidia-uvm" in words
    assert old.key != new.key
    assert scene.decoy.is_running(), "it is still only called so"
    again = scene.repair(f"shop/{PLUGIN}/app", "--do", "6")
    assert again.status == 0, again.text


def test_a_pod_is_not_deleted_without_credentials(scene: Scene) -> None:
    done = scene.repair("shop/job-0/app", "--do", "7,8,9", "--json")
    assert done.status == 10
    told = states(done)
    assert (told[7], told[8], told[9]) == ("refused", "refused", "refused")
    (step,) = [one for one in done.document["steps"] if one["number"] == 7]
    assert step["words"].endswith("type: kubectl delete pod -n shop job-0")
    assert scene.pod.is_running()


@pytest.fixture
def api(scene: Scene) -> Api:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing: https://kubernetes.io/docs/tasks/tools")

    def delete() -> None:
        scene.node.run("runc", "delete", "-f", scene.pod.made[-1].key)
        scene.pod.uid = new_uid()
        scene.pod.start(Wanted(name="x", nodes=NODES, promised=None), has_folder=False)

    meta: dict[str, Any] = {"uid": scene.pod.uid, "ownerReferences": [{"kind": "StatefulSet"}]}
    return Api("/api/v1/namespaces/shop/pods/job-0", {"kind": "Pod", "metadata": meta}, delete)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"uid": "another"}, "the pod of that name is another one by now"),
        ({"ownerReferences": []}, "the pod has no owner"),
    ],
)
def test_another_pod_or_one_that_would_not_come_back_is_left(
    scene: Scene, api: Api, change: dict[str, Any], words: str
) -> None:
    api.pod["metadata"].update(change)
    config = scene.folder / "kubeconfig"
    with serving(api, config):
        done = scene.repair("shop/job-0/app", "--do", "7", "--kubeconfig", str(config))
    assert done.status == 10, done.text
    assert words in " ".join(done.text.split())
    assert [one for one in api.asked if "pods" in one] == [f"GET {api.path}"]
    assert scene.pod.is_running()


def test_the_pod_is_made_anew_and_tried(scene: Scene, api: Api) -> None:
    config = scene.folder / "kubeconfig"
    with serving(api, config):
        done = scene.repair(
            "shop/job-0/app", "--do", "7", "--kubeconfig", str(config), "--timeout", "30"
        )
    words = " ".join(done.text.split())
    assert done.status == 0, done.text + done.err.decode()
    assert "runs: kubectl --kubeconfig" in words
    assert "tried: shop/job-0/app can use what it was promised" in words
    nothing = scene.repair("shop/job-0/app")
    assert nothing.status == 0
    assert "Nothing to mend: shop/job-0/app has no device that is refused." in nothing.text


def test_links_are_made_where_this_runc_left_out_a_rule(scene: Scene) -> None:
    """F4: systemd's list, as such a runc writes it, and what a daemon-reload makes of it."""
    pod = Pod(scene.node, scene.folder, "linked", new_uid())
    try:
        one = pod.start(Wanted(name="x", promised=None), has_folder=False, is_systemds=True)
        unit = f"/run/systemd/transient/{one.cgroup.rpartition('/')[2]}"
        lines = ["[Scope]", "DevicePolicy=strict", "DeviceAllow=", "DeviceAllow=/dev/nvidia0 rw"]
        text = "\\n".join([*lines, "DeviceAllow=/dev/nvidiactl rw", ""])
        scene.node.need("mkdir", "-p", "/run/systemd/system", "/run/systemd/transient")
        scene.node.need("sh", "-c", f"printf '{text}' > {unit}")
        soon = scene.repair("shop/linked/app", "--json").document
        first = soon["steps"][0]["number"]
        assert first == 3, "it works until the next reload"
        rule(one, "devices.deny", "c 510:0 rwm")
        plan = scene.repair("shop/linked/app", "--json").document
        if "F4" not in plan["broken"][0]:
            pytest.skip(f"this runc leaves out no rule: {plan['broken'][0]}")
        done = scene.repair("shop/linked/app", "--do", "3")
        assert done.status == 0, done.text
        assert "/dev/char/510:0 made, to ../nvidia-uvm" in done.text
        assert scene.node.need("readlink", "-e", "/dev/char/510:0").strip() == UVM
        again = scene.repair("shop/linked/app", "--json").document
        assert 3 not in [step["number"] for step in again["steps"]]
    finally:
        pod.end()
        scene.node.run("rm", "-rf", "/run/systemd")


CRICTL = """#!/bin/sh
[ "$1 $2" = "stop --timeout=10" ] || exit 9
exec runc kill "$3" KILL
"""


def test_the_runtimes_own_tool_is_preferred_where_it_is_set_up(scene: Scene) -> None:
    """A stand-in that takes the words of crictl."""
    tool = scene.folder / "crictl"
    tool.write_text(CRICTL)
    tool.chmod(0o755)
    env = (f"PATH={scene.folder}:/usr/sbin:/usr/bin:/sbin:/bin", "CONTAINER_RUNTIME_ENDPOINT=x")
    pod = Pod(scene.node, scene.folder, "other-device-plugin", new_uid())
    try:
        key = pod.start(scene.given).key
        with kubelet(pod, replace(scene.given, nodes=NODES)):
            done = scene.repair("shop/other-device-plugin/app", "--do", "6", env=env)
        words = " ".join(done.text.split())
        assert done.status == 0, done.text
        assert f"runs: crictl stop --timeout=10 {key}" in words
        assert f"crictl stopped container {key[:12]}" in words
        assert "SIGTERM" not in words
    finally:
        pod.end()


def test_root_is_needed_and_said() -> None:
    arguments = Namespace(workload=None, plugin=False, host=True, do=(2,), kubeconfig=None,
                          bundle=None, root=None)  # fmt: skip
    words = as_nobody(lambda: str(gpu_repair.run(arguments)))
    assert words == "UsageProblem: --do: needs root on the host: sudo seawall gpu repair ..."
