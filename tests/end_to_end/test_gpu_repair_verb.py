"""``seawall gpu repair`` as a user types it, where nothing is changed."""

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.warm_verbs import seawall

SEED = Path(__file__).parents[2] / "docs/incidents/gpu-device-missing"
FOUND = ("--from", str(SEED / "bundle-as-found"))
BY_HAND = ("--from", str(SEED / "bundle"))
POD = "train/job-0/main"
PLUGIN = "kube-system/nvidia-device-plugin-daemonset-x7k2p/nvidia-device-plugin-ctr"


def document(*words: str) -> dict[str, Any]:
    found = seawall("gpu", "repair", "--json", *words).answered().document
    schema = json.loads((files("seawall.views") / "schemas/gpu-repair.json").read_text())
    jsonschema.validate(found, schema)
    return found


def test_the_published_incident_is_mended_in_its_order() -> None:
    """The plugin, then the pods, then the processes; the rules never."""
    found = document(POD, *FOUND)
    steps = [(step["kind"], step["by"]) for step in found["steps"]]
    assert steps == [
        ("plugin", "seawall"), ("recreate", "seawall"), ("rules", "nobody"), ("process", "user"),
    ]  # fmt: skip
    plugin, pod, rules, _ = found["steps"]
    assert plugin["what"].startswith(f"Restart the device plugin {PLUGIN}: its own /dev lacks")
    assert plugin["command"].startswith("kubectl delete pod -n kube-system nvidia-device-plugin-")
    assert pod["command"] == "kubectl delete pod -n train job-0"
    assert "the cause, and the list that the runtime keeps" in rules["does_not_mend"]
    assert found["broken"][0].startswith(f"F1: {POD}: /dev/nvidia-uvm (c 237:0) was never given")


def test_the_repair_by_hand_works_and_is_for_a_person_to_replace() -> None:
    found = document(POD, *BY_HAND)
    by = {step["kind"]: step["by"] for step in found["steps"]}
    assert by == {"plugin": "seawall", "recreate": "you", "rules": "nobody"}
    assert "(breaks at the next " in found["broken"][0]


def test_the_plugin_and_the_host_of_the_incident() -> None:
    steps = document("--plugin", *FOUND)["steps"]
    assert [(step["kind"], step["by"]) for step in steps] == [
        ("plugin", "seawall"), ("recreate", "you"),
    ]  # fmt: skip
    by_hand = document("--plugin", *BY_HAND)["steps"]
    assert POD in by_hand[1]["what"]
    named = document(PLUGIN, *FOUND)["steps"]
    assert named[0]["id"] == steps[0]["id"]
    text = seawall("gpu", "repair", "--host", *FOUND)
    assert text.status == 0
    assert "Nothing to mend on the host" in text.text


def test_this_machine_is_only_looked_at() -> None:
    done = seawall("gpu", "repair", "--host")
    assert done.status in (0, 11)
    assert not [line for line in done.text.splitlines() if len(line) > 80]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "name one of WORKLOAD, --plugin and --host"),
        (["--plugin", "--host"], "name one of"),
        ([POD, "--host"], "name one of"),
        (["--host", "--do", "0"], "expected numbers of steps as 2,6 or all"),
        (["--host", "--do", "2,,3"], "expected numbers"),
        (["--host", "--do", "2", *FOUND], "--do: only on this very machine"),
        (["--host", "--do", "2", "--root", "/proc"], "--do: only on this very machine"),
        (["--host", "--kubeconfig", "x"], "only with --do"),
        (["no/such", *FOUND], "no workload 'no/such'"),
    ],
)
def test_unusable_words_are_told(words: list[str], expected: str) -> None:
    done = seawall("gpu", "repair", *words)
    assert done.status == 2
    assert expected in done.err.decode()
    assert b"Traceback" not in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may: asked as nobody in tests/containers")
def test_an_ordinary_user_is_told_that_it_needs_root() -> None:
    done = seawall("gpu", "repair", "--host", "--do", "2")
    assert done.status == 2
    assert b"--do: needs root" in done.err


def test_it_has_help_of_its_own() -> None:
    done = seawall("gpu", "repair", "--help")
    assert done.status == 0
    assert "usage: seawall gpu repair" in done.text
    assert "  repair " in seawall("gpu", "--help").text
