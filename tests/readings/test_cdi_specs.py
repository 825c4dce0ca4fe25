"""CDI specs in JSON and in the part of YAML that their writers use."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import CaseHost
from tests.readings.device_samples import CDI_JSON, CDI_NEW, CDI_OLD

from seawall.host.host import Unread
from seawall.host.recording import Round
from seawall.problems import ParseProblem
from seawall.readings import cdi_specs
from seawall.readings.cdi_specs import CdiNode, CdiSpecs, parse
from seawall.readings.cdi_yaml import load


def node(path: str, major: int | None = None, minor: int | None = None) -> CdiNode:
    return CdiNode(path, path, major, minor)


def test_yaml_of_today() -> None:
    """Its writer leaves out what is 0: nvidia-uvm has minor 0, and says so nowhere."""
    found = parse(CDI_NEW)
    assert found.kind == "nvidia.com/gpu"
    assert found.common == (
        node("/dev/nvidia-uvm", 234, 0), node("/dev/nvidia-uvm-tools", 234, 1),
        node("/dev/nvidiactl", 195, 255),
    )  # fmt: skip
    assert found.devices == {
        "0": (node("/dev/nvidia0", 195, 0), node("/dev/dri/renderD128", 226, 128)),
        "all": (node("/dev/nvidia0", 195, 0),),
    }


def test_yaml_of_before() -> None:
    found = parse(CDI_OLD)
    assert found.common == (
        node("/dev/nvidia-modeset"), CdiNode("/dev/nvidiactl", "/driver/dev/nvidiactl", None, None),
    )  # fmt: skip
    assert found.devices == {"0": (node("/dev/nvidia0"),)}


def test_json() -> None:
    found = parse(CDI_JSON)
    assert (found.kind, found.common) == ("amd.com/gpu", (node("/dev/kfd", 511, 0),))
    assert found.devices == {"0": (node("/dev/dri/renderD128"),)}


def read(files: dict[str, bytes | Unread]) -> CdiSpecs:
    found = cdi_specs.read(CaseHost(Round(files=files)))
    assert isinstance(found, CdiSpecs)
    return found


def test_each_folder_once() -> None:
    found = read({
        "/etc/cdi/a.yaml": CDI_OLD, "/etc/cdi/README": b"", "/etc/cdi/b.yaml.bak": CDI_OLD,
        "/var/run/cdi/nvidia.yaml": CDI_NEW, "/run/cdi/nvidia.yaml": CDI_NEW,
    })  # fmt: skip
    assert [spec.source for spec in found.specs] == ["/etc/cdi/a.yaml", "/var/run/cdi/nvidia.yaml"]
    only = read({"/run/cdi/amd.json": CDI_JSON})
    assert [spec.source for spec in only.specs] == ["/run/cdi/amd.json"]
    assert read({}) == CdiSpecs(())


def test_a_spec_that_cannot_be_read_hides_no_other() -> None:
    refused = Unread("/etc/cdi/a.json", "refused")
    found = read({
        "/etc/cdi/a.json": refused, "/etc/cdi/b.json": CDI_JSON, "/etc/cdi/c.yaml": b"a: &x 1\n",
    })  # fmt: skip
    assert [spec.source for spec in found.specs] == ["/etc/cdi/b.json"]
    assert [(one.path, one.why) for one in found.unread] == [
        ("/etc/cdi/a.json", "refused"), ("/etc/cdi/c.yaml", "malformed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [b"", b"7", b"[]", b"{}", b"kind: gpu\n", b"kind:\n", b"kind: a/b\ndevices: {}\n",
     b'{"kind": "a/b", "devices": [{}]}', b'{"kind": "a/b", "devices": [{"name": "x"}, 7]}',
     b'{"kind": "a/b", "devices": [{"name": "x"}, {"name": "x"}]}',
     b'{"kind": "a/b", "containerEdits": []}', b'{"kind": "a/b", "containerEdits": 7}',
     b'{"kind": "a/b", "containerEdits": {"deviceNodes": [{"path": "dev"}]}}',
     b'{"kind": "a/b", "containerEdits": {"deviceNodes": [{"path": "/d", "major": "x"}]}}',
     b'{"kind": "a/b", "containerEdits": {"deviceNodes": [{"path": "/d", "major": -1}]}}',
     b"kind: a/b\ncontainerEdits:\n  deviceNodes:\n  - path: /d\n    major: 0x10\n"],
)  # fmt: skip
def test_what_is_no_spec(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)


def test_no_yaml_is_loaded_where_no_spec_is_yaml() -> None:
    code = (
        "import sys; from seawall.readings.cdi_specs import parse; parse(sys.stdin.buffer.read());"
        "print([name for name in sys.modules if 'yaml' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], input=CDI_JSON, capture_output=True,
                          env={"PYTHONPATH": "src"}, check=True)  # fmt: skip
    assert done.stdout == b"[]\n"


# --- YAML -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"a: 1 # one\n# two\nb: 'it''s'\n", {"a": "1", "b": "it's"}),
        (b'"k": "\\u00e9\\n"\n', {"k": "\u00e9\n"}),
        (b"a:\n- x\n-\n- - y\n  - z\nb: ~\n", {"a": ["x", None, ["y", "z"]], "b": None}),
        (b"a: []\nb: {}\nc: [ro, b/c]\n", {"a": [], "b": {}, "c": ["ro", "b/c"]}),
        (b"- --link\n- a::b\n- -1\n- x#y\n", ["--link", "a::b", "-1", "x#y"]),
        (b"a:\n  b:\n    c: d\ne: f\r\n", {"a": {"b": {"c": "d"}}, "e": "f"}),
        (b"---\n\n  - a: 1\n    b:\n    - 2\n  - 3\n", [{"a": "1", "b": ["2"]}, "3"]),
        (b"? a\n: b\n", {"a": "b"}),
        (b'a: [x, [y], {z: ~}]\nb: "\\x41"\n', {"a": ["x", ["y"], {"z": None}], "b": "A"}),
    ],
)
def test_yaml_that_is_read(data: bytes, value: object) -> None:
    assert load(data) == value


@pytest.mark.parametrize(
    "data",
    [b"a: |\n  b\n", b"a: >-\n  b\n", b"a: &x b\n", b"a: *x\n", b"a: !!str b\n",
     b"a: b\n  c\n", b"- a\n  b\n", b"a: 1\na: 2\n", b"a:\tb\n", b"\ta: b\n", b"a: b\n---\nc: d\n",
     b"a: 1\n- b\n", b"a: 'b\n  c'\n", b'a: "b" c\n',
     b"a: b: c\n", b"  a: 1\nb: 2\n", b"a:\n    b: 1\n  c: 2\n", b"\xff: 1\n", b"a: \x1b[31m\n",
     b"%YAML 1.2\n", b"- " * 40 + b"a\n", b"a: @b\n", b"a: `b\n", b"<<: *x\n",
     b"...\n", b'a: "\\UFFFFFFFF"\n', b"%YAML 1." + b"1" * 5000 + b"\n--- a\n",
     b"[" * 30 + b"]" * 30, b"? [a]\n: b\n", b"~: a\n", b"a: 1\n" * 60_000],
)  # fmt: skip
def test_yaml_that_is_refused_and_not_guessed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        load(data)


@given(st.data())
def test_a_damaged_spec_gives_only_values_that_stand_in_it(data: st.DataObject) -> None:
    """A reader that guesses would join lines or invent words."""
    spec = bytearray(data.draw(st.sampled_from([CDI_NEW, CDI_OLD])))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(spec) - 1))
        spec[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from([b"", b" ", b"\n", b"-", b": ", b"'", b'"', b"#", b"[", b"- ", b"\t"])
        )
    try:
        found = parse(bytes(spec))
    except ParseProblem:
        return
    for one in (*found.common, *(node for nodes in found.devices.values() for node in nodes)):
        assert one.path.encode() in spec
        assert one.major is None or str(one.major).encode() in spec
