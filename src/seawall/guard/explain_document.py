# SPDX-License-Identifier: Apache-2.0
"""``seawall guard explain --json``."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from seawall.findings.blindness import NotSeen
from seawall.guard.explain import ExplainedWorkload, PolicyExplanation
from seawall.guard.keys import KEYS
from seawall.views.documents.document_fields import Document, columns, one_of, shown


class SettingsFile(NamedTuple):
    """Where the settings stand."""

    path: str
    """Of the file that counts."""
    is_default: bool
    """There is no file: the defaults hold."""


class ProtectedWorkload(NamedTuple):
    """One that is never acted on, or only on proof."""

    cgroup: str
    name: str
    why: str


def config(found: PolicyExplanation) -> SettingsFile:
    """The file of the settings."""
    return SettingsFile(found.config_path, found.is_default)


def settings(found: PolicyExplanation) -> Mapping[str, Any]:
    """Every key of guard.toml with its value, sizes in bytes; docs/guard-keys.md tells what they
    mean.
    """
    return {key.name: getattr(found.settings, key.field) for key in KEYS}


def only_if_proved(found: PolicyExplanation) -> list[ProtectedWorkload]:
    """Of those that may be acted on: a name or a priority, which any tenant may write down, takes
    them out of the order; who is proved to be the cause goes.
    """
    return [ProtectedWorkload(one.path, one.name, one.protected_by) for one in found.only_if_proved]


def protected(found: PolicyExplanation) -> list[ProtectedWorkload]:
    """Workloads in the scope that are never acted on."""
    return [ProtectedWorkload(one.path, one.name, one.protected_by) for one in found.protected]


def could_not_see(found: PolicyExplanation) -> list[NotSeen]:
    """What would provide it is told with it."""
    return [NotSeen(*row) for row in found.here.unseen]


EXPLAIN: Final = Document(
    name="guard-explain",
    verb="seawall guard explain --json",
    about="What the guard's settings mean on this very machine. Additive within the major number.",
    pages=(PolicyExplanation,),
    shapes={
        PolicyExplanation: (
            *shown("mode=settings.mode", config, settings, "total_bytes=here.total_bytes"),
            *shown("floor_bytes floor_by target_bytes"),
            *shown("scope", turn=columns("path workloads")),
            *shown("may_act_on", only_if_proved, protected),
            *shown("outside_scope=outside kills_by cannot paths"),
            *shown("for_nobody", turn=columns("key word")),
            *shown("other_guards=here.others", could_not_see),
        ),
        ExplainedWorkload: (
            *shown("cgroup=path name"),
            *shown("class=class_name", turn=one_of("BestEffort Burstable Guaranteed system")),
        ),
    },
)
