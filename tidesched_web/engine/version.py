import hashlib
from functools import cache
from pathlib import Path

import scheduler_core

# Directories that decide nothing in a session.
_OUTSIDE = frozenset({"simulator", "cli", "__pycache__"})


@cache
def engine_version() -> str:
    root = Path(scheduler_core.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if not _OUTSIDE.intersection(relative.parts):
            digest.update(relative.as_posix().encode())
            digest.update(path.read_bytes())
    return f"{getattr(scheduler_core, '__version__', '0.1.0')}+{digest.hexdigest()[:16]}"
