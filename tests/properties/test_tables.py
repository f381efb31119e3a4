"""The table of a tree comes back equal, through itself and through a spreadsheet: or its cell is refused."""

from __future__ import annotations

import csv
import io
import os
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidesched_web.changes import tree_csv
from tidesched_web.changes.documents import canonical
from tidesched_web.common.errors import DomainError
from tidesched_web.common.tables import decoded

TABLES = int(os.environ.get("RANDOM_TABLES", "150"))
CARDS = ("NVIDIA-H200", "NVIDIA-A100-SXM4-80GB", "=odd;card", 'Ascend,"910B"', "昇腾-910", "-1")
ALIASES = {"hopper": "NVIDIA-H200"}
always = settings(max_examples=TABLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
figures = st.one_of(st.integers(0, 70_000), st.sampled_from([0, 8, 999, 1000, 1024, 10_000, 64_000, 1_024_000, 10**7]))
amounts = st.one_of(figures, st.integers(0, 2**62), st.sampled_from([10**8, 10**11, 5 * 2**40, 123_456_789_012_345]))
names = st.from_regex(r"\A[a-z0-9](?:[a-z0-9.-]{0,8}[a-z0-9])?\Z").map(lambda name: re.sub(r"[.-]{2,}", "-", name))


@st.composite
def queues(draw):
    found = {
        "service_type": draw(st.sampled_from(["inference", "training"])),
        "weight": draw(st.integers(1, 65535)), "priority": draw(st.integers(0, 2**31 - 1)),
        "card_quota": draw(st.dictionaries(st.sampled_from(CARDS), st.integers(0, 10**7) | figures)),
    }  # fmt: skip
    for field, drawn in (
        ("cpu_milli", amounts),
        ("memory_bytes", amounts),
        ("tenant", st.sampled_from(["a", "-b", "1E5"])),
    ):
        if draw(st.booleans()):
            found[field] = draw(drawn)
    return found


@st.composite
def trees(draw):
    named = draw(st.dictionaries(names, queues(), min_size=1, max_size=5))
    return {f"queue/{name}": canonical(f"queue/{name}", queue)[0] for name, queue in named.items()}


def grouped(text, sign):
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", sign, text)


@st.composite
def habits(draw):
    """How a spreadsheet saves what it has loaded, bytes → bytes, and whether it adds nothing to numbers."""
    delimiter, end = draw(st.sampled_from(",;\t")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    thousands = draw(st.sampled_from(["", "", ",", ".", " ", "\u00a0", "'"]))
    fractions = ["", "", ".0", ",00", ".000", ",000"]
    fraction = draw(st.sampled_from([one for one in fractions if not one or one[0] != thousands]))
    shown = draw(st.sampled_from([11, 15, 20]))  # digits, before a number is shortened
    more, above = draw(st.integers(0, 3)), draw(st.integers(0, 2))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    case = draw(st.sampled_from([str, str.upper, str.capitalize]))
    short, told = draw(st.booleans()), draw(st.booleans())
    code = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))

    def number(cell):
        if not re.fullmatch(r"-?\d+", cell):
            return cell
        if len(cell) > shown:
            return f"{int(cell):.5E}"
        return grouped(cell, thousands) + fraction

    def saved(data):
        head, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        own = tree_csv.columns(())
        lines = [[case(cell) if cell in own else cell for cell in head]]
        lines += [[*row[:5], *map(number, row[5:])] for row in rows]
        lines = [[*line, *[""] * more] for line in lines]
        if short:  # empty cells at the end are left out
            lines[1:] = [line[: max(n for n, cell in enumerate(line, 1) if cell)] for line in lines[1:]]
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerows([[""] * len(lines[0])] * above + lines)
        return ((f"sep={delimiter}{end}" if told else "") + text.getvalue()).encode(code)

    return saved, thousands + fraction == ""


def read(data, tree):
    """The edits of a table, or the words by which it is refused."""
    try:
        return tree_csv.loads(decoded(data), tree, CARDS, ALIASES)
    except DomainError as refused:
        return refused.message


def has_its_cell(words):
    return isinstance(words, str) and bool(re.match(r"Line \d+(, [^:]+: | ends before the column )", words))


@always
@given(tree=trees(), habit=habits())
def test_a_table_comes_back_equal_or_its_cell_is_refused(tree, habit):
    exported = tree_csv.dumps(tree, CARDS).encode()
    assert read(exported, tree) == {}
    saved, bare = habit
    found = read(saved(exported), tree)
    assert found == {} or (has_its_cell(found) and not bare)


@always
@given(tree=trees(), habit=habits())
def test_no_figure_comes_out_of_a_spreadsheet_as_another_one(tree, habit):
    """Read into the same queues with other figures: what was exported, or a refusal."""
    other = {key: {**queue, "weight": 1, "card_quota": {CARDS[0]: 3}, "cpu_milli": 5} for key, queue in tree.items()}
    edits = read(habit[0](tree_csv.dumps(tree, CARDS).encode()), other)
    if has_its_cell(edits):
        return
    for key, queue in other.items():
        patch = edits.get(key, {})
        cards = queue["card_quota"] | patch.get("card_quota", {})
        after = queue | patch | {"card_quota": {card: count for card, count in cards.items() if count is not None}}
        assert {name: value for name, value in after.items() if value is not None} == tree[key]
