# SPDX-License-Identifier: Apache-2.0
"""The format of a rule, and how rules are found.

A rule is one module under ``findings/rules/TOPIC/`` with one function ``judge`` under the
``@rule(...)`` decorator.  Positional parameters are its needs, by type: a topic, a
``Window[topic]``, or either ``| Unread`` when the rule copes alone.  Keyword-only
parameters with defaults are its thresholds; ``rules.toml`` may move them.  It returns one
finding or a sequence of them.  Its cases lie beside it in ``NAME.cases/*.case``.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias

from seawall.findings.finding import Finding, Severity

Threshold: TypeAlias = "int | float"
Judge: TypeAlias = "Callable[..., Finding | Sequence[Finding]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, as its decorator and its function's signature declare it."""

    id: str
    title: str
    severity: Severity
    """The worst that it can say; also the severity of its BLIND."""
    judge: Judge
    thresholds: Mapping[str, tuple[Threshold, str]]
    """Name -> (default, unit and source in words)."""
    confirm: tuple[str, ...]
    remedy: tuple[str, ...]
    provide: str
    """What would let it see, when it is blind."""
    audit: bool
    """True for settings: judged by ``why --audit`` only."""
    explained_by: tuple[str, ...]
    """Ids of the rules whose finding, where it fires about the same workload or about the node,
    explains this one; the likeliest first.  See ``causes.py``."""
    steps: tuple[str, ...]
    """For one screen: at most three lines to do or to paste; none takes the remedy."""
    has_holder: bool
    """Somebody holds what it is about: the answer says who, or that nobody can be named."""
    is_of_node_memory: bool
    """What it is about is the memory of the node, most of which cgroups count: where nobody is to
    blame, the answer names the largest workload as that."""
    doc: str
    module: str


PROVIDE_DEFAULT: Final = "run as root on the host"

FOUND: Final[dict[str, Rule]] = {}


def rule(  # noqa: PLR0913 - everything that a rule declares
    *,
    id: str,  # noqa: A002 - the word that users see
    title: str,
    severity: Severity,
    confirm: Sequence[str],
    remedy: Sequence[str],
    thresholds: Mapping[str, str] | None = None,
    provide: str = PROVIDE_DEFAULT,
    audit: bool = False,
    explained_by: Sequence[str] = (),
    steps: Sequence[str] = (),
    has_holder: bool = False,
    is_of_node_memory: bool = False,
) -> Callable[[Judge], Judge]:
    """Declare a rule.  ``thresholds`` tells unit and source of each keyword-only parameter."""

    def declare(judge: Judge) -> Judge:
        if id in FOUND and FOUND[id].module != judge.__module__:
            raise ValueError(f"{id} is declared twice: {FOUND[id].module}, {judge.__module__}")
        defaults: dict[str, Any] = judge.__kwdefaults__ or {}
        words = dict(thresholds or {})
        if set(defaults) != set(words):
            raise ValueError(f"{id}: thresholds {set(defaults) ^ set(words)} lack default or text")
        FOUND[id] = Rule(
            id=id, title=title, severity=severity, judge=judge,
            thresholds={name: (defaults[name], words[name]) for name in words},
            confirm=tuple(confirm), remedy=tuple(remedy), provide=provide, audit=audit,
            explained_by=tuple(explained_by), steps=tuple(steps), has_holder=has_holder,
            is_of_node_memory=is_of_node_memory,
            doc=_module_doc(judge), module=judge.__module__,
        )  # fmt: skip
        return judge

    return declare


def _module_doc(judge: Judge) -> str:
    return (judge.__globals__.get("__doc__") or "").strip()


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule in ``findings/rules``, by id.  Adding the file is all the registration."""
    import seawall.findings.rules as home  # noqa: PLC0415 - rules import this module

    for folder in pkgutil.iter_modules(home.__path__, home.__name__ + "."):
        package = import_module(folder.name)
        for module in pkgutil.iter_modules(package.__path__, folder.name + "."):
            import_module(module.name)
    return tuple(FOUND[id_] for id_ in sorted(FOUND))
