"""``seawall gpu repair`` as text and as JSON, from plans made by hand."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_gpu_repair_plans import GONE, LACKING, TENANT, broken, facts, planned

from seawall.accounts.devices.repairs.repair_plan import plan
from seawall.accounts.devices.repairs.step import RepairOutcome, RepairPlan, RepairScope
from seawall.accounts.workloads import Workload
from seawall.host.host import Unread
from seawall.views.document import head, render
from seawall.views.documents.gpu_documents import REPAIR
from seawall.views.gpu_repair_page import RepairPage, sentence
from seawall.views.gpu_repair_text import lines, result_lines
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/gpu-repair.json").read_text())
PLAN = planned(broken("F1"), plugins=(LACKING,))
EMPTY = planned(what="host")
PLUGIN, POD, RULES, PROCESS = PLAN.steps


def page(found: RepairPlan | Unread = PLAN, *results: RepairOutcome, **more: Any) -> RepairPage:
    scope = RepairScope("host") if isinstance(found, Unread) else found.scope
    told = {"is_told": bool(results), "left": found if results else None} | more
    return RepairPage(scope=scope, plan=found, results=results, **told)


def shown(made: RepairPage, **paper: Any) -> str:
    return "\n".join(lines(made, Console(**paper)))


def flat(made: RepairPage) -> str:
    return " ".join(shown(made).split())


def checked(made: RepairPage) -> dict[str, Any]:
    found = json.loads(
        render(REPAIR.of(head("gpu-repair", Unread("kernel", "absent"), None), made))
    )
    jsonschema.validate(found, SCHEMA)
    assert isinstance(found, dict)
    return found


def test_a_plan_says_that_nothing_was_done_and_each_steps_three_truths() -> None:
    words = flat(page())
    assert words.startswith("F1: train/job-0/main: it is refused Nothing was done; this is the")
    assert "do sudo seawall gpu repair train/job-0/main --do 6 or" in words
    assert "or kubectl delete pod -n kube-system nvidia-device-plugin-x7 mends" in words
    assert "do sudo seawall gpu repair train/job-0/main --do 7 --kubeconfig FILE or" in words
    assert "restarting the container alone is not enough" in words
    assert "8 Not done: changing the device rules of the running container" in words
    assert "who nobody mends the access of this one container, for a while" in words
    assert "9 Restart the process" in words
    assert "who the container's user" in words
    assert words.count("lasts ") == len(PLAN.steps)
    found = checked(page())
    assert [step["number"] for step in found["steps"]] == [6, 7, 8, 9]
    assert {step["state"] for step in found["steps"]} == {"planned"}
    assert (found["verdict"], found["verified"]) == ("planned", None)
    assert found["steps"][2]["command"] is None


def test_what_was_done_and_what_is_left() -> None:
    left = planned(broken("F1"), drivers=Unread("x", "absent"))
    made = page(
        PLAN, RepairOutcome(PLUGIN, "done", "looked: new container", is_verified=True), left=left
    )
    words = flat(made)
    assert words.startswith("Verified: what was to be done is done; left: 6, 7, 9.")
    assert "Left to be done" in words
    assert "kubectl delete pod -n train job-0" in words
    assert "Not done: changing" not in words, "nobody is to do that"
    found = checked(made)
    assert (found["verdict"], found["verified"]) == ("verified", True)
    told = next(step for step in found["steps"] if step["id"] == PLUGIN.id)
    assert (told["state"], told["words"]) == ("done", "looked: new container")
    result = " ".join(" ".join(result_lines(made.results[0], Console())).split())
    assert result.startswith("6 done: Restart the device plugin")


@pytest.mark.parametrize("state", ["failed", "refused", "done"])
def test_what_is_not_verified_is_not_called_mended(state: Any) -> None:
    made = page(
        PLAN,
        RepairOutcome(PLUGIN, "done", "it is", is_verified=True),
        RepairOutcome(POD, state, "no key"),
    )
    assert sentence(made) == f"Not mended: 7 {state}: no key."
    assert checked(made)["verified"] is False


@pytest.mark.parametrize(
    ("made", "verdict", "words"),
    [
        (page(EMPTY), "nothing", "Nothing to mend on the host"),
        (page(Unread("/proc", "refused", "x")), "unseen", "Nothing can be told of devices: /proc"),
        (page(PLAN, is_told=True, left=PLAN), "unverified", "nothing of what was told is"),
        (page(PLAN, is_told=True, left=PLAN, wanted=(2,)), "nothing", "the plan has no step 2"),
        (page(EMPTY, is_told=True, left=EMPTY, wanted=(8,)), "unverified", "8 is done by nobody"),
        (page(planned(what="host", unseen=("/proc/devices: x",))), "unseen", "could not be seen"),
    ],
)  # fmt: skip
def test_every_verdict_has_its_sentence(made: RepairPage, verdict: str, words: str) -> None:
    assert checked(made)["verdict"] == verdict
    assert words in sentence(made)
    assert words in flat(made)


def test_a_command_is_a_line_that_pastes_however_long() -> None:
    old = replace(GONE, found="c 236:0", path="/dev/nvidia-caps/" + "x" * 70)
    made = page(planned(what="host", host_nodes=(old, GONE)))
    step = made.steps[0].step
    assert len(step.command.splitlines()) == 2
    for command in step.command.splitlines():
        assert any(line.endswith(command) for line in shown(made).splitlines())
    told = page(made.plan, RepairOutcome(step, "failed", "no"), left=made.plan)
    assert f"     {step.command.splitlines()[1]}" in shown(told).splitlines()


def test_what_is_never_done_is_not_hidden_by_what_was() -> None:
    made = page(PLAN, RepairOutcome(PLUGIN, "done", "it is", is_verified=True), wanted=(6, 8))
    assert checked(made)["verdict"] == "unverified"
    assert "8 is done by nobody" in sentence(made)


def test_lines_fit_and_names_cannot_steer_a_terminal() -> None:
    name = "x/\x1b[2J\ny; reboot/\udcff"
    hostile = Workload(kind="container", name=name, cgroup="/a", pod="y\n", namespace="\x1b",
                       pod_uid="u", container_id="c")  # fmt: skip
    made = page(
        plan(
            facts(broken("F3", workload=hostile), host_nodes=(GONE,), unseen=(name,)),
            RepairScope("workload", hostile),
        )
    )
    text = shown(made)
    assert "\x1b" not in text
    assert "\udcff" not in text
    assert "kubectl delete" not in text
    assert max(len(line) for line in shown(page()).splitlines()) <= 80
    assert "\x1b[1;31m" in shown(page(), colour=True)
    checked(made)
    assert TENANT.name in flat(page())
