"""F8 and F9 from recorded logs, as a user sees them: ``gpu``, ``why``, a bundle."""

import json
import os
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.device_log_tree import BAD, GOOD, plain_tree, put, whole_node
from tests.end_to_end.warm_verbs import seawall

SECRET = "hunter2-token"


def told(*words: str) -> str:
    return seawall(*words, TZ="UTC").answered().text


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def node(tmp_path: Path) -> Path:
    root = whole_node(tmp_path / "node")
    syslog = (root / "var/log/syslog").read_text()
    put(root, "/var/log/syslog", f"Aug  9 13:00:59 node4 app[1]: password={SECRET}\n{syslog}")
    return root


def test_the_table_names_both(node: Path) -> None:
    text = flat(told("gpu", "--root", str(node)))
    assert "2 pods were refused for want of one. 1 is not handed out to new pods." in text
    assert "F8 the host: 2 pods were refused by the kubelet for want of nvidia.com/gpu:" in text
    assert "default/gpu-pod, ml/batch-1; the last at 2024-08-09 13:01:03 UTC" in text
    assert "It registered at 2024-08-09 13:01:15 UTC." in text
    assert "F9 the host: 1 device of nvidia.com/gpu is not handed out" in text
    assert f"since 2024-08-09 13:32:51 UTC: {BAD}" in text
    assert "Xid 94 (an uncorrectable memory error that was contained) can mean hardware" in text


def test_the_document(node: Path) -> None:
    found = json.loads(told("gpu", "--json", "--root", str(node)))
    schema = json.loads((files("seawall.views") / "schemas/gpu.json").read_text())
    jsonschema.validate(found, schema)
    assert [(row["namespace"], row["pod"], row["mode"]) for row in found["refused_pods"]] == [
        ("default", "gpu-pod", "F8"), ("ml", "batch-1", "F8"),
    ]  # fmt: skip
    assert found["refused_pods"][0]["registered_at"] == "2024-08-09T13:01:15Z"
    [device] = found["unhealthy_devices"]
    assert (device["device"], device["xid"], device["since"]) == (BAD, 94, "2024-08-09T13:32:51Z")
    assert {row["mode"] for row in found["host_diagnosis"]} == {"F8", "F9"}


def test_the_rules(node: Path) -> None:
    text = flat(told("why", "--whole", "--root", str(node)))
    assert "[SW406]" in text
    assert "1 of 2 devices is not handed out to new pods (F9)" in text
    assert "[SW407]" in text


def test_a_bundle_tells_the_same_and_holds_no_foreign_text(node: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    told("capture", "--root", str(node), "--output", str(bundle), "--for", "2")
    [made] = [path for path in tmp_path.iterdir() if path.name.startswith("bundle")]
    assert SECRET.encode() not in b"".join(
        path.read_bytes()
        for path in ([made] if made.is_file() else made.rglob("*"))
        if path.is_file()
    )
    text = flat(told("gpu", "--from", str(made)))
    assert "2 pods were refused by the kubelet" in text
    assert f"since 2024-08-09 13:32:51 UTC: {BAD}" in text


def test_in_order_after_the_plugin_was_restarted(tmp_path: Path) -> None:
    whole_node(tmp_path, healthy=(BAD, GOOD))
    text = flat(told("gpu", "--root", str(tmp_path)))
    assert "F9" not in text


def test_without_kubernetes_no_log_is_opened(tmp_path: Path) -> None:
    """A log with every sign in it, and no checkpoint of a kubelet."""
    whole_node(tmp_path)
    os.remove(tmp_path / "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    for verb in ("gpu", "why"):
        text = flat(told(verb, "--root", str(tmp_path)))
        assert "F8" not in text
        assert "SW406" not in text
        assert "/var/log" not in text


def test_a_checkpoint_and_no_log_is_not_seen(tmp_path: Path) -> None:
    """A syslog in which no kubelet says anything is no kubelet's log."""
    whole_node(plain_tree(tmp_path))
    put(tmp_path, "/var/log/syslog", "Aug  9 13:00:59 node4 app[1]: about kubelet and so on\n")
    text = flat(told("gpu", "--root", str(tmp_path)))
    assert "pods that were refused for want of a device" in text
    assert "the kubelet's log was not found" in text
