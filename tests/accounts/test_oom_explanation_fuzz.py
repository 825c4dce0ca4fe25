"""Mutated logs of real kernels: explained without an error, and nothing steers a terminal."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.oom.explanation import explain_all
from seawall.readings.oom_log.parser import read_reports
from seawall.views.document import render
from seawall.views.documents.document_fields import object_of
from seawall.views.documents.oom_explain_document import EXPLAIN
from seawall.views.oom_explain_text import lines, summary
from seawall.views.terminal import Console

LOGS = {
    path.name: path.read_bytes()
    for path in (Path(__file__).parents[1] / "readings/files/oom-logs").glob("*.txt")
}
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([b"", b"\n", b"9" * 25, b"-", b"\x1b[1m", b"\xff", b":", b"0", b" "])
        | st.binary(max_size=4),
        st.integers(0, 200),
    ),
    max_size=12,
)


@given(st.sampled_from(sorted(LOGS)), EDITS)
def test_mutated_log_is_explained(name: str, edits: list[tuple[float, bytes, int]]) -> None:
    log = LOGS[name]
    for place, inserted, removed in edits:
        at = int(place * len(log))
        log = log[:at] + inserted + log[at + removed :]
    for told in explain_all(read_reports(log.splitlines(keepends=True))):
        for line in [*lines(told, Console()), summary(told, Console())]:
            assert line.isprintable()
        assert (
            json.loads(render(object_of(told, EXPLAIN.shapes), indent=None))["number"]
            == told.number
        )
