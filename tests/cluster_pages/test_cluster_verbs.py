"""``seawall cluster`` as a user types it, from dumps and from what is wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from tests.cluster_pages.cluster_dumps import dump, hog_deaths, write

import seawall

SOURCE = str(Path(seawall.__file__).parents[1])
SCHEMAS = Path(seawall.__file__).parent / "views/schemas"
POLICY = """\
apiVersion: seawall.internal/v1alpha1
kind: SeawallPolicy
metadata: {name: default}
spec:
  falsePerThousandNodeYears: 1.5
  protectedNamespaces: [kube-system, ml]
"""


class Ended(NamedTuple):
    status: int
    out: str
    problems: str


def seawall_cluster(*words: str) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "seawall", "cluster", *words], capture_output=True, text=True,
        check=False, env={"PYTHONPATH": SOURCE, "HOME": "/nowhere", "PATH": "/usr/bin"},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write(tmp_path / "dump.json", dump(hog_deaths(), renewed_minutes=16.0))


@pytest.mark.parametrize("verb", ["why", "suspects", "deaths", "replay"])
def test_a_document_is_as_its_schema_says(verb: str, file: str) -> None:
    where = [file] if verb == "replay" else ["--from", file]
    ended = seawall_cluster(verb, *where, "--json")
    assert ended.status == 0
    document = json.loads(ended.out)
    schema = json.loads((SCHEMAS / f"cluster-{verb}.json").read_text())
    jsonschema.validate(document, schema)
    assert document["schema"] == f"seawall.cluster-{verb}/1"
    if verb == "why":
        assert document["suspect"]["verdict"] == "convicted"
        assert document["suspect"]["chance"]["with_workload"] == 4
        assert document["deaths"][-1]["moved_at"] == "2026-11-28T10:19:18Z"
        assert document["deaths"][1]["record"] is None  # none came, which is no empty one


def test_a_replay_takes_a_policy_of_yaml(file: str, tmp_path: Path) -> None:
    policy = tmp_path / "other.yaml"
    policy.write_text(POLICY)
    ended = seawall_cluster("replay", file, "--policy", str(policy))
    assert ended.status == 0
    words = " ".join(ended.out.split())
    assert "1.5 wrong in 1,000 node-years" in words
    assert "not convicted any more" in words


def test_a_page_is_written(file: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = seawall_cluster("report", "--from", file, "--html", str(page))
    assert ended.status == 0
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "KiB" in ended.out


BAD = {
    "no such file": (["why", "--from", "/nowhere"], "No such file or directory"),
    "no JSON": (["why", "--from", "{bad}"], "no JSON"),
    "another list": (["why", "--from", "{pods}"], "expected NodeDeath and its like, found Pod"),
    "a folder": (["deaths", "--from", "/"], "found a folder"),
    "both": (["suspects", "--from", "{file}", "--context", "x"], "--context is of a kubeconfig"),
    "nothing given": (["why"], "/nowhere/.kube/config is not there"),
    "no kubeconfig": (["why", "--kubeconfig", "/nowhere"], "not found"),
    "kubeconfig of rubbish": (["why", "--kubeconfig", "{bad}"], "no kubeconfig that can be used"),
    "no such context": (["why", "--kubeconfig", "{kube}", "--context", "x"], "'x' not found"),
    "nobody answers": (["why", "--kubeconfig", "{kube}", "--timeout", "1"], "127.0.0.1:9"),
    "no policy": (["replay", "{file}", "--policy", "{pods}"], "with kind: SeawallPolicy"),
    "a wrong policy": (["replay", "{file}", "--policy", "{policy}"], "expected a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line(case: str, file: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("{{{")
    (tmp_path / "pods").write_text('{"kind": "List", "items": [{"kind": "Pod"}]}')
    (tmp_path / "policy").write_text(POLICY.replace("1.5", "many"))
    (tmp_path / "kube").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
        "clusters: [{name: here, cluster: {server: 'https://127.0.0.1:9'}}]\n"
        "contexts: [{name: here, context: {cluster: here, user: me}}]\n"
        "users: [{name: me, user: {token: x}}]\n"
    )
    places = {name: str(tmp_path / name) for name in ("bad", "pods", "policy", "kube")}
    words, expected = BAD[case]
    argv = [word.format(file=file, **places) if "{" in word else word for word in words]
    ended = seawall_cluster(*argv)
    assert ended.status == 2
    assert expected in ended.problems
    assert ended.out == ""
    assert ended.problems.count("\n") == 1


@pytest.mark.parametrize("module", ["msgspec", "lightkube"])
def test_without_the_extra_it_is_one_line(module: str, tmp_path: Path) -> None:
    """In a Python of its own, which does not find it."""
    (tmp_path / "kube").write_text("{}")
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from seawall.cli.main import main\n"
        f"sys.exit(main(['cluster', 'why', '--kubeconfig', {str(tmp_path / 'kube')!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 2
    assert "seawall[cluster]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_verb_of_a_node_imports_the_extra() -> None:
    code = (
        "import sys; from seawall.cli.main import parse; parse(['cluster', 'why'])\n"
        "wrong = {'lightkube', 'msgspec', 'urllib3', 'prometheus_client', 'httpx2'}\n"
        "print(sorted(wrong & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.stdout == "[]\n"
