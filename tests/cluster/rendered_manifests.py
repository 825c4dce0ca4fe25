"""packaging/kubernetes/cluster and actor, as helm renders the chart, for who applies plain files:
``python -m tests.cluster.rendered_manifests``.

``--check`` says which are not current, with status 1; status 75: no helm, and no Go to build it.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.helm_build import build
from tests.cluster.plane_build import CANNOT, PlaneProblem

PACKAGING = Path(__file__).parents[2] / "packaging"
CHART = PACKAGING / "chart/seawall"
KUBERNETES = PACKAGING / "kubernetes"
FOLDER = KUBERNETES / "cluster"
ACTOR = KUBERNETES / "actor"
"""What actor.enabled adds: a folder of its own, so that who applies the other has no actor."""
NAMESPACE = "seawall"
HEAD = "# Rendered from packaging/chart/seawall: `make manifests`.  Change it there.\n"
FILES = {"CustomResourceDefinition": "0-kinds.yaml", "Namespace": "1-namespace.yaml"}
REST = "2-seawall.yaml"
"""`kubectl apply -f` takes a folder's files by their names: kinds first, then the namespace."""
ACTOR_FILE, MUTATING_FILE = "actor.yaml", "from-1.36.yaml"
MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
_SOURCE = re.compile(r"^# Source: .*\n", re.MULTILINE)


class HelmProblem(Exception):
    """What helm said."""


def helm(program: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    """Its output; HelmProblem where it ends with an error."""
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, env=environment or {}
    )
    if done.returncode:
        raise HelmProblem(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def template(program: Path, *arguments: str) -> str:
    """What would be installed, with these values."""
    return helm(program, "template", "seawall", str(CHART), "--namespace", NAMESPACE, *arguments)


def rendered(program: Path) -> dict[str, str]:
    """Text by name of file, below packaging/kubernetes."""
    without = parts(program)
    acting = [one for one in parts(program, "--set", "actor.enabled=true", "--api-versions",
                                   MUTATING) if one not in without]  # fmt: skip
    files: dict[str, list[str]] = {}
    for text in without:
        name = FILES.get(yaml.safe_load(text)["kind"], REST)
        files.setdefault(f"{FOLDER.name}/{name}", []).append(text)
    for text in acting:
        is_mutating = yaml.safe_load(text)["kind"].startswith("Mutating")
        name = MUTATING_FILE if is_mutating else ACTOR_FILE
        files.setdefault(f"{ACTOR.name}/{name}", []).append(text)
    return {name: HEAD + "\n---\n".join(texts) + "\n" for name, texts in sorted(files.items())}


def parts(program: Path, *arguments: str) -> list[str]:
    """Each object's text."""
    whole = template(program, "--no-hooks", "--set", "namespace.create=true", *arguments)
    texts = (_SOURCE.sub("", part.removeprefix("---\n")).strip("\n")
             for part in whole.split("\n---\n"))  # fmt: skip
    return [text for text in texts if yaml.safe_load(text) is not None]


def documents(folder: Path = FOLDER, names: str = "*.yaml") -> list[dict[str, Any]]:
    """What is committed, in the order in which it is applied."""
    return [
        document
        for path in sorted(folder.glob(names))
        for document in yaml.safe_load_all(path.read_text())
        if document is not None
    ]


def stale(program: Path) -> list[str]:
    """Names of files that are not as the chart has them."""
    wanted = rendered(program)
    found = {
        f"{folder.name}/{path.name}": path.read_text()
        for folder in (FOLDER, ACTOR)
        for path in folder.glob("*.yaml")
    }
    return sorted(name for name in wanted.keys() | found.keys()
                  if wanted.get(name) != found.get(name))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    try:
        program = build()
    except PlaneProblem as problem:
        print(problem, file=sys.stderr)
        return CANNOT
    names = stale(program)
    if arguments.check:
        print(*(f"{KUBERNETES / name} is not current: make manifests" for name in names), sep="\n")
        return 1 if names else 0
    for folder in (FOLDER, ACTOR):
        folder.mkdir(exist_ok=True)
    texts = rendered(program)
    for name in names:
        if name in texts:
            (KUBERNETES / name).write_text(texts[name])
        else:
            (KUBERNETES / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
