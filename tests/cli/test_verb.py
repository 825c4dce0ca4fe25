# SPDX-License-Identifier: Apache-2.0
"""What a verb declares is there, and the runner prints the form that was asked for."""

import inspect
import json
import pkgutil
from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import seawall.cli
from seawall.cli.verb import Verb
from seawall.views.documents.document_fields import Document

for found in pkgutil.iter_modules(seawall.cli.__path__, "seawall.cli."):
    import_module(found.name)


def verbs(of: type[Any] = Verb) -> Iterator[type[Any]]:
    for one in of.__subclasses__():
        yield from verbs(one)
        if one.__module__.startswith("seawall.") and not inspect.isabstract(one):
            yield one


ALL = list(verbs())


def attribute(name: str) -> Any:
    module, _, found = name.partition(":")
    return getattr(import_module(module), found)


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.__name__)
def test_text_and_document_of_a_verb_are_there(verb: type[Any]) -> None:
    if verb.text is Verb.text:
        assert callable(attribute(verb.text_view))
    if verb.document is Verb.document:
        table = attribute(verb.document_table)
        assert isinstance(table, Document)
        assert verb.name in (table.name, table.also)


def test_there_are_verbs() -> None:
    assert {"MemoryVerb", "PodsVerb", "StacksVerb"} <= {verb.__name__ for verb in ALL}


class OneWordVerb(Verb[str]):
    name = "word"

    def page(self) -> str:
        return str(self.arguments.word)

    def text(self, page: str, _paper: object) -> list[str]:
        return [page]

    def head(self, _page: str) -> dict[str, Any]:
        return {"schema": f"seawall.{self.name}/1", "host": {"node": "n1", "unread": []}}

    def document(self, top: dict[str, Any], page: str) -> dict[str, Any]:
        return {**top, "word": page}

    def status(self, page: str) -> int:
        return len(page)


def test_text_has_the_machine_and_the_status_is_the_verbs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert OneWordVerb.run(Namespace(word="hello", json=False)) == 5
    first, *rest = capsys.readouterr().out.splitlines()
    assert "n1" in first
    assert rest == ["hello", "", "Could not see: nothing that was asked for was missing."]


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert OneWordVerb.run(Namespace(word="", json=True)) == 0
    assert json.loads(capsys.readouterr().out)["word"] == ""
