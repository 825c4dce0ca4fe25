# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster replay``: recorded deaths judged again."""

from typing import Any

from seawall.cli.cluster_source import ClusterVerb, read_dump
from seawall.cluster.judge.cluster_judge import JudgePolicy
from seawall.cluster.objects.object_fields import ObjectProblem
from seawall.cluster.objects.seawall_policy_object import seawall_policy_object
from seawall.cluster.pages.cluster_replay_page import ClusterReplayPage, cluster_replay
from seawall.host.input_file import open_input
from seawall.problems import ParseProblem, UsageProblem
from seawall.readings import cdi_yaml

_WANTED = "a SeawallPolicy as YAML or JSON"


class ClusterReplayVerb(ClusterVerb[ClusterReplayPage]):
    """By the recorded policy, and by another where one is given."""

    name = "cluster-replay"
    text_view = "seawall.cluster.pages.cluster_replay_page:replay_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_documents:REPLAY"

    def page(self) -> ClusterReplayPage:
        reading = read_dump(self.arguments.file)
        path = self.arguments.policy
        if path is None:
            return cluster_replay(reading)
        return cluster_replay(reading, read_policy(path), path)


def read_policy(path: str) -> JudgePolicy:
    """UsageProblem: no such file, or none of these."""
    try:
        with open_input(path, _WANTED) as file:
            value: Any = cdi_yaml.load(file.read(cdi_yaml.BYTES_MOST + 1))
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}; expected {_WANTED}") from error
    except ParseProblem as problem:
        raise UsageProblem(f"{path}: {problem}; expected {_WANTED}") from problem
    if not isinstance(value, dict) or value.get("kind") != "SeawallPolicy":
        raise UsageProblem(f"{path}: expected {_WANTED}, with kind: SeawallPolicy")
    spec = value.get("spec")
    rate = spec.get("falsePerThousandNodeYears") if isinstance(spec, dict) else None
    if isinstance(spec, dict) and isinstance(rate, str):  # the reader leaves numbers as text
        try:
            spec = {**spec, "falsePerThousandNodeYears": float(rate)}
        except ValueError as error:
            words = f"falsePerThousandNodeYears: expected a number, found {rate[:40]!r}"
            raise UsageProblem(f"{path}: {words}") from error
    try:
        named = {"kind": "SeawallPolicy", "metadata": {"name": "default"}, "spec": spec}
        return seawall_policy_object(named).judge_policy()
    except ObjectProblem as problem:
        raise UsageProblem(f"{path}: {problem}") from problem


run = ClusterReplayVerb.run
