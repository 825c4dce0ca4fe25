# SPDX-License-Identifier: Apache-2.0
"""The judge's whole mind as JSON, and back: a replay can begin in the middle of an incident.

What comes back decides as the judge that it was taken from, to the last bit of every number.
"""

from typing import cast

from seawall.guard.judge.judge import Judge
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.carried import carrier


def remembered(judge: Judge) -> dict[str, JSON]:
    """All that it knows between two ticks; TypeError when the judge has what cannot be carried."""
    return cast("dict[str, JSON]", carrier(Judge).write(judge))


def recalled(mind: JSON) -> Judge:
    """A judge with that mind; BundleProblem when it is not one, or another version's."""
    try:
        return cast("Judge", carrier(Judge).read(mind))
    except (ValueError, RecursionError) as error:
        raise BundleProblem(f"a judge's mind in the black box: {error}") from error
