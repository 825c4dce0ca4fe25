# SPDX-License-Identifier: Apache-2.0
"""``seawall rules list`` and ``seawall rules show SW101``."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from seawall.cli.source_options import add_form_arguments
from seawall.cli.verb import Head, Verb
from seawall.findings.rule import Rule, load_rules
from seawall.problems import UsageProblem
from seawall.views.documents.rules_document import RULES, RulesPage
from seawall.views.rules_text import list_lines, show_lines
from seawall.views.terminal import Console

WANTED: Final = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of ``seawall rules`` to its parser."""
    verbs = parser.add_subparsers(dest="rules_verb", metavar="list|show", required=True)
    listing = verbs.add_parser("list", help="every rule, one line each")
    showing = verbs.add_parser("show", help="one rule: what, why, thresholds, by hand")
    showing.add_argument("id", metavar="ID", help="e.g. SW101")
    showing.add_argument("--example", action="store_true", help="the case that makes it fire")
    for verb in (listing, showing):
        add_form_arguments(verb)


class RulesVerb(Verb[RulesPage]):
    """All rules, or the one that was named."""

    name = "rules"
    is_framed = False

    def page(self) -> RulesPage:
        is_list = self.arguments.rules_verb == "list"
        return RulesPage(load_rules() if is_list else (rule_named(self.arguments.id),))

    def text(self, page: RulesPage, paper: Console) -> Iterable[str]:
        if self.arguments.rules_verb == "list":
            return list_lines(page.rules, paper)
        return show_lines(page.rules[0], paper)

    def head(self, _page: RulesPage) -> Head:
        """Of no machine."""
        return {}

    def document(self, _top: Head, page: RulesPage) -> Head:
        return RULES.alone(page)


def run(arguments: Namespace) -> int:
    """Print the list or the rule."""
    if arguments.rules_verb == "show" and arguments.example:
        print(_example(rule_named(arguments.id)), end="")
        return 0
    return RulesVerb.run(arguments)


def rule_named(rule_id: str) -> Rule:
    """The rule of that id in any case of letters; UsageProblem when there is none."""
    for rule in load_rules():
        if rule.id == rule_id.upper():
            return rule
    raise UsageProblem(f"{rule_id}: no such rule; see seawall rules list")


def _example(rule: Rule) -> str:
    package, _, name = rule.module.rpartition(".")
    folder = files(package) / f"{name}.cases"
    if not folder.is_dir():
        raise UsageProblem(f"{rule.id}: examples are left out here; the sources have them")
    texts = [
        case.read_bytes().decode("utf-8", "replace") for case in sorted(folder.iterdir(), key=str)
    ]
    return next((text for text in texts if "\nverdict: fires" in text), "no case fires\n")
