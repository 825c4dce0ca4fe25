# SPDX-License-Identifier: Apache-2.0
"""What Seawall answers to recordings that do not change: bundles, black boxes, a journal.

``python -m tests.outside.answers`` writes ``answers/``, with the name of a folder into that one: in
an interpreter of its own, for verbs write past ``sys.stdout``.  Whoever changes a document on
purpose writes them again and says so in CHANGELOG.md; whoever moves or renames code must not have
to.
"""

import contextlib
import gzip
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.end_to_end.frozen_host import frozen_node

from seawall.cli.main import main

HOME = Path(__file__).parent
ANSWERS = HOME / "answers"
RECORDINGS = HOME / "recordings"
INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
BUNDLES = {
    "container-hangs": "container-hangs/bundle.tar.gz",
    "gpu-as-found": "gpu-device-missing/bundle-as-found",
    "gpu-missing": "gpu-device-missing/bundle",
    "node-dies": "gpu-node-dies/bundle",
    "page-cache": "page-cache/bundle",
    "page-cache-at-limit": "page-cache/bundle-at-the-limit",
}
VERBS = ("why", "memory", "pods", "gpu")
OF_THIS_RUN = frozenset({"tool_version"})
OF_THIS_LOOK = frozenset({"tool_version", "window_seconds", "age_seconds", "provide"})
"""Of ``top``, which looks at a clock; what would help hangs on who asks."""
OF_TODAY = frozenset({"until", "verdict"})
"""Of ``guard report``, which counts the days until now."""


def commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name of an answer, and the words that get it; ``folder`` holds the recordings, unpacked."""
    for name, place in BUNDLES.items():
        for verb in VERBS:
            yield f"{verb}-{name}", [verb, "--json", "--from", str(INCIDENTS / place)]
    hung = str(INCIDENTS / BUNDLES["container-hangs"])
    yield "stacks-container-hangs", ["stacks", "--json", "--from", hung]
    yield "cache-container-hangs", ["cache", "--json", "--from", hung]
    yield "oom-explain", ["oom", "explain", "--json", str(INCIDENTS / "page-cache/oom.log")]
    node, film = str(folder / "node.box"), str(folder / "film.box")
    yield "blackbox-list-node", ["blackbox", "list", "--json", node]
    yield "blackbox-show-node", ["blackbox", "show", "--json", node]
    for verb in ("why", "memory", "pods"):
        yield f"{verb}-node-box", [verb, "--json", "--from", node]
    yield "blackbox-list-film", ["blackbox", "list", "--json", film]
    yield "guard-replay", ["guard", "replay", "--json", film]
    other = str(RECORDINGS / "other-policy.toml")
    yield "guard-replay-other-policy", ["guard", "replay", "--json", "--config", other, film]
    yield "guard-report-box", ["guard", "report", "--json", "--since", "2026-01-01", film]
    host = str(frozen_node(folder / "host"))
    yield "top-frozen", ["top", "--json", "--interval", "0.1", "--root", host]
    journal = str(RECORDINGS / "decisions.jsonl")
    yield "guard-report-journal", ["guard", "report", "--json", "--since", "2026-01-01", journal]


def unpack(folder: Path) -> None:
    """The recordings that are kept compressed."""
    for packed in RECORDINGS.glob("*.gz"):
        with gzip.open(packed) as source, (folder / packed.stem).open("wb") as target:
            shutil.copyfileobj(source, target)


def answer(words: list[str], folder: Path) -> tuple[int, Any]:
    """Exit status and document, without what is of this very run."""
    with tempfile.TemporaryFile() as out, _stdout_into(out.fileno()):
        status = main(words)
        sys.stdout.flush()
        out.seek(0)
        text = out.read().decode()
    for place, name in ((folder, "UNPACKED"), (RECORDINGS, "RECORDINGS"), (INCIDENTS, "INCIDENTS")):
        text = text.replace(str(place), name)
    names = OF_THIS_LOOK if words[0] == "top" else OF_THIS_RUN
    names |= OF_TODAY if words[:2] == ["guard", "report"] else frozenset()
    return status, without(json.loads(text), names) if text else None


@contextlib.contextmanager
def _stdout_into(descriptor: int) -> Iterator[None]:
    """The stdout of this process and of those that it forks."""
    before = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def without(document: Any, names: frozenset[str]) -> Any:
    """The same, those fields left out wherever they stand."""
    if isinstance(document, dict):
        return {key: without(value, names) for key, value in document.items() if key not in names}
    if isinstance(document, list):
        return [without(value, names) for value in document]
    return document


def written(document: Any) -> str:
    """As it stands in its file."""
    return json.dumps(document, indent=1) + "\n"


def write(target: Path) -> int:
    """All answers, each a file of ``target``; how many."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with tempfile.TemporaryDirectory() as place:
        unpack(Path(place))
        for name, words in commands(Path(place)):
            status, document = answer(words, Path(place))
            (target / f"{name}.json").write_text(written({"status": status, "document": document}))
    return len(list(target.iterdir()))


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1]) if sys.argv[1:] else ANSWERS)} answers\n")
