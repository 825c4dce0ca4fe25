# SPDX-License-Identifier: Apache-2.0
"""Options of verbs that judge rules; apart, for a check that reads a few files imports no rule."""

from argparse import ArgumentParser


def add_judging_arguments(parser: ArgumentParser) -> None:
    """Options of every verb that judges."""
    parser.add_argument(
        "--fail-on", choices=("critical", "warning"),
        help="exit 10 if something at that level fires, 11 if blind there",
    )  # fmt: skip
    add_rules_argument(parser)


def add_rules_argument(parser: ArgumentParser) -> None:
    """Which rules count, and from where on."""
    parser.add_argument(
        "--rules", metavar="FILE", default=None,
        help="mutes and thresholds (default /etc/seawall/rules.toml, where it exists)",
    )  # fmt: skip
