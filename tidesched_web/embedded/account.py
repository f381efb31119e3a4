"""The user that PostgreSQL runs as. It refuses to run as root, so root lends it an unprivileged user."""

import os
from collections.abc import Iterable
from pathlib import Path

from tidesched_web.embedded.child import Account
from tidesched_web.embedded.errors import StartError

NOBODY = Account(uid=65534, gid=65534)


def server_account(must_enter: Iterable[Path]) -> Account | None:
    """Return the user for PostgreSQL: None means the present one.

    Raises
    ------
    StartError
        where this is root and the unprivileged user cannot enter one of the folders. Their modes are left alone.
    """
    if os.geteuid() != 0:
        return None
    for place in must_enter:
        for folder in (place, *place.parents):
            if folder.exists() and not _enters(folder, NOBODY):
                raise StartError(
                    f"PostgreSQL does not run as root, and the unprivileged user that it gets cannot enter {folder}",
                    "start as an ordinary user, or keep the checkout and DATA_DIR where everybody may enter",
                )
    return NOBODY


def own(folder: Path, account: Account | None) -> None:
    """Give the folder and all below to the account, where it is not the owner yet."""
    if account is None or folder.stat().st_uid == account.uid:
        return
    for root, _folders, files in os.walk(folder):
        for path in (root, *(os.path.join(root, name) for name in files)):  # noqa: PTH118
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _enters(folder: Path, account: Account) -> bool:
    found = folder.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & 0o100)
    if found.st_gid == account.gid:
        return bool(found.st_mode & 0o010)
    return bool(found.st_mode & 0o001)
