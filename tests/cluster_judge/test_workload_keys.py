"""The keys by which a workload is known again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.cluster.judge.workload_keys import PodIdentity, keys_of, stable_name

POD = PodIdentity(
    namespace="ml", root_owner_uid="4f5c", root_owner_name="train-20261128-x7k2p",
    image_digests=("sha256:aa", "sha256:5c"), commands=(("python", "train.py", "--seed=17"), ()),
    environment_names=("RANK", "HOME"), volume_kinds=("emptyDir",),
    resources=(("nvidia.com/gpu", "8"),), service_account="trainer",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        ("train-20261128-x7k2p", "train-#"),
        ("web-7d4b9c6f5d-x7k2p", "web"),
        ("job-0b2f4f6e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "job-#"),
        ("worker-12", "worker-#"),
        ("nginx", "nginx"),
        ("data-loader", "data-loader"),  # words have vowels
        ("x7k2p", "x#k#p"),
        ("", ""),
    ],
)
def test_stable_names(name: str, stable: str) -> None:
    assert stable_name(name) == stable


def test_a_new_name_hash_and_seed_change_the_first_key_alone() -> None:
    other = replace(
        POD, root_owner_uid="9e1d", root_owner_name="train-20261129-b9fzq",
        commands=(("python", "train.py", "--seed=4711"), ()), environment_names=("HOME", "RANK"),
    )  # fmt: skip
    one, two = keys_of(POD), keys_of(other)
    assert [key.level for key in one] == [1, 2, 3, 4]
    assert one[0] != two[0]
    assert one[1:] == two[1:]


@pytest.mark.parametrize(
    "change",
    [
        {"image_digests": ("sha256:aa", "sha256:5d")}, {"commands": (("python", "serve.py"), ())},
        {"service_account": "other"}, {"resources": (("nvidia.com/gpu", "4"),)},
    ],
)  # fmt: skip
def test_another_template_is_another_workload(change: dict[str, object]) -> None:
    assert keys_of(replace(POD, **change))[2] != keys_of(POD)[2]  # type: ignore[arg-type]


def test_another_namespace_shares_no_key_but_the_owner() -> None:
    other = keys_of(replace(POD, namespace="web", root_owner_uid="other"))
    assert not set(other) & set(keys_of(POD))


def test_a_sidecar_that_everybody_has_names_nobody() -> None:
    sidecar = frozenset({"sha256:5c"})
    alone = replace(POD, image_digests=("sha256:aa",))
    assert keys_of(POD, sidecar)[3] == keys_of(alone, sidecar)[3]
    assert len(keys_of(replace(POD, image_digests=("sha256:5c",)), sidecar)) == 2


def test_an_image_that_was_never_pulled_gives_no_key_of_images() -> None:
    assert [key.level for key in keys_of(replace(POD, image_digests=()))] == [1, 2]


@given(st.text(max_size=80), st.lists(st.text(max_size=200), max_size=5))
def test_hostile_names_and_commands(name: str, words: list[str]) -> None:
    keys = keys_of(replace(POD, root_owner_name=name, commands=(tuple(words),)))
    assert keys == keys_of(replace(POD, root_owner_name=name, commands=(tuple(words),)))


def test_absurd_commands_are_cut() -> None:
    absurd = replace(POD, commands=(("1a" * 50_000_00,) * 3,))
    assert len(keys_of(absurd)[2].value) < 40
