"""What Seawall says about the four published incidents, as a user runs it."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.verbs import Ran, rules_without
from tests.end_to_end.warm_verbs import seawall

INCIDENTS = Path(__file__).parents[2] / "docs/incidents"
GPU_NODE = "gpu-node-dies/bundle"
GPU_DEVICE = "gpu-device-missing/bundle"
GPU_DEVICE_FOUND = "gpu-device-missing/bundle-as-found"
HANG = "container-hangs/bundle.tar.gz"
CACHE = "page-cache/bundle"
CACHE_AT_LIMIT = "page-cache/bundle-at-the-limit"
ALL = (GPU_NODE, GPU_DEVICE, GPU_DEVICE_FOUND, HANG, CACHE, CACHE_AT_LIMIT)
GIB = 1 << 30
MIB = 1 << 20


@cache
def asked(verb: str, bundle: str, *options: str) -> Ran:
    return seawall(verb, "--from", str(INCIDENTS / bundle), *options).answered()


def document(bundle: str, verb: str = "why") -> dict[str, Any]:
    return asked(verb, bundle, "--json").document


def finding(bundle: str, rule_id: str) -> dict[str, Any]:
    """The one finding of a rule about this machine."""
    found = [f for f in document(bundle)["findings"] if f["id"] == rule_id]
    assert len(found) == 1, [f["headline"] for f in found]
    return dict(found[0])


def firing(bundle: str) -> dict[str, str]:
    """Rule id -> severity of all that fires."""
    findings = document(bundle)["findings"]
    return {f["id"]: f["severity"] for f in findings if f["verdict"] == "fires"}


def value(item: dict[str, Any], pattern: str) -> float:
    """The value of the first evidence whose name or source has the pattern."""
    for row in item["evidence"]:
        if re.search(pattern, row["name"]) or re.search(pattern, row["source"]):
            return float(row["value"])
    raise AssertionError(f"no evidence like {pattern!r}: {item['evidence']}")


def prose(bundle: str, verb: str = "why") -> str:
    """The text as one line, so that a sentence is found wherever it was broken."""
    whole = ["--whole"] if verb == "why" else []
    return re.sub(r"\s+", " ", asked(verb, bundle, *whole).text)


# --- the GPU node ----------------------------------------------------------------------


def test_gpu_node_residual_is_what_no_counter_explains() -> None:
    item = finding(GPU_NODE, "SW101")
    assert item["verdict"] == "fires"
    assert value(item, "MemTotal less") == pytest.approx(33.77 * GIB, abs=0.01 * GIB)
    assert "33.8 GiB of 60.7 GiB" in item["headline"]


def test_gpu_node_driver_is_named_with_its_bound() -> None:
    item = finding(GPU_NODE, "SW103")
    assert (item["verdict"], item["severity"]) == ("fires", "critical")
    assert value(item, "^objects of nvidia_pte_cache") == 8_650_926
    assert value(item, "objects x page size") == 8_650_926 * 4096
    assert re.search(r"33\.0 GiB .*NVIDIA driver.*33\.8 GiB", item["headline"])


def test_gpu_node_text_has_the_three_numbers_and_what_they_miss() -> None:
    text = prose(GPU_NODE)
    assert "33.8 GiB" in text
    assert "33.0 GiB" in text
    assert "8,231,127 pages = 31.4 GiB" in text  # from the bundle's notes: no file holds it
    assert "uncounted memory" in text
    assert "only registered" in text  # the bound has too much
    assert "before it began" in text  # a trace has too little
    assert "No cgroup counts" in text


def test_gpu_node_traced_number_is_in_json_too() -> None:
    notes = document(GPU_NODE)["bundle_notes"]
    assert any("31.4 GiB" in note and "not subtracted" in note for note in notes)


def test_gpu_node_says_why_no_oom_kill_came() -> None:
    item = finding(GPU_NODE, "SW112")
    assert (item["verdict"], item["severity"]) == ("fires", "critical")
    words = item["headline"] + " " + item["outlook"]
    assert "33.8 GiB" in words
    assert "min watermark" in words
    assert "Code of running programs is dropped and read back" in words
    # 63596320 - (27100712 + 26580 + 852 - 9076) kB: what the kubelet believes to be there.
    kubelet = (63596320 - (27100712 + 26580 + 852 - 9076)) * 1024
    assert value(item, "kubelet") == pytest.approx(kubelet, abs=GIB / 100)


def test_gpu_node_storm_names_its_victims_as_victims() -> None:
    item = finding(GPU_NODE, "SW111")
    assert (item["verdict"], item["severity"]) == ("fires", "critical")
    assert value(item, r"kubelet \(pid 2190\)") == pytest.approx(21_400 / 3, rel=0.01)
    assert "victims, not the cause" in " ".join(item["remedy"])


def test_gpu_node_blames_no_workload_for_the_drivers_memory() -> None:
    """Nothing in the bundle tells whose the driver's pages are."""
    for rule_id in ("SW101", "SW103", "SW112"):
        assert finding(GPU_NODE, rule_id)["workload"] is None


def test_gpu_node_ledger_adds_up() -> None:
    page = document(GPU_NODE, "memory")
    assert page["total_bytes"] == 63596320 * 1024
    lines = sum(line["bytes"] for line in page["lines"])
    assert lines + page["residual_bytes"] == page["total_bytes"]
    assert page["residual_bytes"] == pytest.approx(33.77 * GIB, abs=0.01 * GIB)
    # VmallocUsed reads 0 on this kernel: unknown, so the error holds it.
    assert page["residual_error_bytes"] > GIB // 2


def test_gpu_node_claims_name_the_driver_and_no_pod() -> None:
    """The slab cache bounds what the driver has; whose it is, no file of that node told."""
    page = document(GPU_NODE, "memory")
    (claim,) = page["claims"]
    assert (claim["holder"], claim["workload"]) == ("the NVIDIA driver", None)
    assert (claim["confidence"], claim["least_bytes"]) == ("bound", 0)
    assert claim["most_bytes"] == 8_650_926 * 4096
    assert page["unexplained_bytes"] == page["residual_bytes"]  # a bound explains nothing
    assert page["unexplained_least_bytes"] == 0
    assert "uncounted_bytes" in page["unread"]  # it has no sockets and no holders of files
    assert page["uncounted_least_bytes"] == 0
    assert page["suspects"] == []
    text = prose(GPU_NODE, "memory")
    assert "at most 33.0 GiB: the NVIDIA driver" in text
    assert "Held by nobody known: 33.8 GiB of 33.8 GiB" in text


def test_gpu_node_says_that_nobody_can_be_named() -> None:
    item = finding(GPU_NODE, "SW122")
    assert (item["verdict"], item["severity"], item["workload"]) == ("fires", "info", None)
    assert (
        "nobody who can be named, at most 33.0 GiB of it by the NVIDIA driver" in item["headline"]
    )
    assert "seawall memory --who" in item["remedy"][0]
    assert not {"SW120", "SW121", "SW211"} & firing(GPU_NODE).keys()


# --- the missing device ----------------------------------------------------------------


def test_missing_device_is_read_and_not_called_healthy() -> None:
    page = document(GPU_DEVICE)
    blind = {f["id"] for f in page["findings"] if f["verdict"] == "blind"}
    assert {"SW101", "SW103", "SW110"} <= blind
    assert any("/proc/meminfo" in row["why"] for row in page["could_not_see"])


def test_missing_device_as_found_is_f1_and_the_plugin_is_named() -> None:
    assert {"SW401", "SW403"} == {
        rule for rule, severity in firing(GPU_DEVICE_FOUND).items() if severity == "critical"
    }
    page = document(GPU_DEVICE_FOUND, "gpu")
    (one,) = page["containers"]
    told = one["diagnosis"]
    assert told["mode"] == "F1"
    assert "/dev/nvidia-uvm (c 237:0) was never given" in told["headline"]
    assert "nvidia-device-plugin-daemonset-x7k2p" in told["cause"]
    assert told["remedy"].startswith("Restart the plugin pod")
    assert "then recreate the pods" in told["remedy"]
    broken = {row["path"]: (row["broken_at"], row["errno"]) for row in one["devices"]}
    assert broken == {
        "/dev/nvidia-uvm": ("configured", 1), "/dev/nvidia1": (None, 0), "/dev/nvidiactl": (None, 0)
    }  # fmt: skip
    assert page["plugin"][0]["lacks"] == ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]


def test_missing_device_repaired_by_hand_will_be_taken_away() -> None:
    assert firing(GPU_DEVICE) == {"SW403": "critical", "SW404": "warning"}
    page = document(GPU_DEVICE, "gpu")
    assert page["containers"][0]["diagnosis"] is None
    (soon,) = [row for row in page["about_to_break"] if row["workload"] == "train/job-0/main"]
    assert (soon["device"], soon["when"]) == ("/dev/nvidia-uvm", "the next update of the container")
    (last,) = page["at_last_moment"]
    assert (page["moments"], last["workload"], last["mode"]) == (2, "train/job-0/main", "F1")
    assert last["words"].endswith("a repair by hand was undone (F7)")


def test_missing_device_is_gone_five_seconds_after_the_repair() -> None:
    one = next((INCIDENTS / GPU_DEVICE / "1").rglob("devices.list")).read_text().splitlines()
    two = next((INCIDENTS / GPU_DEVICE / "2").rglob("devices.list")).read_text().splitlines()
    assert one == [*two, "c 237:0 rw"]
    assert len(two) == 14


# --- the container that hangs ----------------------------------------------------------


def test_hanging_container_is_stuck_and_its_processes_tie() -> None:
    item = finding(HANG, "SW203")
    assert (item["verdict"], item["severity"]) == ("fires", "critical")
    assert item["workload"] == "container:d96a8ea034f0"
    assert value(item, "memory.usage_in_bytes$") == 8 * GIB
    assert value(item, "memory.failcnt$") == pytest.approx(41_000, rel=0.01)
    assert value(item, "^processes$") == 1284
    assert "OOM score is 1 for all" in item["headline"]


def test_hanging_container_leaves_the_node_alone() -> None:
    fires = firing(HANG)
    assert not {"SW101", "SW103", "SW110", "SW111", "SW112"} & fires.keys(), fires
    assert "the node is not short" in finding(HANG, "SW113")["headline"]


# --- page cache ------------------------------------------------------------------------


def test_page_cache_is_no_leak() -> None:
    assert firing(CACHE) == {"SW201": "info"}
    item = finding(CACHE, "SW201")
    assert "not a leak" in item["headline"]
    assert item["workload"] == "kubeflow/jupyter-ningsheng-0kctiqfg/notebook"
    assert value(item, "file pages that can be dropped") == 1048981504 + 12390400


@pytest.mark.parametrize(
    ("tool", "shows"),
    [
        ("container_memory_usage_bytes", 1_710_297_088),
        ("container_memory_working_set_bytes", 1_710_297_088 - 1_048_981_504),
        ("container_memory_cache", 1_059_909_632),
        ("container_memory_rss", 546_828_288),
        (r"docker stats \(17.06", 1_710_297_088 - 1_059_909_632),
        (r"docker stats \(20.10", 1_710_297_088 - 1_048_981_504),
    ],
)
def test_page_cache_number_of_each_tool(tool: str, shows: int) -> None:
    assert value(finding(CACHE, "SW201"), tool) == shows


def test_page_cache_text_shows_each_tool_with_its_number() -> None:
    text = re.sub(r"\s+", " ", asked("why", CACHE, "--whole").text)
    assert "not a leak" in text
    assert "1.6 GiB container_memory_usage_bytes" in text
    assert "631 MiB container_memory_working_set_bytes" in text
    assert "620 MiB docker stats (17.06 to 19.03)" in text


def test_page_cache_agrees_with_what_docker_printed() -> None:
    """619.9 MiB, read at another moment than the files."""
    shown = value(finding(CACHE, "SW201"), r"docker stats \(17.06")
    assert shown == pytest.approx(619.9 * MIB, rel=0.001)


def test_hanging_container_in_pods_is_marked() -> None:
    text = prose(HANG, "pods")
    assert "container:d96a8ea034f0: at its limit" in text
    assert "OOM killer off" not in text  # it is on, and finds nobody worth it


def test_page_cache_in_pods() -> None:
    rows = {row["name"]: row for row in document(CACHE, "pods")["workloads"]}
    row = rows["kubeflow/jupyter-ningsheng-0kctiqfg/notebook"]
    assert row["limit_bytes"] == 8 * GIB
    assert row["charge_bytes"] == 1_710_297_088
    assert row["working_set_bytes"] == 661_315_584
    assert row["anon_bytes"] == 546_828_288
    assert row["namespace"] == "kubeflow"
    assert row["container"] == "notebook"


def test_page_cache_at_the_limit_is_still_no_leak() -> None:
    fires = firing(CACHE_AT_LIMIT)
    assert "SW201" in fires
    assert not {"SW202", "SW203", "SW207"} & fires.keys(), fires
    item = finding(CACHE_AT_LIMIT, "SW201")
    assert item["headline"].startswith("34.4 GiB of the 35.0 GiB")


# --- all of them -----------------------------------------------------------------------


@pytest.mark.parametrize("bundle", ALL)
def test_text_fits_into_80_columns(bundle: str) -> None:
    """Only what is there to be copied sticks out: a command, or a path that is one word."""
    commands = {line for f in document(bundle)["findings"] for line in f["confirm"]}
    for line in asked("why", bundle, "--whole").text.splitlines():
        has_long_word = max(map(len, line.split()), default=0) > 50
        is_command = line[10:] in commands or "$P" in line
        assert len(line) <= 80 or is_command or has_long_word, line
        assert line.isascii(), line


@pytest.mark.parametrize("bundle", ALL)
def test_view_ends_with_what_could_not_be_seen(bundle: str) -> None:
    text = asked("why", bundle, "--whole").text
    assert text.index("Could not see") > text.index("Linux")
    assert re.search(r"\d+ rules: \d+ fire, \d+ quiet, \d+ blind", text.splitlines()[-1])


@pytest.mark.parametrize("bundle", ALL)
def test_where_nothing_fires_it_is_said_of_the_rules_that_could_look(
    bundle: str, tmp_path: Path
) -> None:
    """Whatever fires there is muted: no clean bill for what the files do not tell."""
    (rules := tmp_path / "rules.toml").write_text(rules_without(firing(bundle)))
    page = asked("why", bundle, "--json", "--rules", str(rules)).document
    assert not [row for row in page["findings"] if row["verdict"] == "fires"]
    known = {row["id"] for row in page["findings"]}
    blind = {row["id"] for row in page["findings"] if row["verdict"] == "blind"}
    assert blind
    looked, most = len(known - blind), len(known)
    sentence = f"Nothing fires now in the {looked} of {most} rules that could look."
    if 2 * looked < most:
        sentence = f"Only {looked} of {most} rules could look; in those nothing fires now."
    screen = asked("why", bundle, "--rules", str(rules)).text.splitlines()
    assert screen[1] == sentence
    assert sentence in asked("why", bundle, "--whole", "--rules", str(rules)).text.splitlines()
    assert "Nothing fires now." not in "\n".join(screen)


@pytest.mark.parametrize("bundle", ALL)
def test_notes_of_the_bundle_come_first(bundle: str) -> None:
    manifest = asked("why", bundle, "--whole").text.splitlines()
    assert manifest[1] == "Noted with the record:"


@pytest.mark.parametrize("bundle", ALL)
def test_page_and_answer_tell_the_same_story(bundle: str) -> None:
    """Every rule that fires is on the incident's page, and no other with a number."""
    page = (INCIDENTS / bundle.partition("/")[0] / "README.md").read_text()
    named = set(re.findall(r"\bSW\d{3}\b", page))
    loud = {id_ for id_, severity in firing(bundle).items() if severity == "critical"}
    assert loud <= named, loud - named
