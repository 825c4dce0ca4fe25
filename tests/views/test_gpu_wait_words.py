"""The commands that ``seawall gpu wait`` and ``gpu`` hand to whoever has to make a node."""

import pytest

from seawall.accounts.devices.layers import HostNode
from seawall.views.gpu_words import node_words

UVM = HostNode(path="/dev/nvidia-uvm", driver="nvidia-uvm", major=511, minor=0, is_there=False)
OLD = HostNode(
    path="/dev/nvidia-uvm", driver="nvidia-uvm", major=511, minor=0, is_there=False,
    found="c 510:0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (UVM, "or mknod -m 666 /dev/nvidia-uvm c 511 0"),
        (OLD, "or rm -f /dev/nvidia-uvm && mknod -m 666 /dev/nvidia-uvm c 511 0"),
    ],
)
def test_what_is_in_the_way_goes_first(node: HostNode, words: str) -> None:
    assert node_words(node).endswith(words)
