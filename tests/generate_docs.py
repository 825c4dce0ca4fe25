"""Writes docs/rules/ from the rules and their cases, the schemas from the tables of documents
(``generate_schemas``), docs/json/ from the schemas, docs/guard-keys.md and packaging/guard.toml
from the guard's keys, the samples in README.md and docs/first-incident.md by running the commands
that are named there, and the tables of docs/benchmarks.md from ``bench/journals``.

``python -m tests.generate_docs`` writes; ``--check`` writes nothing, names the pages that are
not current, and ends with status 1 when there are any.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from tests.case_host import RuleCase, parse_case
from tests.generate_figures import with_figures
from tests.generate_schemas import all_documents, schema_of
from tests.outside.answers import unpack

from seawall.accounts.scene import Scene, TopicWindow
from seawall.findings.finding import Judged
from seawall.findings.policy import Policy
from seawall.findings.rule import Rule, load_rules
from seawall.findings.rule_runner import judge
from seawall.guard.keys import KEYS, toml_text
from seawall.guard.keys import example as guard_example
from seawall.readings.snapshot import Snapshot, needs_of
from seawall.views.why_text import shown_value

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src"
SCHEMAS = SOURCE / "seawall/views/schemas"
GENERATED = "<!-- Written by `make docs`; edit what it is made from instead. -->"
SHARED = ("docs", "packaging")  # folders in which most files are written by hand
TOPIC_TITLES = {
    "kernel_memory": "Memory of the kernel and its drivers",
    "node": "The node",
    "containers": "Containers and pods",
    "host_limits": "Limits of the whole host",
    "devices": "Devices that containers were promised",
    "settings": "Settings (only with `why --audit`)",
}

EXAMPLE_TEXT_MOST = 90


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them; the exit status."""
    wanted = {REPOSITORY / name: text for name, text in pages()}
    stale = [path for path, text in wanted.items() if not is_current(path, text)]
    homes = {path.parent for path in wanted} - {REPOSITORY, *(REPOSITORY / home for home in SHARED)}
    orphans = sorted(page for home in homes for page in home.glob("*.md") if page not in wanted)
    if "--check" in arguments:
        for path in [*stale, *orphans]:
            sys.stdout.write(f"{path.relative_to(REPOSITORY)}: not current; run: make docs\n")
        return 1 if stale or orphans else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    for path in orphans:
        path.unlink()
    sys.stdout.write(f"{len(wanted)} pages, {len(stale)} written, {len(orphans)} removed\n")
    return 0


def is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def pages() -> Iterator[tuple[str, str]]:
    """Every generated page: its path in the repository and its text."""
    rules = load_rules()
    yield "docs/rules/README.md", document(rule_index(rules))
    for rule in rules:
        yield f"docs/rules/{rule.id}.md", document(rule_page(rule))
    by_hand = {path.stem: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    made = {document.name: schema_of(document) for document in all_documents()}
    for name, schema in made.items():
        yield f"src/seawall/views/schemas/{name}.json", json.dumps(schema, indent=2) + "\n"
    schemas = dict(sorted((by_hand | made).items()))
    yield "docs/json/README.md", document(schema_index(schemas))
    for name, schema in schemas.items():
        yield f"docs/json/{name}.md", document(schema_page(name, schema))
    yield "docs/guard-keys.md", document(guard_keys())
    yield "packaging/guard.toml", guard_example()
    for name in ("README.md", "docs/first-incident.md"):
        yield name, with_samples((REPOSITORY / name).read_text())
    yield "docs/benchmarks.md", with_figures((REPOSITORY / "docs/benchmarks.md").read_text())


def guard_keys() -> Iterator[str]:
    """The keys of guard.toml, in the order of the example."""
    yield "# Keys of /etc/seawall/guard.toml"
    yield ""
    yield "The file is flat: no sections. An unknown key or a wrong value is an error that names"
    yield "the line, and a running guard keeps what it had. [guard.md](guard.md) tells what the"
    yield "guard does with them; [packaging/guard.toml](../packaging/guard.toml) has them all."
    yield from ("", "| key | default | expected | meaning |", "| --- | --- | --- | --- |")
    for key in KEYS:
        default = toml_text(key, key.default)
        yield f"| `{key.name}` | `{default}` | {cell(key.expected)} | {cell(key.sentence)} |"


def with_samples(page: str) -> str:
    """``page`` with each sample run anew: ``<!-- sample: seawall ... -->``."""
    return re.sub(
        r"(<!-- sample: seawall ([^\n]+) -->\n```text\n).*?(```\n)",
        lambda match: match[1] + sample(match[2].split()) + match[3],
        page,
        flags=re.DOTALL,
    )


def sample(words: list[str]) -> str:
    """What the command prints in a folder with the documents and the recordings of the tests."""
    # The owner's mutes on the machine that writes the page are not the reader's.
    rules = ["--rules", "/dev/null"] if words[0] == "why" else []
    with tempfile.TemporaryDirectory() as folder:
        unpack(Path(folder))
        (Path(folder) / "docs").symlink_to(REPOSITORY / "docs")
        done = subprocess.run(
            [sys.executable, "-m", "seawall", *words, *rules],
            cwd=folder,
            env={"PYTHONPATH": str(REPOSITORY / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def document(lines: Iterator[str]) -> str:
    return "\n".join([GENERATED, *lines]).rstrip() + "\n"


# --- rules -----------------------------------------------------------------------------


def rule_index(rules: tuple[Rule, ...]) -> Iterator[str]:
    """One table for each topic, in the order of TOPIC_TITLES, unknown topics last."""
    yield "# Rules"
    yield ""
    yield "`seawall rules show ID` prints the same on a node without these pages. The severity is"
    yield "the worst that a rule can say. Every rule is quiet, fires, or is blind and says what"
    yield "would let it see. `/etc/seawall/rules.toml` mutes one or moves a threshold."
    topics: dict[str, list[Rule]] = {name: [] for name in TOPIC_TITLES}
    for rule in rules:
        topics.setdefault(topic_of(rule), []).append(rule)
    for topic, members in topics.items():
        if members:
            yield from ("", f"## {TOPIC_TITLES.get(topic, topic)}", "")
            yield from ("| id | fires when | at worst |", "| --- | --- | --- |")
            for rule in members:
                yield f"| [{rule.id}]({rule.id}.md) | {cell(rule.title)} | {rule.severity} |"


def rule_page(rule: Rule) -> Iterator[str]:
    """One rule, with the case that makes it fire as the example."""
    cases = cases_of(rule)
    yield f"# {rule.id}: {rule.title}"
    yield ""
    yield f"At worst **{rule.severity}**." + (" Only with `why --audit`." if rule.audit else "")
    yield ""
    yield marked(rule.doc)
    yield from ("", "## What it needs", "")
    yield from (f"- {need_words(need, copes)}" for _, need, copes in needs_of(rule.judge))
    yield from ("", f"When it cannot see: {rule.provide}.")
    if rule.thresholds:
        yield from ("", "## Thresholds", "", "| name | default | meaning |", "| --- | --- | --- |")
        for name, (default, words) in rule.thresholds.items():
            yield f"| `{name}` | {number(default)} | {cell(words)} |"
    yield from ("", "## See it by hand", "", "```sh", *rule.confirm, "```")
    yield from ("", "## What to do", "", *(f"- {marked(step)}" for step in rule.remedy))
    yield from example(rule, cases)
    yield from ("", "## Its cases", "")
    for name, case in cases.items():
        yield f"- **{case.expect['verdict']}** (`{name}`): {marked(case.expect.get('why', ''))}"


def example(rule: Rule, cases: dict[str, RuleCase]) -> Iterator[str]:
    """What the first case that fires makes it say."""
    for name, case in cases.items():
        if case.expect["verdict"] == "fires":
            item = next(j for j in judged(case, rule) if j.finding.verdict == "fires")
            finding = item.finding
            yield from ("", "## Example", "", f"From its case `{name}`, {finding.severity}:", "")
            yield f"> {marked(finding.headline)}"
            if finding.outlook:
                yield from (">", f"> {marked(finding.outlook)}")
            yield from ("", "| seen | value | where |", "| --- | --- | --- |")
            for row in finding.evidence:
                yield f"| {cell(row.name)} | {cell(shown_value(row))} | {code(row.source)} |"
            return


def judged(case: RuleCase, rule: Rule) -> list[Judged]:
    snapshots = [Snapshot(host) for host in case.rounds]
    scene = Scene.of(snapshots)
    return list(judge([rule], scene, Policy()))


def cases_of(rule: Rule) -> dict[str, RuleCase]:
    """The cases beside the rule's module: those that fire first, then by name."""
    folder = SOURCE / (rule.module.replace(".", "/") + ".cases")
    found = {path.stem: parse_case(path.read_bytes()) for path in sorted(folder.glob("*.case"))}
    order = ("fires", "quiet", "blind")
    return dict(sorted(found.items(), key=lambda pair: order.index(pair[1].expect["verdict"])))


def topic_of(rule: Rule) -> str:
    return rule.module.split(".")[-2]


def need_words(need: Any, copes: bool) -> str:
    over_window = get_origin(need) is TopicWindow
    topic = get_args(need)[0] if over_window else need
    words = f"`{topic.__module__.removeprefix('seawall.')}`"
    words += ", twice, some seconds apart" if over_window else ""
    return words + (" (does without if it must)" if copes else "")


def marked(text: str) -> str:
    """Plain text as Markdown: reST's double backquotes become single ones; outside of them
    nothing else may mean anything."""
    parts = text.replace("``", "`").replace("::\n", ":\n").split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    return marked(one_line(text)).replace("|", "\\|")


def code(text: str) -> str:
    return "`" + one_line(text).replace("|", "\\|") + "`"


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


# --- JSON ------------------------------------------------------------------------------


def schema_index(schemas: dict[str, Any]) -> Iterator[str]:
    yield "# JSON documents"
    yield ""
    yield "The schemas are in the package: `seawall/views/schemas/`. A major number only ever gains"
    yield "fields. Unlimited is `null`; a field that could not be read is absent and named in the"
    yield "`unread` of its object. Sizes are bytes, times seconds, shares 0 to 1."
    yield from ("", "| document | printed by |", "| --- | --- |")
    for name, schema in schemas.items():
        yield f"| [`{schema.get('$id', name)}`]({name}.md) | `{cell(schema.get('title', name))}` |"


def schema_page(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"# `{schema.get('$id', name)}`"
    yield ""
    yield f"`{schema.get('title', name)}`. {marked(schema.get('description', ''))}".rstrip()
    yield from ("", "| field | type | meaning |", "| --- | --- | --- |")
    for path, inner, needed in fields("", schema, schema):
        words = cell(inner.get("description", ""))
        yield f"| `{path}` | {type_words(inner)}{'' if needed else ', may be absent'} | {words} |"
    yield from example_of(name)


def example_of(name: str) -> Iterator[str]:
    """An answer that the tests keep, of each list its first element; nothing where none is kept."""
    for path in sorted((REPOSITORY / "tests/outside/answers").glob("*.json")):
        answer = json.loads(path.read_text()).get("document") or {}
        if answer.get("schema", "").startswith(f"seawall.{name}/"):
            yield from ("", "An answer, of each list its first element alone:", "", "```json")
            yield from json.dumps(abridged(answer), indent=1, ensure_ascii=True).splitlines()
            yield "```"
            return


def abridged(value: Any) -> Any:
    """Of each list the first element, of a text what fits on a line."""
    if isinstance(value, dict):
        return {name: abridged(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [abridged(inner) for inner in value[:1]]
    if isinstance(value, str) and len(value) > EXAMPLE_TEXT_MOST:
        return value[:EXAMPLE_TEXT_MOST] + "..."
    return value


def fields(path: str, schema: dict[str, Any], whole: Any) -> Iterator[tuple[str, Any, bool]]:
    """Every field below ``schema``: where it is, its own schema, whether it is always there."""
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        inner = resolved(inner, whole)
        where = f"{path}.{name}" if path else name
        yield where, inner, name in required
        items = resolved(inner.get("items", {}), whole)
        yield from fields(where, inner, whole)
        yield from fields(where + "[]", items, whole)


def resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with its local ``$ref`` followed."""
    here: Any = whole
    for part in schema.get("$ref", "#").removeprefix("#").split("/")[1:]:
        here = here[part]
    return {**here, **schema} if "$ref" in schema else schema


def type_words(schema: dict[str, Any]) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
