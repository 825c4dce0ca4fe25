# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_trace``: trace for some seconds, look, end.

``{"seconds": 10, "sample_one_in": 1}`` in; out what ``PageTracer.look`` says, or ``{"problem",
"why", "path"}`` with the reason in words.
"""

import json
from typing import Any, Final

from seawall.host.host import JSON
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracing_problem import TracingProblem

SECONDS_MOST: Final = 600.0
_STEP_MOST: Final = 64


def page_trace(argument: str) -> JSON:
    """Answer one question; ValueError for one that cannot be understood."""
    asked: dict[str, Any] = json.loads(argument or "{}")
    seconds = min(SECONDS_MOST, max(0.1, float(asked.get("seconds", 10))))
    step = min(_STEP_MOST, max(1, int(asked.get("sample_one_in", 1))))
    try:
        with PageTracer.open(TraceOptions(sample_one_in=step)) as tracer:
            tracer.pump(seconds)
            return tracer.look()
    except TracingProblem as problem:
        return {"problem": problem.words, "why": problem.why, "path": problem.path}
