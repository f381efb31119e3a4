"""The style sheet of the dashboard kit without the rules that make every change of a page expensive."""

from tidesched_web.console.assets import HAS_IN_USE, lean_style

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


def test_what_the_pages_need_stays() -> None:
    css, left_out = lean_style("".join(f"{selector}{{top:0}}" for selector in HAS_IN_USE))
    assert left_out == []
    assert all(selector in css for selector in HAS_IN_USE)
