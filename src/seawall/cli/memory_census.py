# SPDX-License-Identifier: Apache-2.0
"""The options of ``seawall memory`` about the census; what it does is in ``census_page.py``."""

from argparse import ArgumentParser, Namespace

from seawall.problems import UsageProblem


def add_arguments(parser: ArgumentParser) -> None:
    """``--census`` and ``--exact``."""
    parser.add_argument(
        "--census", action="store_true",
        help="look at the page frames themselves: what each is and who pays (root; seconds)",
    )  # fmt: skip
    parser.add_argument(
        "--exact", action="store_true",
        help="with --census: look at all of them, for as long as --timeout allows; a large "
        "host is sampled otherwise",
    )  # fmt: skip


def complete(arguments: Namespace) -> None:
    """UsageProblem for ``--exact`` alone."""
    if arguments.exact and not arguments.census:
        raise UsageProblem("--exact is about --census")


def run(arguments: Namespace) -> int:
    """Print the census; the exit status."""
    from seawall.cli.census_page import make_page, print_json, print_text  # noqa: PLC0415 - only for this option
    from seawall.cli.source_options import open_source  # noqa: PLC0415

    source = open_source(arguments)
    page = make_page(source, exact=arguments.exact)
    if arguments.json:
        print_json(source, page)
    else:
        print_text(source, page, arguments.color)
    return 0
