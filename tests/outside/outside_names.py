# SPDX-License-Identifier: Apache-2.0
"""Every name of Seawall that somebody outside may rely on, one a line, sorted.

``python -m tests.outside.outside_names`` writes ``outside_names.txt``.  A change of that file is
a change of what scripts, dashboards, settings and black boxes on disks hold on to: it takes a line
in CHANGELOG.md.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from seawall.blackbox import frame as box_frame
from seawall.cli import statuses
from seawall.cli.main import VERBS
from seawall.cli.verb_parser import VerbParser
from seawall.findings.rule import load_rules
from seawall.guard.judge.judge import Judge
from seawall.guard.keys import KEYS
from seawall.guard.tell import textfile
from seawall.guard.tell.status_page import COLUMNS, LINES
from seawall.host import probes
from seawall.host.slow_probes import SLOW_PROBES
from seawall.readings import saved_claims
from seawall.replay.state_schema import SLOTS
from seawall.replay.tick_encoder import GROUP_COLUMNS, NODE_COLUMNS

SOURCE = Path(__file__).parents[2] / "src/seawall"
FILE = Path(__file__).with_name("outside_names.txt")
_PATH = re.compile(r"/(?:run|etc|var/lib)/seawall(?:/[\w.-]+)*")
_SECTION = re.compile(r"_(?:labelled|first)\(\s*\"([^\"]+)\"")
_LABEL = re.compile(r"(\w+)=")
_VARIABLE = re.compile(r"\bSEAWALL_[A-Z_]+\b")


def outside_names() -> list[str]:
    """One line a name: what kind of name it is, where it stands, what it is."""
    parts = (
        options, exit_statuses, json_fields, probe_names, box_names, judge_slots, claim_fields,
        metrics, status_page, guard_keys, rule_names, paths,
    )  # fmt: skip
    return sorted({line for part in parts for line in part()})


def options() -> Iterator[str]:
    """Verbs, their own verbs, options and positional words."""
    for verb in VERBS:
        module = import_module(f"seawall.cli.{verb}")
        parser = VerbParser(prog=f"seawall {verb}")
        module.add_arguments(parser)
        yield f"verb seawall {verb}"
        yield from _options_of(parser, f"seawall {verb}")
        yield from _options_of_questions(verb, module)


def _options_of_questions(verb: str, module: Any) -> Iterator[str]:
    """Of ``oom`` and ``gpu``: a question learns its options when it is the one that is asked."""
    if not hasattr(module, "QUESTIONS"):
        return
    tables = [module.TABLE] if hasattr(module, "TABLE") else []  # of the verb without a question
    for question in (*tables, *module.QUESTIONS):
        name = f"seawall {verb}" if question in tables else f"seawall {verb} {question}"
        parser = VerbParser(prog=name, conflict_handler="resolve")
        import_module(f"seawall.cli.{verb}_{question}").add_arguments(parser)
        yield f"verb {name}"
        yield from _options_of(parser, name)


def _options_of(parser: argparse.ArgumentParser, verb: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield f"verb {verb} {name}"
                yield from _options_of(below, f"{verb} {name}")
            continue
        name = "/".join(action.option_strings) or str(action.metavar or action.dest).upper()
        choices = f" {'|'.join(map(str, action.choices))}" if action.choices else ""
        takes = "" if action.nargs == 0 else f" nargs={action.nargs or 1}"
        yield f"option {verb} {name}{takes}{choices}"


def exit_statuses() -> Iterator[str]:
    for name, value in vars(statuses).items():
        if name.isupper():
            yield f"exit-status {name} {value}"


def json_fields() -> Iterator[str]:
    """Each field of each document, from its schema, with its types and words."""
    for path in sorted((SOURCE / "views/schemas").glob("*.json")):
        schema = json.loads(path.read_text())
        yield from _fields_of(schema, schema, f"json {path.stem} ", ())


def _fields_of(
    schema: dict[str, Any], node: Any, where: str, inside: tuple[str, ...]
) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if reference := node.get("$ref"):
        if reference in inside:
            yield f"{where} = {reference}"
        else:
            inside = (*inside, reference)
            yield from _fields_of(schema, _definition(schema, reference), where, inside)
    words = node.get("enum", [node["const"]] if "const" in node else [])
    kind = node.get("type", "")
    kinds = "|".join(kind) if isinstance(kind, list) else kind
    if not where.endswith(" ") and (kinds or words):
        yield f"{where} {kinds} {'|'.join(map(str, words))}".rstrip()
    for place, below in _below(node):
        yield from _fields_of(schema, below, where + place, inside)


def _definition(schema: dict[str, Any], reference: str) -> Any:
    found: Any = schema
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _below(node: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Parts of a schema, each with what it adds to the place."""
    for word in ("oneOf", "anyOf", "allOf"):
        yield from (("", one) for one in node.get(word, ()))
    required = node.get("required", ())
    for name, below in node.get("properties", {}).items():
        yield f".{name}{'' if name in required else '?'}", below
    yield "[]", node.get("items")
    yield ".*", node.get("additionalProperties")


def probe_names() -> Iterator[str]:
    """What a bundle and a box file answers under."""
    listed = re.findall(r"^``([a-z_]+)``", probes.__doc__ or "", re.MULTILINE)
    for name in {*listed, *SLOW_PROBES, *probes.RESIDENCY_PROBES}:
        yield f"probe {name}"


def box_names() -> Iterator[str]:
    """The header of a frame, kinds, and the columns of a tick."""
    yield f"box format {box_frame.VERSION} {box_frame.MAGIC.decode()} {box_frame.HEADER.format}"
    for kind in box_frame.KINDS:
        yield f"box kind {box_frame.KINDS.index(kind)} {kind}"
    for at, name in enumerate(NODE_COLUMNS):
        yield f"box tick node {at:02} {name}"
    for at, name in enumerate(GROUP_COLUMNS):
        yield f"box tick group {at:02} {name}"


def judge_slots() -> Iterator[str]:
    """The names under which a box holds what the judge remembered: JSON names no class of ours."""
    yield from _slots_of(Judge, "box mind ")


def _slots_of(shape: Any, where: str) -> Iterator[str]:
    """One line for each slot that holds plain values, by its way from the judge down."""
    if shape in SLOTS:
        for name, below in SLOTS[shape].items():
            yield from _slots_of(below, f"{where}.{name}")
    elif _has_slots(shape):
        sign = {dict: "{}", list: "[]", tuple: "[]"}.get(get_origin(shape), "?")
        for below in filter(_has_slots, get_args(shape)):
            yield from _slots_of(below, where + sign)
    else:
        yield f"{where} {_words_of(shape)}"


def _has_slots(shape: Any) -> bool:
    return shape in SLOTS or any(map(_has_slots, get_args(shape)))


def _words_of(shape: Any) -> str:
    """A NamedTuple is a list, by the places of its fields."""
    if hasattr(shape, "_fields"):
        hints = get_type_hints(shape)
        return f"[{', '.join(_words_of(hints[name]) for name in shape._fields)}]"
    words = [_words_of(below) for below in get_args(shape) if below is not Ellipsis]
    origin = get_origin(shape)
    if origin in (list, tuple):
        return f"[{', '.join(words)}{', ...' if origin is list or ... in get_args(shape) else ''}]"
    if origin is dict:
        return f"{{{words[0]}: {words[1]}}}"
    if origin in (UnionType, Union):
        return " or ".join(words)
    if origin is Literal:
        return "|".join(get_args(shape))
    return "null" if shape is NoneType else _type_name(shape)


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else re.sub(
        r"\b(?:\w+\.)+", "", str(kind)
    )  # fmt: skip


def claim_fields() -> Iterator[str]:
    yield f"claims {saved_claims.PATH} {saved_claims.SCHEMA}"
    for owner, where in ((saved_claims.SavedClaims, ""), (saved_claims.SavedClaim, "claims[].")):
        for field in fields(owner):
            yield f"claims {where}{field.name} {_type_name(field.type)}"


def metrics() -> Iterator[str]:
    """By the text that Prometheus reads, of a guard of which everything is known."""
    values: dict[str, Any] = {metric.key: 1 for metric in textfile.METRICS}
    values |= {"mode": "observe", "decisions": [("node_short", "acted", 1)]}
    values["workloads"] = [("shop/web/app", 1)]
    for line in textfile.render(values).splitlines():
        if line.startswith("# TYPE "):
            yield f"metric {line.removeprefix('# TYPE ')}"
        elif "{" in line:
            name, _, labels = line.partition("{")
            yield f"metric {name} labels {' '.join(_LABEL.findall(labels))}"


def status_page() -> Iterator[str]:
    """The words that begin a section."""
    yield f"status-page {LINES} lines of {COLUMNS} columns"
    for label in _SECTION.findall((SOURCE / "guard/tell/status_page.py").read_text()):
        yield f"status-page section {label}"


def guard_keys() -> Iterator[str]:
    for key in KEYS:
        bounds = f"{key.least} to {key.most}" if key.least is not None else ""
        words = "|".join(key.choices) or bounds
        yield f"guard.toml {key.name} {key.kind} {words} default {key.default!r}".replace("  ", " ")


def rule_names() -> Iterator[str]:
    for key in ("mute", "reason", "until", "workload", "thresholds"):
        yield f"rules.toml [RULE] {key}"
    for rule in load_rules():
        yield f"rule {rule.id} {rule.severity}{' audit' if rule.audit else ''}"
        for name, (default, _) in rule.thresholds.items():
            yield f"rules.toml [{rule.id}.thresholds] {name} {default}"


def paths() -> Iterator[str]:
    """Files and folders of Seawall's own on a node, and variables of the environment."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        yield from (f"path {found.rstrip('.')}" for found in _PATH.findall(text))
        yield from (f"variable {found}" for found in _VARIABLE.findall(text))


if __name__ == "__main__":
    names = outside_names()
    FILE.write_text("\n".join(names) + "\n")
    sys.stdout.write(f"{FILE}: {len(names)} names\n")
