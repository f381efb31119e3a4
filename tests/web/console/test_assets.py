"""The style sheet of the dashboard kit without the rules that make every change of a page expensive."""

import json
import re

from tidesched_web.console.assets import HAS_IN_USE, ROOT, lean_style, plotly_js, words_of

KIT = """
/* a licence */
.card{color:red}
.alert:has(> .alert-icon){padding:1px}
.a:has(.b) .c, .d > .e, .steps:not(:has(> .x))::before{content:"a:has(b), {c}"}
@media (min-width:40em){.nav:is(.f,.g:not(:has(:focus))) .h{top:0}.i{left:0}}
@supports (color:red){@media print{.j:has(.k){top:0}}}
@font-face{font-family:x;src:url("x.woff")}
@keyframes turn{from{top:0}to{top:1px}}
"""


def test_rules_that_ask_for_descendants_are_left_out_and_nothing_else() -> None:
    css, left_out = lean_style(KIT)
    assert left_out == [
        ".alert:has(> .alert-icon)", ".a:has(.b) .c", ".steps:not(:has(> .x))::before",
        ".nav:is(.f,.g:not(:has(:focus))) .h", ".j:has(.k)",
    ]  # fmt: skip
    kept = (
        '.card{color:red}.d>.e{content:"a:has(b),{c}"}@media(min-width:40em){.i{left:0}}@supports(color:red){@mediaprint{}}'
        '@font-face{font-family:x;src:url("x.woff")}@keyframesturn{from{top:0}to{top:1px}}'
    )
    assert "".join(css.split()) == kept


def test_classes_that_no_page_names_are_left_out() -> None:
    kit = (
        ".card{top:0}.card.modal{top:0}.btn-red,.tone-bad .card{top:0}"
        ".card:not(.modal){top:0}:is(.modal,.card) b{top:0}"
    )
    css, left_out = lean_style(kit, frozenset({"card", "tone-", "btn"}))
    assert left_out == [".card.modal", ".btn-red"]
    assert "".join(css.split()) == (
        ".card{top:0}.tone-bad.card{top:0}.card:not(.modal){top:0}:is(.modal,.card)b{top:0}"
    )


def test_words_of_the_pages() -> None:
    assert {"card", "btn-primary", "show", "collapse", "table-stack", "tone-"} <= words_of(ROOT)


def test_both_bundles_of_plotly_are_of_one_version() -> None:
    whole = re.search(r"plotly\.js v([0-9.]+)", plotly_js().read_text(encoding="utf-8")[:400])
    small = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]["plotly.js-basic-dist-min"]
    assert whole is not None
    assert whole[1] == small


def test_what_the_pages_need_stays() -> None:
    css, left_out = lean_style("".join(f"{selector}{{top:0}}" for selector in HAS_IN_USE))
    assert left_out == []
    assert all(selector in css for selector in HAS_IN_USE)
