# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why|suspects|deaths|replay|report``: which workload kills the nodes of a
cluster; ``quarantine|approve|release|undo|brake|rescue``: what a person does about it;
``controller`` is the process that finds out.
"""

from argparse import (
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
    _MutuallyExclusiveGroup,
)
from importlib import import_module
from typing import Final

from seawall.cli.cluster_act import ACTS, add_act_arguments
from seawall.cli.slurm_options import SLURM_VERBS, add_slurm_options, refuse_kubernetes_options
from seawall.cli.source_options import (
    TIMEOUT_SECONDS,
    add_color_argument,
    add_form_arguments,
    seconds_of,
)
from seawall.cli.verb_parser import usage_of_verbs

WANTED: Final = ()
VERBS: Final = {
    "why": "the story: which workload, which nodes, what evidence, what next",
    "suspects": "workloads that are suspected of killing nodes, worst first",
    "deaths": "nodes that died, newest first: cause, culprit, evidence",
    "replay": "recorded deaths judged again, by this policy or another",
    "report": "one HTML page: deaths on a time axis, one lane a node",
    "quarantine": "by your own word: new copies of a workload wait, or it is suspended",
    "approve": "what is proposed against a suspect may be done",
    "release": "a quarantine ends; what was changed in its name is put back",
    "undo": "put back what was changed, also without chart, controller and kinds",
    "brake": "disarm everything: nothing new is done, every guard observes",
    "rescue": "a silent node ends the workload that took its memory, and comes back",
    "controller": "the process in a pod that watches the nodes and writes it all down",
}
_ABOUT: Final = {
    "why": "On one screen: which workload kills nodes, which nodes died and when, what\n"
    "their own records say, the number to check by hand, what was done, what comes\n"
    "next, what could not be seen.  Of a node or workload that is named: its story.",
    "suspects": "State, score against the mark, nodes, last death.  Says so when nobody watches.",
    "deaths": "By time: node, cause, culprit, phase, evidence.",
    "replay": "Judges NodeDeath objects once more, as the observer would.  --policy: also by\n"
    "another SeawallPolicy: who would be convicted, how many nodes sooner or later.",
    "report": "Self-contained: no script, nothing from elsewhere.",
    "quarantine": "Makes a WorkloadQuarantine that is active; says before what will happen and\n"
    "what cannot be undone.  The actor carries it out, where one is installed.  Asks\n"
    "nothing: where living pods would be deleted it does nothing without --yes.",
    "approve": "Makes a quarantine that the observer proposes active, in your name.",
    "release": "Ends it first, then puts back each field that is still as Seawall left it;\n"
    "what somebody changed since is left, and named.",
    "undo": "Finds changed objects by their label and puts back what stands in their own\n"
    "annotation; quarantines in force end first, where the cluster has any.",
    "brake": "Sets spec.brake of the SeawallPolicy: the actor begins nothing new, agents tell\n"
    "their guards to observe.  Waits for answers, lists who was not reached.  Undo\n"
    "and release go on.  --off arms no guard beyond what its own file says.",
    "rescue": "A node that thrashes is silent, and its agent still talks.  Makes a RescueOrder\n"
    "that names whom the node's own report proved; the node's guard judges by itself\n"
    "and ends nobody else.  One that only observes needs rescue = true in its file.\n"
    "Waits for what came back, and until the node is Ready.",
    "controller": "Watches the cluster's nodes, looks into each death and writes NodeDeath and\n"
    "WorkloadQuarantine objects and Events: nothing else is changed.  Of several one\n"
    "leads.  Needs the extra: pip install 'seawall[cluster]'.",
}
_EPILOG: Final = """\
FILE: kubectl get nd,wq,seawallpolicies,nodereports,leases -A -o json > FILE"""
_ACT_EPILOG: Final = """\
Exit status: 0 done; 1 in part, and what is left is said; 2 nothing was written."""
_SOURCES: Final = ("why", "suspects", "deaths", "report")


def add_arguments(parser: ArgumentParser) -> None:
    """The sub-verbs with their options."""
    verbs = parser.add_subparsers(dest="cluster_verb", metavar="VERB", prog="seawall cluster")
    for name, words in VERBS.items():
        verb = verbs.add_parser(
            name, help=words, description=_ABOUT[name],
            epilog=_ACT_EPILOG if name in ACTS else None if name == "controller" else _EPILOG,
            formatter_class=RawDescriptionHelpFormatter,
        )  # fmt: skip
        if name == "controller":
            from seawall.cli.cluster_controller import add_options  # noqa: PLC0415 - this one's

            add_options(verb)
            add_slurm_options(verb, name)
            continue
        if name == "why":
            verb.add_argument(
                "subject", metavar="NODE|WORKLOAD", nargs="?", default="",
                help="a node, or a workload: NAMESPACE/NAME; of Slurm a node, a job's number, "
                "a user or a quarantine",
            )  # fmt: skip
        if name == "replay":
            verb.add_argument("file", metavar="FILE", help="a dump ('-' for stdin)")
            verb.add_argument(
                "--policy", metavar="FILE", help="a SeawallPolicy to try out, YAML or JSON"
            )
        if name in ACTS:
            add_act_arguments(verb, name)
            _add_cluster(verb, verb)
        if name in _SOURCES:
            _add_source(verb)
        if name == "report":
            verb.add_argument(
                "--html", metavar="FILE", required=True,
                help="write the page there, readable by its owner alone; '-' for stdout",
            )  # fmt: skip
            add_color_argument(verb)
        else:
            verb.add_argument("--whole", action="store_true", help="leave nothing out")
            add_form_arguments(verb)
        if name in SLURM_VERBS:
            add_slurm_options(verb, name)


def _add_source(verb: ArgumentParser) -> None:
    where = verb.add_mutually_exclusive_group()
    where.add_argument("--from", dest="dump", metavar="FILE", help="a dump ('-' for stdin)")
    _add_cluster(verb, where)


def _add_cluster(verb: ArgumentParser, where: ArgumentParser | _MutuallyExclusiveGroup) -> None:
    where.add_argument(
        "--kubeconfig", metavar="FILE", help="default $KUBECONFIG, else ~/.kube/config"
    )
    verb.add_argument("--context", metavar="NAME", help="of the kubeconfig; default its current")
    verb.add_argument(
        "--timeout", dest="seconds", type=seconds_of, default=TIMEOUT_SECONDS, metavar="SECONDS",
        help="for the cluster's first answer (default %(default)g)",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Do what was asked; the exit status."""
    if arguments.cluster_verb is None:
        return usage_of_verbs("cluster", VERBS, 11)
    is_slurm = getattr(arguments, "slurm", False)
    if is_slurm:
        refuse_kubernetes_options(arguments)
    kind = "slurm" if is_slurm else "cluster"
    return int(import_module(f"seawall.cli.{kind}_{arguments.cluster_verb}").run(arguments))
