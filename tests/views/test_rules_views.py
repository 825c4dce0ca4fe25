"""A rule as a person reads it: the wraps of its source are not those of the terminal."""

from seawall.findings.rule import load_rules
from seawall.views.rules_text import show_lines
from seawall.views.terminal import Console


def test_no_rule_shows_an_escaped_line_end() -> None:
    for rule in load_rules():
        text = "\n".join(show_lines(rule, Console(width=80, colour=False)))
        assert "\\x0a" not in text, rule.id
        assert rule.title in text
