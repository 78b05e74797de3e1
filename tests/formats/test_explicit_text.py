"""Tables of numbers in text, and reading them in pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyways.formats import explicit_text


@pytest.mark.parametrize("piece", [1, 7, 30, 10**6])
def test_a_table_is_the_same_in_pieces_of_any_size(monkeypatch, piece):
    monkeypatch.setattr(explicit_text, "BYTES_AT_ONCE", piece)
    text = b"0 : 0.5\n12 : 1e-3\n 999999999999999 :7\n0000000000000001:.25\n3 : -4\n"
    expected = [[0, 0.5], [12, 1e-3], [999_999_999_999_999, 7], [1, 0.25], [3, -4]]
    found = explicit_text.read_table(text, b"n:n\n")
    assert found is not None
    assert found.tolist() == expected
    for wrong in (b"3 : 1.2.3\n", b"3 : 1 2\n", b"3 :\n", b"\n", b"3 : -\n", b"x : 1\n"):
        assert explicit_text.read_table(text + wrong + text, b"n:n\n") is None
        assert explicit_text.first_mismatch(text + wrong + text, b"n:n\n") == 5
    assert explicit_text.read_table(b"", b"n:n\n") is not None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**63), st.floats(allow_nan=False, allow_infinity=False)), max_size=20))
def test_numbers_are_read_as_python_reads_them(rows):
    found = explicit_text.read_table("".join(f"{a} {b!r}\n" for a, b in rows).encode(), b"nn\n")
    assert found is not None
    assert found.tolist() == [[float(a), b] for a, b in rows]
