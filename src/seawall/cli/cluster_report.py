# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster report --html FILE``: one page of a cluster's deaths.

No ``Verb``: it has neither text nor JSON.
"""

import io
import shlex
import sys
from argparse import Namespace

from seawall.cli.cluster_source import read_cluster
from seawall.cli.console import terminal_columns
from seawall.cli.output_file import check_output, write_whole
from seawall.cluster.pages.cluster_html import ClusterReportOrigin, cluster_html
from seawall.problems import UsageProblem
from seawall.version import VERSION


def run(arguments: Namespace) -> int:
    """Write the page, and say where it is."""
    is_stdout = arguments.html == "-"
    if is_stdout and terminal_columns() is not None:
        raise UsageProblem("--html -: a page is not for a terminal; redirect stdout to a file")
    if not is_stdout:
        check_output(arguments.html, "--html")
    command = shlex.join(["seawall", *sys.argv[1:]])
    data = cluster_html(read_cluster(arguments), ClusterReportOrigin(command, VERSION))
    if is_stdout:
        sys.stdout.buffer.write(data)
        return 0
    write_whole(arguments.html, io.BytesIO(data), "--html")
    print(f"{arguments.html}: {len(data) / 1024:.0f} KiB")
    return 0
