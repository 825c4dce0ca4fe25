# SPDX-License-Identifier: Apache-2.0
"""``seawall rules list --json`` and ``seawall rules show ID --json``."""

from typing import Final, NamedTuple

from seawall.findings.rule import Rule
from seawall.views.documents.document_fields import Document, shown


class RulesPage(NamedTuple):
    """All of them, or the one that was named."""

    rules: tuple[Rule, ...]


class RuleThreshold(NamedTuple):
    """One that rules.toml can move."""

    name: str
    default: float
    meaning: str
    """Unit and source."""


def thresholds(rule: Rule) -> list[RuleThreshold]:
    """Those that rules.toml can move."""
    return [RuleThreshold(name, *told) for name, told in rule.thresholds.items()]


RULES: Final = Document(
    name="rules",
    verb="seawall rules list --json, seawall rules show ID --json",
    about="What the tool itself knows. Rules are about no host, so there is no taken_at, no window "
    "and no host. Additive within the major number.",
    is_of_host=False,
    pages=(RulesPage,),
    shapes={Rule: shown("id title severity audit doc", thresholds, "confirm remedy provide")},
)
