"""What is read of a segment that is not whole."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.store.record import MARKER, Damage, read_records, to_record

ROWS = (b"first", b"", b"third and last")
WHOLE = b"".join(map(to_record, ROWS))
LAST = len(to_record(ROWS[-1]))


@given(st.lists(st.binary(max_size=50)))
def test_rows_are_read_as_they_were_written(rows: list[bytes]) -> None:
    assert list(read_records(b"".join(map(to_record, rows)))) == rows


def test_a_last_record_that_is_cut_anywhere_is_torn_and_those_before_it_are_whole() -> None:
    for num_bytes in range(1, LAST):
        content = WHOLE[: len(WHOLE) - LAST + num_bytes]

        *rows, end = read_records(content)

        assert rows == list(ROWS[:-1]), num_bytes
        assert end == Damage(content[-num_bytes:], is_torn=True)


def test_a_record_that_is_damaged_anywhere_is_skipped_and_the_others_are_whole() -> None:
    begin, end = len(to_record(ROWS[0])), len(WHOLE) - LAST
    for position in range(begin, end):
        content = bytearray(WHOLE)
        content[position] ^= 0xFF

        found = list(read_records(bytes(content)))

        assert found == [ROWS[0], Damage(bytes(content[begin:end]), is_torn=False), ROWS[2]], position


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_whatever_is_before_a_record_it_is_found(noise: bytes, row: bytes) -> None:
    assert list(read_records(noise + to_record(row)))[-1] == row


def test_a_block_of_zeros_at_the_end_is_damage_that_is_kept() -> None:
    assert list(read_records(WHOLE + bytes(100))) == [*ROWS, Damage(bytes(100), is_torn=False)]


@given(st.text())
def test_no_text_has_the_marker(text: str) -> None:
    assert MARKER[:1] not in text.encode()
