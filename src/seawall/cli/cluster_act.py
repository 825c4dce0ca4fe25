# SPDX-License-Identifier: Apache-2.0
"""One runner for the verbs of ``seawall cluster`` that change something."""

import re
from abc import abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from seawall.cli.cluster_source import ClusterVerb, cluster_access
from seawall.cli.statuses import NOT_WHOLE, USAGE
from seawall.problems import UsageProblem

if TYPE_CHECKING:
    from seawall.cluster.acts.act_desk import ActDesk
    from seawall.cluster.objects.workload_quarantine_object import QuarantineMode
    from seawall.cluster.pages.cluster_act_page import ClusterActPage

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WEEK: Final = 7 * 86400.0


class ClusterActVerb(ClusterVerb["ClusterActPage"]):
    """A verb that writes; what each write was, or would be, is its answer."""

    name = "cluster-act"
    text_view = "seawall.cluster.pages.cluster_act_text:act_lines"
    text_options = ("whole",)
    document_table = "seawall.cluster.pages.cluster_act_document:ACT"

    def page(self) -> "ClusterActPage":
        """UsageProblem: nothing was written."""
        try:
            return self._acted()
        except ModuleNotFoundError as problem:
            if (problem.name or "").partition(".")[0] == "seawall":
                raise
            raise UsageProblem(
                f"no Python module {problem.name}: a cluster is asked with the extra: pip install "
                "'seawall[cluster]'"
            ) from None

    def _acted(self) -> "ClusterActPage":
        from seawall.cluster.acts.act_desk import ActDesk, short  # noqa: PLC0415 - an extra
        from seawall.cluster.kube.kube_client import KubeClient, KubeProblem  # noqa: PLC0415

        access = cluster_access(self.arguments)
        where = self.arguments.context or access.server
        desk: ActDesk | None = None
        try:
            client = KubeClient(access, user_agent="seawall")
            client.server_seconds(self.arguments.seconds)
            desk = ActDesk(client, where, is_dry_run=self.arguments.dry_run)
            return self.act(desk)
        except KubeProblem as problem:
            if desk is None or not desk.steps:
                raise UsageProblem(f"{where}: {short(problem)}") from None
            return desk.broke_off(self.arguments.cluster_verb, problem)

    @abstractmethod
    def act(self, desk: "ActDesk") -> "ClusterActPage":
        """Do it, or in a dry run all but that."""

    def status(self, page: "ClusterActPage") -> int:
        if page.outcome == "needs yes":
            return USAGE
        return NOT_WHOLE if page.outcome == "partly" else 0


def add_act_arguments(verb: ArgumentParser, name: str) -> None:
    """What each of them has of its own, and what all have."""
    _OWN[name](verb)
    verb.add_argument(
        "--dry-run", action="store_true",
        help="print each write, and let the API server check it, but keep nothing",
    )  # fmt: skip
    verb.add_argument("--reason", metavar="WORDS", default="", help="stands in its Events")


def _quarantine(verb: ArgumentParser) -> None:
    verb.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="NAMESPACE/KIND/NAME, ml/deployment/trainer say; of Slurm a job's number",
    )
    _add_mode(verb)
    verb.add_argument(
        "--for", dest="life", type=life_of, default="24h", metavar="TIME",
        help="30m, 24h, at most 7d; then it ends by itself (default %(default)s)",
    )  # fmt: skip
    _add_yes(verb)


def _approve(verb: ArgumentParser) -> None:
    verb.add_argument("subject", metavar="NAME", help="a quarantine, or its workload")
    _add_mode(verb)
    _add_yes(verb)


def _release(verb: ArgumentParser) -> None:
    verb.add_argument("subject", metavar="NAME|WORKLOAD", help="a quarantine, or its workload")


def _undo(verb: ArgumentParser) -> None:
    which = verb.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "subject", metavar="NAME", nargs="?", default="", help="a quarantine, or its workload"
    )
    which.add_argument("--all", action="store_true", help="of every quarantine, known or not")


def _brake(verb: ArgumentParser) -> None:
    verb.add_argument("--off", action="store_true", help="take it off; that arms nobody by itself")
    verb.add_argument(
        "--wait", type=_wait_of, default=60.0, metavar="SECONDS",
        help="for the guards' answers, 0 to 600 (default %(default)g)",
    )  # fmt: skip


def _rescue(verb: ArgumentParser) -> None:
    verb.add_argument("node", metavar="NODE", help="the node")
    verb.add_argument(
        "--pod", dest="pods", metavar="UID", action="append", default=[],
        help="whom to name instead of whom the node's report proves; its guard judges all the same",
    )  # fmt: skip
    verb.add_argument(
        "--wait", type=_wait_of, default=120.0, metavar="SECONDS",
        help="for its answer and until it is Ready again, 0 to 600 (default %(default)g)",
    )  # fmt: skip


_OWN: Final = {
    "quarantine": _quarantine, "approve": _approve, "release": _release, "undo": _undo,
    "brake": _brake, "rescue": _rescue,
}  # fmt: skip
ACTS: Final = tuple(_OWN)


def _add_mode(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--mode", choices=("tell", "hold", "probation", "gate", "suspend"),
        help="default: suspend where its kind has a switch, else gate",
    )  # fmt: skip


def _add_yes(verb: ArgumentParser) -> None:
    verb.add_argument("--yes", action="store_true", help="also where living pods are deleted")


def life_of(text: str) -> float:
    """Seconds of ``30m``, ``24h``, ``7d``, from a minute to a week."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 60.0 <= seconds <= _WEEK:
        raise ArgumentTypeError(f"expected 1m to 7d, 24h say, not {text!r}")
    return seconds


def _wait_of(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 600.0:
        raise ArgumentTypeError(f"expected seconds from 0 to 600, not {text!r}")
    return seconds


def mode_of(arguments: Namespace) -> "QuarantineMode | None":
    """The mode that was named; None: none."""
    from seawall.cluster.objects import workload_quarantine_object  # noqa: PLC0415 - of a verb

    modes = workload_quarantine_object.QuarantineMode
    return None if arguments.mode is None else modes(arguments.mode)
