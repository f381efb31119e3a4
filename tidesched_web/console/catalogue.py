from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.pofile import read_po, write_po
from django.conf import settings

KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "ngettext_noop": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
LANGUAGES = ("zh_Hans",)


def path_of(language: str) -> Path:
    return Path(settings.BASE_DIR) / "locale" / language / "LC_MESSAGES" / "django.po"


def extracted() -> Catalog:
    """Every message of the code and the templates, without its places: they change with every edit."""
    base = Path(settings.BASE_DIR)
    with (base / "locale" / "babel.cfg").open() as file:
        methods, options = parse_mapping_cfg(file)
    catalog = Catalog(project="TideSched", charset="utf-8")
    for _file, _line, message, comments, context in extract_from_dir(base, methods, options, keywords=KEYWORDS):
        catalog.add(message, auto_comments=comments, context=context)
    return catalog


def read(language: str) -> Catalog:
    path = path_of(language)
    if not path.exists():
        return Catalog(locale=language, domain="django")
    with path.open("rb") as file:
        return read_po(file, locale=language, domain="django")


def update(language: str) -> list[str]:
    catalog = read(language)
    made = catalog.creation_date
    catalog.update(extracted(), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    # A date that moves with each run would be a change without a meaning.
    catalog.creation_date = catalog.revision_date = made
    path = path_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalog, sort_output=True, width=120, omit_header=False, no_location=True)
    return untranslated(catalog)


def untranslated(catalog: Catalog) -> list[str]:
    found = []
    for message in catalog:
        texts = message.string if isinstance(message.string, list | tuple) else [message.string]
        if message.id and (message.fuzzy or not all(texts)):
            found.append(message.id if isinstance(message.id, str) else message.id[0])
    return found
