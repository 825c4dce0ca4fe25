"""guard.toml: each value that is right, each that is wrong, and the sentence that says so."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from seawall.formats import toml
from seawall.guard import config, entry
from seawall.guard.config import chosen_path, parse, read
from seawall.guard.handover import from_json, to_json
from seawall.guard.keys import BY_NAME, KEYS, example, toml_text
from seawall.guard.settings import START_ONLY, Settings
from seawall.problems import UsageProblem

# A value of each key that is not its default: as it is written, and what it becomes.
OTHER = {
    "mode": ('"enforce"', "enforce"),
    "scope": ('["/", "/a/b-c"]', ("/", "/a/b-c")),
    "protect": ('["shop/*", "/x"]', ("shop/*", "/x")),
    "unprotect": ('["lab/csi"]', ("lab/csi",)),
    "stalled": ('["/system.slice/nfs.service"]', ("/system.slice/nfs.service",)),
    "act_fraction": ("0.25", 0.25),
    "act_at_most": ('"1.5 GiB"', 1_610_612_736),
    "target_fraction": ("0", 0.0),
    "freeze_seconds": ("0.5", 0.5),
    "hold_suspects": ("false", False),
    "terminate_seconds": ("30", 30.0),
    "kills_per_minute": ("1", 1),
    "verify_seconds": ("9.5", 9.5),
    "over_limit": ('"clamp"', "clamp"),
    "over_limit_opt_in": ('["lab/*"]', ("lab/*",)),
    "over_limit_seconds": ("60", 60.0),
    "stuck": ("false", False),
    "stuck_seconds": ("600", 600.0),
    "tick_least_seconds": ("0.05", 0.05),
    "tick_most_seconds": ("10", 10.0),
    "self_test_seconds": ("60", 60.0),
    "watch": ("false", False),
    "pin": ('["node"]', ("node",)),
    "pin_at_most": ('"64 MiB"', 64 << 20),
    "pin_slices": ('["/system.slice"]', ("/system.slice",)),
    "blackbox": ('"/data/box"', "/data/box"),
    "blackbox_size": ('"1 GiB"', 1 << 30),
    "run_after_kill": ('"/usr/bin/told --page"', "/usr/bin/told --page"),
    "run_on_decision": ('"/usr/bin/page me"', "/usr/bin/page me"),
    "textfile": ('"/var/lib/x/seawall.prom"', "/var/lib/x/seawall.prom"),
    "termination_message": ("false", False),
    "kubelet_root": ('"/data/kubelet"', "/data/kubelet"),
    "job_output": ("false", False),
    "job_comment": ("true", True),
    "job_end_whole": ("true", True),
    "slurm_commands": ('"/opt/slurm/bin"', "/opt/slurm/bin"),
    "slurm_conf": ('"/etc/slurm/slurm.conf"', "/etc/slurm/slurm.conf"),
    "datagram_to": ('"10.0.0.9:5140"', "10.0.0.9:5140"),
    "pmsg": ("true", True),
    "rescue": ("true", True),
    "quarantine": ("true", True),
    "user_slices": ("true", True),
}
NEEDS = {"over_limit": 'over_limit_opt_in = ["lab/*"]\n'}


def parsed(text: str) -> Settings:
    return parse(text.encode(), "G")


def run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd="/", env={}, capture_output=True, text=True, timeout=30, check=False
    )


def problem(text: str) -> str:
    with pytest.raises(UsageProblem) as told:
        parsed(text)
    return str(told.value)


def test_every_setting_has_one_key_and_a_sentence() -> None:
    # Boxes hold settings by place, so a new one comes last there and beside its like here.
    assert sorted(key.field for key in KEYS) == sorted(Settings._fields)
    assert len(BY_NAME) == len(KEYS)
    assert all(key.sentence.endswith((".", "v2).")) for key in KEYS)
    assert set(OTHER) == set(BY_NAME)


@pytest.mark.parametrize("name", OTHER)
def test_a_key_is_read_and_handed_on(name: str) -> None:
    text, value = OTHER[name]
    settings = parsed(f"{NEEDS.get(name, '')}{name} = {text}\n")
    assert getattr(settings, BY_NAME[name].field) == value
    assert value != BY_NAME[name].default
    assert from_json(to_json(settings)) == settings
    again = f"{NEEDS.get(name, '')}{name} = {toml_text(BY_NAME[name], value)}\n"
    assert parsed(again) == settings


def test_all_at_once() -> None:
    others = {name: told for name, told in OTHER.items() if name != "watch"}  # names want it
    settings = parsed("".join(f"{name} = {text}\n" for name, (text, _) in others.items()))
    values = {BY_NAME[name].field: value for name, (_, value) in OTHER.items()}
    assert settings == Settings(**values)._replace(watch=True)
    assert from_json(to_json(settings)) == settings


def test_what_is_read_at_the_start_only_says_so() -> None:
    said = {key.field: key.name for key in KEYS if "Read at the start only." in key.sentence}
    assert said == START_ONLY


def test_the_example_is_the_defaults_and_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "packaging/guard.toml").read_text()
    assert page == example()
    assert parsed(page) == Settings()
    lines = [line for line in page.splitlines() if line and not line.startswith("# ")]
    bare = "\n".join(line.removeprefix("#") for line in lines)
    assert set(toml.loads(bare)) == set(BY_NAME)
    assert parsed(bare) == Settings()
    assert max(map(len, page.splitlines())) <= 100


WRONG = {
    "mode = true": 'G:1: mode: expected "observe" or "enforce", found true',
    'mode = "Enforce"': 'G:1: mode: expected "observe" or "enforce", found "Enforce"',
    "\n\nfreeze_secnds = 1": "G:3: freeze_secnds: no such key; did you mean freeze_seconds?",
    "xyz = 1": "G:1: xyz: no such key",
    "stuck = 1": "G:1: stuck: expected true or false, found 1",
    "freeze_seconds = 3": "G:1: freeze_seconds: expected seconds from 0 to 2, found 3",
    "freeze_seconds = -1": "G:1: freeze_seconds: expected seconds from 0 to 2, found -1",
    "freeze_seconds = nan": "G:1: freeze_seconds: expected seconds from 0 to 2, found nan",
    'freeze_seconds = "1 s"': 'G:1: freeze_seconds: expected seconds from 0 to 2, found "1 s"',
    "act_fraction = 6": "G:1: act_fraction: expected a share from 0.005 to 0.5 (0.06 is 6 %), "
    "found 6",
    "act_fraction = true": "G:1: act_fraction: expected a share from 0.005 to 0.5 (0.06 is 6 %), "
    "found true",
    'act_at_most = "2 GB"': "G:1: act_at_most: expected bytes or a size such as "
    '"2 GiB", from 16 MiB to 1 TiB, found "2 GB"',
    "act_at_most = 1.5": "G:1: act_at_most: expected bytes or a size such as "
    '"2 GiB", from 16 MiB to 1 TiB, found 1.5',
    "act_at_most = 4096": "G:1: act_at_most: expected bytes or a size such as "
    '"2 GiB", from 16 MiB to 1 TiB, found 4096',
    "kills_per_minute = 2.5": "G:1: kills_per_minute: expected a whole number from 1 to 60, "
    "found 2.5",
    "kills_per_minute = 0": "G:1: kills_per_minute: expected a whole number from 1 to 60, found 0",
    'scope = "/kubepods"': "G:1: scope: expected a list of cgroup paths such as "
    '["/kubepods.slice"], without "*", found "/kubepods"',
    "scope = []": "G:1: scope: expected a list of cgroup paths such as "
    '["/kubepods.slice"], without "*", found an empty list',
    'scope = ["/a/../b"]': "G:1: scope: expected a list of cgroup paths such as "
    '["/kubepods.slice"], without "*", found "/a/../b" in it',
    'scope = ["/a/"]': "G:1: scope: expected a list of cgroup paths such as "
    '["/kubepods.slice"], without "*", found "/a/" in it',
    'scope = ["/*"]': "G:1: scope: expected a list of cgroup paths such as "
    '["/kubepods.slice"], without "*", found "/*" in it',
    "protect = [1]": "G:1: protect: expected a list of names or cgroup paths such as "
    '["shop/*", "/system.slice/x.service"], found 1 in it',
    'protect = [" "]': "G:1: protect: expected a list of names or cgroup paths such as "
    '["shop/*", "/system.slice/x.service"], found " " in it',
    'protect = [" shop/db"]': "G:1: protect: expected a list of names or cgroup paths such as "
    '["shop/*", "/system.slice/x.service"], found " shop/db" in it, with blanks around it',
    'protect = ["system.slice/x.service"]': "G:1: protect: expected a list of names or cgroup "
    'paths such as ["shop/*", "/system.slice/x.service"], found "system.slice/x.service" in it: a '
    'cgroup path begins with "/"',
    'stalled = ["/a\\u0000.service"]': "G:1: stalled: expected a list of cgroup paths such as "
    '["/system.slice/x.service"], without "*", found "/a\\u0000.service" in it, with a NUL',
    f"act_fraction = 1{'0' * 400}": "G:1: act_fraction: expected a share from 0.005 to 0.5 (0.06 "
    f"is 6 %), found 1{'0' * 57}..",
    f"kills_per_minute = 0x{'f' * 4000}": "G:1: kills_per_minute: expected a whole number from 1 "
    "to 60, found a number of thousands of digits",
    f"stuck = [0x{'f' * 4000}]": "G:1: stuck: expected true or false, found a number of thousands "
    "of digits",
    'stalled = ["shop/*"]': "G:1: stalled: expected a list of cgroup paths such as "
    '["/system.slice/x.service"], without "*", found "shop/*" in it',
    'watch = false\nprotect = ["/a", "shop/*"]': "G:2: protect: expected cgroup paths, for with "
    'watch = false nobody tells the names of pods; found "shop/*"',
    'run_after_kill = "told"': "G:1: run_after_kill: expected a command with its whole path such "
    'as "/usr/local/bin/told --page", or "", found "told"',
    'run_after_kill = "/bin/x \'y"': "G:1: run_after_kill: expected a command with its whole path "
    'such as "/usr/local/bin/told --page", or "", found "/bin/x \'y", whose quotes do not end',
    'kubelet_root = "/data/../etc"': "G:1: kubelet_root: expected a whole path such as "
    '"/data/kubelet", or "", found "/data/../etc"',
    'textfile = "/x/seawall.txt"': "G:1: textfile: expected a whole path that ends with .prom "
    '(the collector reads no other), or "", found "/x/seawall.txt"',
    'datagram_to = "log.example:5140"': "G:1: datagram_to: expected an address and a port such as "
    '"10.0.0.9:5140" or "[fd00::9]:5140", or "", found "log.example:5140"',
    'datagram_to = "10.0.0.9:0"': "G:1: datagram_to: expected an address and a port such as "
    '"10.0.0.9:5140" or "[fd00::9]:5140", or "", found "10.0.0.9:0"',
    'datagram_to = "fd00::9:5140"': "G:1: datagram_to: expected an address and a port such as "
    '"10.0.0.9:5140" or "[fd00::9]:5140", or "", found "fd00::9:5140"',
    'watch = true\n[over]\nmode = "enforce"': "G:2: over: no sections here: write mode = ... "
    "without [over] above it",
    "[over]\nx = 1": "G:1: over: no such key",
    "mode = ": "G:1: expected TOML: Invalid value (at end of document)",
    "mode = observe\n": "G:1: expected TOML: Invalid value, column 8",
    'mode = "observe"\nmode = "enforce"': "G:2: expected TOML: a key stands there twice (at end of "
    "document)",
    'mode = "observe"\nmode = "enforce"\n#': "G:2: expected TOML: a key stands there "
    "twice, column 17",
    'over_limit = "kill"': "G:1: over_limit: kill holds only for whom over_limit_opt_in names, "
    'and it names nobody; expected over_limit_opt_in = ["NAMESPACE/*"] too',
    "tick_most_seconds = 0.2\ntick_least_seconds = 1": "G:2: tick_least_seconds: expected at most "
    "tick_most_seconds (0.2), found 1",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text.strip()[:40])
def test_what_is_wrong_is_said_with_place_and_expectation(text: str) -> None:
    assert problem(text) == WRONG[text]


def test_what_is_no_text_at_all() -> None:
    with pytest.raises(UsageProblem, match=r"\AG:2: expected UTF-8, found another encoding\Z"):
        parse(b'mode = "observe"\n# \xff\n', "G")


def test_addresses_that_are_right() -> None:
    assert parsed('datagram_to = "[fd00::9]:65535"').datagram_to == "[fd00::9]:65535"
    assert parsed('datagram_to = ""').datagram_to == ""


def test_a_unit_of_a_user_may_be_named_as_it_is_printed() -> None:
    text = 'protect = ["unit:user@1000.service/app.service", "kubelet.service"]'
    assert parsed(text).protect == ("unit:user@1000.service/app.service", "kubelet.service")


def test_sizes() -> None:
    assert parsed("act_at_most = 2147483648").act_at_most_bytes == 2147483648
    assert parsed('act_at_most = "512MiB"').act_at_most_bytes == 536870912
    assert parsed('act_at_most = "33554432"').act_at_most_bytes == 33554432


def test_which_file_counts() -> None:
    both = {"SEAWALL_CONFIG": "/b"}
    assert chosen_path("/a", both) == "/a"
    assert chosen_path(None, both) == "/b"
    assert chosen_path(None, {}) == "/etc/seawall/guard.toml"


def test_only_the_file_that_nobody_named_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "guard.toml")
    with pytest.raises(UsageProblem, match=f"{path}: no such file"):
        read(path)
    monkeypatch.setattr(config, "PATH", path)
    assert read(path) == Settings()
    assert read(path).mode == "observe"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "guard.toml"
    path.write_text('mode = "enforce"\n')
    path.chmod(mode)
    with pytest.raises(UsageProblem) as told:
        read(str(path))
    assert str(told.value) == (
        f"{path}: others may write this file, and it can turn killing on: expected owner root "
        f"and no write bit for group and others, found mode {mode:04o}; mend with: "
        f"chown root {path} && chmod go-w {path}"
    )
    path.chmod(0o644)
    assert read(str(path)).mode == "enforce"


@pytest.mark.system
@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root: make test-system")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text("")
    path.chmod(0o644)
    os.chown(path, 65534, 65534)
    with pytest.raises(UsageProblem, match="found owner 65534"):
        read(str(path))


def test_what_is_no_ordinary_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "guard.toml"
    os.mkfifo(pipe, 0o600)
    for path in (pipe, tmp_path):
        with pytest.raises(UsageProblem, match="expected a file"):
            read(str(path))
    large = tmp_path / "large"
    large.write_bytes(b"#" * 300_000)
    large.chmod(0o600)
    with pytest.raises(UsageProblem, match="expected at most 262,144 bytes, found more"):
        read(str(large))


def test_the_child_that_reads_says_json_or_a_sentence(tmp_path: Path) -> None:
    """As the launcher and, at SIGHUP, the aide start it: without environment or site-packages."""
    path = tmp_path / "guard.toml"
    path.write_text('kills_per_minute = 3\nprotect = ["\\u00e9/*"]\n')
    path.chmod(stat.S_IRUSR)
    argv = entry.config_argv(str(path))
    assert argv[1:3] == ["-I", "-S"]
    done = run(argv)
    assert (done.returncode, done.stderr) == (0, "")
    assert from_json(done.stdout) == Settings(kills_per_minute=3, protect=("é/*",))
    path.chmod(0o600)
    path.write_text("kills_per_minute = 99\n")
    done = run(argv)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == (
        f"{path}:1: kills_per_minute: expected a whole number from 1 to 60, found 99\n"
    )
