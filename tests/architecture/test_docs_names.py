"""What the documents name exists: modules, folders, classes, rules, options, metrics and keys."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.architecture.page_commands import HISTORY, PAGES, REPOSITORY

OUTSIDE = (REPOSITORY / "tests/outside/outside_names.txt").read_text()
FOLDERS = ("src", "tests", "bench", "release", "packaging", "docs")
FILES = {
    f"/{path.relative_to(REPOSITORY)}" + ("/" if path.is_dir() else "")
    for folder in FOLDERS
    for path in (REPOSITORY / folder).rglob("*")
    if "__pycache__" not in path.parts
}
CLASSES = {
    node.name
    for path in (REPOSITORY / "src/seawall").rglob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
}
CURRENT = [
    path for path in PAGES if not str(path.relative_to(REPOSITORY)).startswith(HISTORY)
]  # fmt: skip
THEIRS = frozenset({
    "MemAvailable", "MemTotal", "VmallocUsed", "BestEffort", "DaemonSet", "ConfigMap", "NotReady",
    "DeviceAllow", "DeviceFileMode", "ModifyDeviceFiles", "ReadWritePaths", "ContainerStatus",
    "ListContainers", "GetAllocatableResources", "RegisteredDevices", "UnexpectedAdmissionError",
    "RestartContainer", "CgroupJobIdPaths",
})  # fmt: skip
"""Names of the kernel, systemd, Kubernetes and Slurm in the form of a class."""
IN_CLUSTER = frozenset(
    word
    for folder in ("src/seawall/agent", "src/seawall/cluster")
    for path in (REPOSITORY / folder).rglob("*.py")
    for word in re.findall(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)+)"', path.read_text())
)
"""Kinds, conditions and reasons that we write into a cluster."""
OPTIONS = " ".join(
    path.read_text()
    for folder in ("src/seawall/cli", "bench", "packaging", "tests/kernels", "tests/films")
    for path in (REPOSITORY / folder).rglob("*.py")
)
OTHERS_OPTIONS = {
    "--help",
    "--config-dir",
    "--root-dir",
    "--no-index",
    "--memory",
    "--oom-score-adj",
    "--mem",
}
"""Of argparse, the kubelet, pip, docker and sbatch."""
IN_WORDS = {"NAME_document.py", "dist/"}
"""What a reader's own file is called, and a folder that `make dist` makes."""


def prose(page: Path) -> str:
    """What stands in backquotes, outside of blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(re.findall(r"`([^`\n]+)`", text))


def named(page: Path) -> Iterator[tuple[str, bool]]:
    """Each name on a page, and whether there is such a thing."""
    text, spans = page.read_text(), prose(page)
    for place in re.findall(
        r"(?<![\w*/.])[\w/]+\.py\b|^[a-z_]+(?:/[a-z_]+)*/$", spans, re.MULTILINE
    ):
        yield place, any(path.endswith(f"/{place}") for path in FILES) or place in IN_WORDS
    for word in re.findall(r"^[A-Z][a-z]+(?:[A-Z][a-z]+)+$", spans, re.MULTILINE):
        yield word, word in CLASSES | THEIRS | IN_CLUSTER
    for option in re.findall(r"^(--[a-z][a-z-]+)", spans, re.MULTILINE):
        yield option, f'"{option}"' in OPTIONS or option in OTHERS_OPTIONS
    for metric in re.findall(r"\bseawall_guard_\w+", text):
        yield metric, f"metric {metric} " in OUTSIDE
    for rule in re.findall(r"\bSW\d{3}\b", text):
        yield rule, (REPOSITORY / f"docs/rules/{rule}.md").exists()


@pytest.mark.parametrize("page", CURRENT, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert not [name for name, exists in named(page) if not exists]


def test_the_pages_name_things() -> None:
    """Else the patterns have gone blind."""
    names = {name for page in CURRENT for name, _ in named(page)}
    assert {"host/live.py", "readings/", "SW103", "--json", "seawall_guard_mode"} < names
    assert len(names) > 120
