"""What no file of the project may hold, and names that say nothing."""

import json
import re

from tests.architecture import sources

# In two halves, so that this file does not hold them itself.
REGISTRIES = [
    "".join(halves)
    for halves in (
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("npm", "mirror.com"),
        ("yarn", "pkg.com"),
        ("golang", ".org/proxy"),
        ("proxy.", "golang.org"),
        ("docker", ".io"),
        ("gh", "cr.io"),
        ("quay", ".io"),
        ("un", "pkg.com"),
        ("js", "delivr.net"),
        ("cdnjs.", "cloudflare.com"),
    )
]
TEXT = {".py", ".txt", ".in", ".md", ".toml", ".yaml", ".yml", ".json", ".html", ".js", ".css", ".sh", ".cfg", ""}


def test_no_file_names_a_registry_or_a_cdn() -> None:
    wrong = [
        f"{path.relative_to(sources.ROOT)}: {name}"
        for path in sources.committed()
        if path.suffix in TEXT
        for name in REGISTRIES
        if name in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert wrong == []


def test_locked_packages_have_hashes_and_no_addresses() -> None:
    for name in ("base", "dev"):
        text = (sources.ROOT / "requirements" / f"{name}.txt").read_text()
        assert not re.search(r"^\s*-[-\w]*(index|find-links)|://", text, re.MULTILINE)
        pins = re.findall(r"^([a-z0-9._\[\],-]+)==.*?(?=^[a-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
        assert len(pins) > 10
        assert text.count("==") <= text.count("--hash=sha256:")
    packages = json.loads((sources.ROOT / "package-lock.json").read_text())["packages"]
    for name, package in packages.items():
        assert "resolved" not in package, name
        assert name == "" or package["integrity"].startswith("sha512-"), name


def test_no_module_is_called_by_what_it_is_not() -> None:
    wrong = [path for path in sources.committed() if path.stem in {"utils", "util", "helpers", "misc", "common_utils"}]
    assert wrong == []


def test_no_third_party_file_is_committed() -> None:
    wrong = [path for path in sources.committed() if re.search(r"(\.min\.(js|css)|/node_modules/|/vendor/)", str(path))]
    assert wrong == []


def test_nothing_is_left_to_do_in_a_comment() -> None:
    marks = re.compile(r"#\s*(TO" + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b")
    wrong = [
        f"{path.relative_to(sources.ROOT)}:{number}"
        for path in sources.committed()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert wrong == []


def test_no_line_of_a_template_is_longer_than_160_bytes() -> None:
    """One element or attribute a line; a long text stands between `blocktranslate trimmed` and its end."""
    wrong = [
        f"{path.relative_to(sources.ROOT)}:{number}: {len(line)}"
        for path in sources.committed()
        if path.is_relative_to(sources.ROOT / "templates")
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if len(line) > 160
    ]
    assert wrong == []


def test_a_comment_of_a_template_is_no_text_of_the_page() -> None:
    """Django reads `{# … #}` within one line alone; what goes on in a second line is shown to the reader."""
    wrong = [
        f"{path.relative_to(sources.ROOT)}:{number}"
        for path in sources.committed()
        if path.suffix == ".html"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.count("{#") != line.count("#}")
    ]
    assert wrong == []
