import os
import secrets
from functools import cache

from tidesched_web import env

VARIABLE = "TIDESCHED_INSTALLATION_ID"
_FILE = "installation_id"


@cache
def installation_id() -> str:
    """Not in the database on purpose: a restored back-up must not take itself for the one it was taken from."""
    named = env.text(VARIABLE)
    if named:
        return named
    folder = env.data_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _FILE
    made = f"tidesched-{secrets.token_hex(8)}"
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(made + "\n")
    return made
