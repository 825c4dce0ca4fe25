"""packaging/daemonset.yaml as values, by kind: by our own reader, so that no test hangs on another.

Plain scalars are text (``"true"``), and the ConfigMap's file is cut out of it before.
"""

from pathlib import Path
from textwrap import dedent
from typing import Any

from seawall.readings import cdi_yaml

PACKAGING = Path(__file__).parents[2] / "packaging"


def manifest(path: Path = PACKAGING / "daemonset.yaml") -> dict[str, Any]:
    """``{"ConfigMap": ..., "DaemonSet": ...}``; ParseProblem when it is no such YAML."""
    found = {}
    for document in path.read_text().split("\n---\n"):
        head, block, body = document.partition(": |\n")
        text = document if not block else f"{head}:\n"
        parsed: Any = cdi_yaml.load(text.encode())
        if block:
            parsed["data"] = {name: dedent(body) for name in parsed["data"]}
        found[parsed["kind"]] = parsed
    return found
