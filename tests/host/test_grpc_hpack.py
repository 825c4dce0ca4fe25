"""HPACK against RFC 7541's own examples (appendix C), round trips, and bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.grpc_unix import hpack, huffman
from seawall.host.grpc_unix.grpc_problems import WireProblem

DATE = b"Mon, 21 Oct 2013 20:13:%d GMT"
COOKIE = b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
REQUESTS = [
    [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"),
     (b":authority", b"www.example.com")],
    [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"),
     (b":authority", b"www.example.com"), (b"cache-control", b"no-cache")],
    [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/index.html"),
     (b":authority", b"www.example.com"), (b"custom-key", b"custom-value")],
]  # fmt: skip
RESPONSES = [
    [(b":status", b"302"), (b"cache-control", b"private"), (b"date", DATE % 21),
     (b"location", b"https://www.example.com")],
    [(b":status", b"307"), (b"cache-control", b"private"), (b"date", DATE % 21),
     (b"location", b"https://www.example.com")],
    [(b":status", b"200"), (b"cache-control", b"private"), (b"date", DATE % 22),
     (b"location", b"https://www.example.com"), (b"content-encoding", b"gzip"),
     (b"set-cookie", COOKIE)],
]  # fmt: skip
C3 = ("828684410f7777772e6578616d706c652e636f6d", "828684be58086e6f2d6361636865",
      "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565")  # fmt: skip
C4 = ("828684418cf1e3c2e5f23a6ba0ab90f4ff", "828684be5886a8eb10649cbf",
      "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf")  # fmt: skip
C5 = (
    (
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e17"
        "68747470733a2f2f7777772e6578616d706c652e636f6d"
    ),
    "4803333037c1c0bf",
    (
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d41"
        "53444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b207665727369"
        "6f6e3d31"
    ),
)
C6 = (
    (
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97"
        "c8e9ae82ae43d3"
    ),
    "4883640effc1c0bf",
    (
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd"
        "5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007"
    ),
)


@pytest.mark.parametrize(
    ("block", "header"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", (b"custom-key", b"custom-header")),
        ("040c2f73616d706c652f70617468", (b":path", b"/sample/path")),
        ("100870617373776f726406736563726574", (b"password", b"secret")),
        ("82", (b":method", b"GET")),
    ],
)
def test_one_header(block: str, header: hpack.Header) -> None:
    """Appendix C.2."""
    assert hpack.Decoder().decode(bytes.fromhex(block)) == [header]


@pytest.mark.parametrize(
    ("blocks", "wanted", "table"),
    [(C3, REQUESTS, 4096), (C4, REQUESTS, 4096), (C5, RESPONSES, 256), (C6, RESPONSES, 256)],
)
def test_blocks_of_one_connection(
    blocks: tuple[str, ...], wanted: list[list[hpack.Header]], table: int
) -> None:
    """Appendix C.3 to C.6: with the table that grows, with Huffman's code, with evictions."""
    decoder = hpack.Decoder(table)
    assert [decoder.decode(bytes.fromhex(block)) for block in blocks] == wanted


def test_the_code_is_complete() -> None:
    """Kraft's sum is 1: with one wrong length it would not be."""
    assert sum(2.0**-length for length, _ in huffman.codes()) == 1.0
    assert sorted(huffman.codes().values()) == list(range(257))


words = st.binary(max_size=400)


@given(st.lists(st.tuples(words, words), max_size=6))
def test_what_we_send_is_read_back(headers: list[hpack.Header]) -> None:
    assert hpack.Decoder().decode(hpack.encode(headers)) == headers


@given(st.binary(max_size=200))
def test_huffman_round_trip(text: bytes) -> None:
    by_symbol = {symbol: key for key, symbol in huffman.codes().items()}
    bits = "".join(format(code, f"0{length}b") for length, code in map(by_symbol.get, text))  # type: ignore[misc]
    bits += "1" * (-len(bits) % 8)
    assert huffman.decode(int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]) == text


@given(st.lists(st.binary(max_size=300), max_size=4))
def test_only_a_problem_comes_out(blocks: list[bytes]) -> None:
    decoder = hpack.Decoder()
    for block in blocks:
        try:
            found = decoder.decode(block)
        except WireProblem:
            return
        assert sum(map(len, (part for header in found for part in header))) < (1 << 20)


@given(st.sampled_from([*C3, *C4, *C5, *C6]), st.data())
def test_a_byte_changed_in_a_real_block(text: str, data: st.DataObject) -> None:
    block = bytearray.fromhex(text)
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] ^= data.draw(st.integers(1, 255))
    decoder = hpack.Decoder()
    try:
        decoder.decode(bytes(block))
        decoder.decode(bytes(block))
    except WireProblem:
        pass


@pytest.mark.parametrize(
    "block",
    [
        "80",  # index 0
        "be",  # index 62 of an empty table
        "ffffffffffffffffff",  # an integer without an end
        "0005",  # a string that is not there
        "00ff80808080808080808000",  # a string of no length that ends
        "3fe21f",  # a table of 4097 bytes
        "823f00",  # its size changed behind a header
        "00016183ffffff",  # padding of more than 7 bits
        "00016184ffffffff",  # the end of string itself
        "0001618100",  # padding that is no end of string
    ],
)
def test_blocks_that_are_none(block: str) -> None:
    with pytest.raises(WireProblem):
        hpack.Decoder().decode(bytes.fromhex(block))


def test_a_small_block_must_not_become_a_large_list() -> None:
    """An entry of 4 KiB in the table, named a thousand times."""
    block = b"\x40\x01a" + b"\x7f\xe0\x1e" + b"v" * 4063
    with pytest.raises(WireProblem, match="headers of more than"):
        hpack.Decoder().decode(block + b"\xbe" * 1000)
