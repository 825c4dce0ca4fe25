"""docs/guard.md: its commands do what it says, and it names every metric."""

import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.architecture.manifest import PACKAGING, manifest

from seawall.guard.tell.textfile import METRICS, render

PAGE = (PACKAGING.parent / "docs/guard.md").read_text()


def block(language: str, word: str) -> str:
    """The one block of the page that has this word."""
    (found,) = [b for b in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in b]
    return str(found)


# --- installing ------------------------------------------------------------------------------


def install(root: Path, python: str) -> subprocess.CompletedProcess[str]:
    """The lines of the page, with /usr and /etc below ``root``, and no systemd."""
    lines = block("sh", "compileall").replace("P=/usr/bin/python3\n", f"P={python}\n")
    lines = re.sub(r"(?<=[ \"])/(usr|etc)/", rf"{root}/\1/", lines)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    done = f'systemctl() {{ echo "systemctl $*"; }}\n{lines}'
    return subprocess.run(
        ["sh", "-c", done], cwd=PACKAGING.parent, capture_output=True, text=True, check=False
    )


def test_the_lines_install_and_upgrade(tmp_path: Path) -> None:
    done = install(tmp_path, sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "systemctl daemon-reload\nsystemctl enable --now seawall-guard\n"
    program, code = tmp_path / "usr/bin/seawall", tmp_path / "usr/lib/seawall/seawall"
    assert program.read_text().splitlines()[0] == f"#!{sys.executable} -IS"
    assert program.stat().st_mode & 0o777 == 0o755
    assert any(code.glob(f"__pycache__/version.{sys.implementation.cache_tag}.pyc"))
    config = tmp_path / "etc/seawall/guard.toml"
    assert stat.S_IMODE(config.stat().st_mode) == 0o644
    config.write_text("# mine\n")
    (code / "gone.py").touch()
    program.write_text("old")
    done = install(tmp_path, sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert config.read_text() == "# mine\n", "an upgrade leaves it alone"
    assert not (code / "gone.py").exists()
    assert program.read_text().startswith(f"#!{sys.executable} ")


def test_with_an_old_python_nothing_is_installed(tmp_path: Path) -> None:
    """As /usr/bin/python3 of RHEL 8 is."""
    old = tmp_path / "python3"
    pretend = "import sys; sys.version_info = (3, 6)"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{pretend}\n$2"\n')
    old.chmod(0o755)
    done = install(tmp_path, str(old))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "too old: let P name another one\n"
    assert not (tmp_path / "usr/lib").exists()


def test_no_command_trusts_in_the_systems_python() -> None:
    for lines in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        assert not re.search(r"(^|[|(;&] *)python3 ", lines, re.MULTILINE)


# --- a few nodes first -----------------------------------------------------------------------


def test_the_canarys_manifest_is_of_its_own(tmp_path: Path) -> None:
    """Other names, and never on a node of the first one."""
    (tmp_path / "packaging").symlink_to(PACKAGING)
    command, _, _ = block("sh", "canary.yaml").partition("kubectl")
    subprocess.run(["sh", "-e", "-c", command], cwd=tmp_path, check=True)
    first, canary = manifest(), manifest(tmp_path / "canary.yaml")
    for kind in ("ConfigMap", "DaemonSet"):
        names = [one[kind]["metadata"]["name"] for one in (first, canary)]
        assert names == ["seawall-guard", "seawall-guard-canary"]
    for one, name in ((first, "seawall-guard"), (canary, "seawall-guard-canary")):
        spec = one["DaemonSet"]["spec"]
        labels = {"app.kubernetes.io/name": name}
        assert spec["selector"]["matchLabels"] == labels
        assert spec["template"]["metadata"]["labels"] == labels
        volumes = spec["template"]["spec"]["volumes"]
        assert [v["configMap"]["name"] for v in volumes if "configMap" in v] == [name]
    assert 'mode = "enforce"' in canary["ConfigMap"]["data"]["guard.toml"]
    terms = [
        one["DaemonSet"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
        for one in (first, canary)
    ]
    pool = {"key": "seawall/pool", "values": ["canary"]}
    assert terms == [
        [{"matchExpressions": [pool | {"operator": operator}]}] for operator in ("NotIn", "In")
    ]
    assert "kubectl label node NODE seawall/pool=canary " in PAGE


# --- metrics ---------------------------------------------------------------------------------


def test_every_metric_is_on_the_page_with_its_unit() -> None:
    rows = dict(re.findall(r"^\| `(seawall_guard_\w+)[^|]*\| ([^|]+) \|", PAGE, re.MULTILINE))
    values = dict.fromkeys((metric.key for metric in METRICS), 1)
    families = re.findall(r"^# TYPE (\S+)", render(values), re.MULTILINE)
    assert sorted(rows) == sorted(families)
    for name, unit in rows.items():
        for word in ("bytes", "seconds"):
            assert (word in name) == (word in unit), name


@pytest.mark.system
def test_promtool_takes_the_alerts(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install --no-install-recommends prometheus")
    path = tmp_path / "rules.yml"
    path.write_text(block("yaml", "groups:"))
    done = subprocess.run(
        [promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    named = set(re.findall(r"seawall_guard_\w+", path.read_text()))
    assert named <= set(re.findall(r"`(seawall_guard_\w+)", PAGE))
