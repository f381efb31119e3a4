"""What is made from the sources and never committed: compiled catalogues and collected static files."""

import hashlib
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command


def compile_catalogues() -> bool:
    """Compile the message catalogues that are older than their sources; return whether there was any.

    Babel does it, since a bare machine has no `msgfmt`.
    """
    changed = False
    for source in sorted(Path(settings.LOCALE_PATHS[0]).glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        with source.open("rb") as text:
            catalogue = read_po(text)
        fresh = target.with_suffix(".new")
        with fresh.open("wb") as compiled:
            write_mo(compiled, catalogue)
        fresh.replace(target)
        changed = True
    return changed


def collect_static() -> bool:
    """Collect, hash and compress the static files when one of them has changed; return whether one had."""
    root = Path(settings.STATIC_ROOT)
    stamp = root.parent / f"{root.name}.stamp"
    wanted = _fingerprint()
    if root.is_dir() and stamp.exists() and stamp.read_text() == wanted:
        return False
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(wanted)
    return True


def _fingerprint() -> str:
    total = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            found = Path(storage.path(name)).stat()
            total.update(f"{name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return total.hexdigest()
