"""``seawall oom explain --json`` of the published logs."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from tests.end_to_end.warm_verbs import seawall

LOGS = Path(__file__).parents[1] / "readings/files/oom-logs"
SCHEMA = json.loads((files("seawall.views") / "schemas/oom-explain.json").read_text())


def explained(name: str, *words: str) -> list[dict[str, Any]]:
    """The reports of one of the published logs, held against the schema."""
    page = seawall("oom", "explain", "--json", str(LOGS / name), *words).answered().document
    jsonschema.validate(page, SCHEMA)
    reports = page["reports"]
    assert isinstance(reports, list)
    return reports


def ids(report: dict[str, Any]) -> set[str]:
    return {anomaly["id"] for anomaly in report["anomalies"]}
