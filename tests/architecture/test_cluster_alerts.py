"""Alerts and dashboards: promtool runs the alerts, each has its page, every query parses, and uses
no metric that nobody exports.
"""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.architecture.manifest import PACKAGING

from seawall.guard.tell.textfile import METRICS, UNCOUNTED

FILES = PACKAGING / "chart/seawall/files"
RULES = FILES / "alerts.yaml"
CASES = Path(__file__).with_name("cluster_alerts_test.yaml")
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
RUNBOOKS = PACKAGING.parent / "docs/runbooks"
SOURCE = PACKAGING.parent / "src/seawall"
KINDS = {"Counter": "_total", "CounterMetricFamily": "_total", "Gauge": "", "Histogram": "_bucket"}
OTHERS = {"kube_node_spec_unschedulable", "node_memory_MemTotal_bytes"}
"""Of kube-state-metrics and node_exporter."""
VARIABLES = {"$namespace": "ml", "$workload": "trainer", "$node": "gpu-1"}


def alerts() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(folder: Path, *words: str) -> str:
    """What it says of files in that folder; skipped by name where there is none."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool: apt-get install --no-install-recommends prometheus")
    done = subprocess.run(
        [program, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_alert_fires_when_it_must_and_else_is_silent(tmp_path: Path) -> None:
    for path in (RULES, CASES):
        shutil.copy(path, tmp_path)
    assert f"{len(alerts())} rules found" in promtool(tmp_path, "check", "rules", RULES.name)
    promtool(tmp_path, "test", "rules", CASES.name)


def test_each_alert_is_tried_in_both_ways() -> None:
    tried: dict[str, set[bool]] = {name: set() for name in alerts()}
    for case in yaml.safe_load(CASES.read_text())["tests"]:
        for one in case["alert_rule_test"]:
            tried[one["alertname"]].add(bool(one["exp_alerts"]))
    assert not [name for name, ways in tried.items() if True not in ways], "never fires"
    only_labels = {"SeawallGuardCannotKill", "SeawallGuardSilent", "SeawallGuardConfigRejected"}
    silent = {name for name, ways in tried.items() if False not in ways}
    assert silent <= only_labels  # of these another series of the same case must not fire


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    assert sorted(path.stem for path in RUNBOOKS.glob("*.md")) == sorted(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{name}.md"
        page = (RUNBOOKS / f"{name}.md").read_text()
        assert page.startswith(f"# {name}\n")
        assert f"Severity: {rule['labels']['severity']}." in page
        assert [line for line in page.splitlines() if line.startswith("## ")] == [
            "## What it means", "## Look here", "## Do this",
        ]  # fmt: skip


def queries(variables: dict[str, str] = VARIABLES) -> Iterator[tuple[str, str]]:
    """Of every panel, with names in place of the variables."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"]
                for variable, value in variables.items():
                    expression = expression.replace(variable, value)
                yield f"{path.stem}: {panel['title']}", expression


def test_every_query_of_a_dashboard_parses(tmp_path: Path) -> None:
    rows = [
        {"record": f"query:{number}", "expr": expression}
        for number, (_, expression) in enumerate(queries())
    ]
    assert len(rows) > 25
    (tmp_path / "queries.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rows}]})
    )
    promtool(tmp_path, "check", "rules", "queries.yaml")


def exported() -> set[str]:
    """Names that the guard's textfile, the agent and the observer write."""
    names = {f"seawall_guard_{one.name}" for one in METRICS} | {UNCOUNTED}
    names |= {"seawall_guard_mode", "seawall_guard_decisions_total"}
    for path in SOURCE.rglob("*metrics*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KINDS:
                name = node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
                names.add(f"{name}{KINDS[node.func.id]}")  # type: ignore[attr-defined]
            if isinstance(node, (ast.Call, ast.Tuple)):  # the agent's tables of families
                parts = node.args if isinstance(node, ast.Call) else node.elts
                words = [one.value for one in parts[:2] if isinstance(one, ast.Constant)]
                if len(words) == 2 and words[1] in ("gauge", "counter"):
                    names.add(f"seawall_{words[0]}")
    return names


def test_alerts_and_dashboards_use_metrics_that_there_are() -> None:
    known = exported()
    used = [*((name, rule["expr"]) for name, rule in alerts().items()), *queries()]
    text = " ".join(expression for _, expression in used)
    assert len(set(re.findall(r"\bseawall_\w+", text))) > 20
    missing = {
        f"{where}: {name}"
        for where, expression in used
        for name in re.findall(r"\b(?:seawall|kube|node)_[a-zA-Z]\w+", expression)
        if name not in known | OTHERS
    }
    assert not missing


def test_a_dashboard_needs_no_plugin_and_no_server_of_ours() -> None:
    assert [path.stem for path in DASHBOARDS] == ["cluster", "node", "nodes", "suspect"]
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        assert {panel["type"] for panel in board["panels"]} <= {"stat", "table", "timeseries"}
        assert "://" not in path.read_text()
        assert board["uid"] == f"seawall-{path.stem}"
        for panel in board["panels"]:
            assert panel["datasource"]["uid"] == "${source}"
            assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
