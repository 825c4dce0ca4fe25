"""No test reads what another room keeps to itself: it would hold that room to how it is made."""

import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src/seawall"
BOUND = re.compile(r"(?:\b(?:def|class) |\b(?:self|cls)\.|^)(_[a-zA-Z]\w*)", re.MULTILINE)
READ = re.compile(
    r"(?<!\bself)(?<!\bcls)(?<!\bsuper\(\))\.(_[a-zA-Z]\w*)|etattr\([^,\n]+, \"(_[a-zA-Z]\w*)\""
)
IMPORTED = re.compile(r"^ *from seawall[\w.]* import (\([^)]*\)|[^\n#]*)", re.MULTILINE)
OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def bound(folder: Path) -> dict[str, set[str]]:
    """Private name -> rooms (folders, or modules beside them) that have something so named."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for path in folder.rglob("*.py"):
        if "_vendor" not in path.parts:
            room = path.relative_to(folder).with_suffix("").parts[0]
            for name in BOUND.findall(path.read_text()):
                rooms[name].add(room)
    return rooms


def read(text: str) -> set[str]:
    names = {one for pair in READ.findall(text) for one in pair if one}
    for words in IMPORTED.findall(text):
        names |= set(re.findall(r"\b_[a-zA-Z]\w*", words))
    return names - OF_NAMED_TUPLES


def strangers(source: Path, tests: Path) -> list[str]:
    ours, theirs = bound(tests), bound(source)
    found = []
    for path in sorted(tests.rglob("*.py")):
        room = path.relative_to(tests).with_suffix("").parts[0]
        for name in sorted(read(path.read_text())):
            homes = theirs.get(name, set())
            if homes and room not in homes and room not in ours.get(name, set()):
                found.append(f"{path.relative_to(tests)}: {name} of {', '.join(sorted(homes))}")
    return found


def test_no_test_reads_private_names_of_another_room() -> None:
    assert len(bound(SOURCE)) > 1000
    assert strangers(SOURCE, TESTS) == []


def test_such_a_read_is_seen(tmp_path: Path) -> None:
    """An attribute, an import and a name that is set; of the own room, or of a test's own, none."""
    for name, text in {
        "src/host/live.py": "class Live:\n    def f(self):\n        self._fd = 1\n_MOST = 1\n",
        "src/host/other.py": "def _open(): pass\n",
        "tests/host/test_live.py": "live._fd\n",
        "tests/guard/test_one.py": "live._fd\nfrom seawall.host.live import (\n    _MOST,\n)\n",
        "tests/guard/test_two.py": 'patch.setattr(other, "_open", None)\nmade._replace(a=1)\n',
        "tests/views/test_three.py": "class Own:\n    def _open(self): pass\nOwn()._open\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert strangers(tmp_path / "src", tmp_path / "tests") == [
        "guard/test_one.py: _MOST of host",
        "guard/test_one.py: _fd of host",
        "guard/test_two.py: _open of host",
    ]
