"""`python -m tidesched_web.console.assets NODE_MODULES TARGET` fills ``static/vendor``. Django-free."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import tinycss2
from tinycss2.ast import AtRule, Node, QualifiedRule

STYLE = "@tabler/core/dist/css/tabler.min.css"
FILES = {STYLE: "tabler.min.css", "plotly.js-basic-dist-min/plotly-basic.min.js": "plotly-basic.min.js"}
ROOT = Path(__file__).resolve().parents[2]
# Where the names of classes may stand.
SOURCES = (
    "templates/**/*.html",
    "static/js/*.js",
    "static/css/*.css",
    "tidesched_web/console/**/*.py",
    "tidesched_web/api/**/*.py",
)
_WORD = re.compile(r"[A-Za-z0-9_-]+")
# The one rule with `:has()` that our pages need: links with an icon are not underlined.
HAS_IN_USE = ("a:hover:has(.icon)",)
_OF_RULES = ("media", "supports", "layer", "container")
ICONS = (
    "baseline-density-medium", "baseline-density-small",
    "activity", "adjustments", "alert-circle", "alert-triangle", "arrow-back-up", "arrow-bar-to-down",
    "arrow-bar-to-right", "arrow-forward-up", "arrow-right", "arrows-exchange", "arrows-split-2", "ban", "barbell",
    "bell", "bolt", "box", "briefcase", "calendar-event", "calendar-time", "chart-treemap", "check", "chevron-right",
    "chevrons-down", "chevrons-up", "circle-check", "circle-dashed", "circle-plus", "circle-x", "clipboard", "clock",
    "copy", "cpu", "device-desktop", "door-enter", "download", "edit", "eye", "file-diff", "file-text", "filter",
    "folder", "git-compare", "help-circle", "history", "hourglass", "info-circle", "key", "keyboard", "language",
    "layout-dashboard", "link", "list-tree", "lock", "lock-open", "lock-pause", "logout", "menu-2", "minus", "moon",
    "packages", "player-pause", "player-play", "player-stop", "question-mark", "refresh", "ripple", "rotate", "search",
    "send", "server-2", "shield-check", "sitemap", "stack-2", "sun", "table", "tag", "trash", "upload", "user-check",
    "user-circle", "user-off", "user-plus", "users", "users-group", "world", "x",
)  # fmt: skip


def sprite(icons: Path) -> str:
    symbols = []
    for name in ICONS:
        text = (icons / f"{name}.svg").read_text(encoding="utf-8")
        inner = re.search(r"<svg[^>]*>(.*)</svg>", text, re.DOTALL)
        if inner is None:
            raise ValueError(f"{name}.svg: not an SVG document")
        body = " ".join(inner[1].replace('<path stroke="none" d="M0 0h24v24H0z" fill="none" />', "").split())
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{body}</symbol>')
    return '<svg xmlns="http://www.w3.org/2000/svg">' + "".join(symbols) + "</svg>\n"


def words_of(root: Path) -> frozenset[str]:
    found: set[str] = set()
    for place in SOURCES:
        for path in root.glob(place):
            found.update(_WORD.findall(path.read_text(encoding="utf-8")))
    return frozenset(found)


def lean_style(css: str, words: frozenset[str] | None = None) -> tuple[str, list[str]]:
    """``:has()`` always goes: a browser checks it at every change, two thirds of what a key in the editor cost."""
    left_out: list[str] = []
    begun = tuple(word for word in words or () if word.endswith("-") and len(word) > 2)

    def in_use(name: str) -> bool:
        return words is None or name in words or name.startswith(begun)

    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return tinycss2.serialize(list(_lean(rules, left_out, in_use))), left_out


def _lean(rules: Iterable[Node], left_out: list[str], in_use: Callable[[str], bool]) -> Iterator[Node]:
    for rule in rules:
        if isinstance(rule, QualifiedRule):
            kept: list[Node] = []
            for selector in _selectors(rule.prelude):
                text = tinycss2.serialize(selector).strip()
                asks = _asks_for_descendants(selector) and text not in HAS_IN_USE
                if asks or not all(map(in_use, _classes(selector))):
                    left_out.append(text)
                else:
                    kept += [tinycss2.ast.LiteralToken(0, 0, ","), *selector] if kept else selector
            if not kept:
                continue
            rule.prelude = kept
        elif isinstance(rule, AtRule) and rule.content is not None and rule.lower_at_keyword in _OF_RULES:
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            rule.content = list(_lean(inner, left_out, in_use))
        yield rule


def _selectors(prelude: list[Node]) -> list[list[Node]]:
    found: list[list[Node]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def _classes(tokens: list[Node]) -> Iterator[str]:
    """The classes that an element and its ancestors must all have; what stands in ``:is()`` or ``:not()`` is none."""
    for token, following in pairwise(tokens):
        if token.type == "literal" and token.value == "." and following.type == "ident":
            yield following.value


def _asks_for_descendants(tokens: Iterable[Node]) -> bool:
    return any(
        token.type == "function" and (token.lower_name == "has" or _asks_for_descendants(token.arguments))
        for token in tokens
    )


def plotly_js() -> Path:
    """Return plotly.js as the Python wheel brings it, so that figures and their drawing are of one version."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the Python package plotly is not installed")
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"


def install(node_modules: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    words = words_of(ROOT) or None  # without sources, as in the first stage of an image, the kit stays whole
    for source, name in FILES.items():
        # The map files stay behind, so their address must go too: a manifest storage refuses links to missing files.
        text = (node_modules / source).read_text(encoding="utf-8")
        text = re.sub(r"/[*/]# sourceMappingURL=\S+( \*/)?", "", text)
        (target / name).write_text(lean_style(text, words)[0] if source == STYLE else text, encoding="utf-8")
    (target / "icons.svg").write_text(sprite(node_modules / "@tabler/icons/icons/outline"), encoding="utf-8")
    shutil.copyfile(plotly_js(), target / "plotly.min.js")


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
