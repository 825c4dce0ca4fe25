# SPDX-License-Identifier: Apache-2.0
"""The policy state as JSON, and back: a replay can begin in the middle of an incident.

What comes back decides as the judge that it was taken from, to the last bit of every number.
"""

from typing import cast

from seawall.guard.judge.judge import Judge
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.typed_codec import codec_of


def state_document(judge: Judge) -> dict[str, JSON]:
    """All that the judge remembers between two ticks; TypeError: some of it has no form in JSON."""
    return cast("dict[str, JSON]", codec_of(Judge).write(judge))


def judge_from_document(mind: JSON) -> Judge:
    """A judge in that state; BundleProblem when it is none, or another version's."""
    try:
        return cast("Judge", codec_of(Judge).read(mind))
    except (ValueError, RecursionError) as error:
        raise BundleProblem(f"a judge's mind in the black box: {error}") from error
