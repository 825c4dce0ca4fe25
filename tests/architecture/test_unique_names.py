# SPDX-License-Identifier: Apache-2.0
"""A module's name and a public class's name stand once in the tree: whoever searches finds one.

What stands twice on purpose is listed with its reason.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/seawall"
FILES = sorted(path for path in SOURCE.rglob("*.py") if "_vendor" not in path.parts)
PROBES = {
    "descriptors", "driver_files", "driver_mappings", "gpu_query", "gpu_query_inside", "nvml",
    "pipes", "pod_resources", "residency", "runtime_versions", "task_stacks",
}  # fmt: skip
"""``host/NAME.py`` asks, ``readings/NAME.py`` reads the answer, ``cli/NAME.py`` is its verb."""
VERBS = {"guard_status", "version"}
"""``cli/NAME.py`` shows what another room's ``NAME.py`` reads or says."""


def twins(pairs: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    places = defaultdict(list)
    for name, path in pairs:
        places[name].append(str(path.relative_to(SOURCE)))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def module_twins() -> dict[str, list[str]]:
    return twins((path.stem, path) for path in FILES if path.stem != "__init__")


def class_twins() -> dict[str, list[str]]:
    return twins(
        (node.name, path)
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def test_a_module_name_stands_once() -> None:
    found = module_twins()
    allowed = PROBES | VERBS
    assert not {name: paths for name, paths in found.items() if name not in allowed}


def test_a_probe_is_asked_once_and_read_once() -> None:
    for name, paths in module_twins().items():
        if name in PROBES:
            rooms = [path.split("/")[0] for path in paths]
            assert set(rooms) <= {"host", "readings", "cli"}, paths
            assert len(rooms) == len(set(rooms)), paths


def test_a_class_name_stands_once() -> None:
    found = class_twins()
    assert not found
