# SPDX-License-Identifier: Apache-2.0
"""Why a call has no answer, as probes tell it: ``[why, words]``."""

import errno
from typing import Final

from seawall.host.expendable import unread_for
from seawall.host.grpc_unix.grpc_problems import CallProblem, SilentProblem, StatusProblem
from seawall.host.host import JSON, Why
from seawall.problems import ParseProblem

_BY_STATUS: Final[dict[int, Why]] = {
    4: "no_answer", 5: "vanished", 7: "refused", 12: "absent", 16: "refused",
}  # fmt: skip


def reason_of(problem: CallProblem | OSError | ParseProblem) -> JSON:
    """Of a problem on the way, of the server's status, or of what it answered."""
    if isinstance(problem, StatusProblem):
        return [_BY_STATUS.get(problem.code, "failed"), str(problem)]
    if isinstance(problem, SilentProblem):
        return ["no_answer", str(problem)]
    if isinstance(problem, OSError):
        found = unread_for("", problem.errno or errno.EIO)
        return [found.why, found.detail]
    if isinstance(problem, ParseProblem):
        return ["malformed", f"expected {problem.expected}"]
    return ["failed", str(problem)]
