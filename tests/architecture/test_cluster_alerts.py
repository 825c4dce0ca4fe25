"""The alerts of the cluster half: promtool runs them, and each has its part of the page."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.architecture.manifest import PACKAGING

RULES = PACKAGING / "chart/seawall/files/alerts.yaml"
PAGE = (PACKAGING.parent / "docs/cluster-alerts.md").read_text()


def test_promtool_finds_that_each_fires_when_it_must_and_else_is_silent(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install --no-install-recommends prometheus")
    for path in (RULES, Path(__file__).with_name("cluster_alerts_test.yaml")):
        shutil.copy(path, tmp_path)
    for words in (["check", "rules", "alerts.yaml"], ["test", "rules", "cluster_alerts_test.yaml"]):
        done = subprocess.run(
            [promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_its_part_of_the_page_and_a_test() -> None:
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
    assert re.findall(r"^## (\w+)$", PAGE, re.MULTILINE) == list(alerts)
    tried = Path(__file__).with_name("cluster_alerts_test.yaml").read_text()
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook"] == f"docs/cluster-alerts.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert f"alertname: {name}" in tried


def queries() -> list[str]:
    """Of alerts and dashboards."""
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    panels = [
        panel
        for path in sorted(RULES.parent.glob("dashboards/*.json"))
        for panel in json.loads(path.read_text())["panels"]
    ]
    return [rule["expr"] for rule in rules] + [
        target["expr"] for panel in panels for target in panel["targets"]
    ]


def test_each_query_is_of_series_that_there_are() -> None:
    sources = [
        path.read_text()
        for name in (
            "seawall/cluster/observer/observer_metrics.py",
            "seawall/agent/agent_metrics.py",
        )
        if (path := PACKAGING.parent / "src" / name).exists()
    ]
    if len(sources) < 2:
        pytest.skip("observer and agent are not both there")
    wanted = {name for query in queries() for name in re.findall(r"\bseawall_(\w+)", query)}
    assert len(wanted) > 15
    for name in wanted:
        bare = re.sub(r"_(bucket|total)$", "", name)
        assert re.search(rf'"(seawall_)?{bare}(_total)?"', "".join(sources)), name


def test_promtool_takes_each_query_of_a_dashboard(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install --no-install-recommends prometheus")
    rules = [{"record": f"q{number}", "expr": text} for number, text in enumerate(queries())]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "q", "rules": rules}]})
    )
    done = subprocess.run(
        [promtool, "check", "rules", "rules.yaml"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
