"""The user that PostgreSQL runs as. It refuses to run as root, so root lends it an unprivileged user.

No user is made and no folder's mode is changed. Where the unprivileged user could not even enter the folders (a
checkout in root's home), the process keeps one capability of root's: to pass by the modes of files.
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

# <linux/prctl.h>, <linux/securebits.h>, <linux/capability.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_SECUREBITS = 28
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522


class Account(msgspec.Struct, frozen=True):
    """A user for a child. `passes_modes`: it keeps root's capability to enter every folder."""

    uid: int
    gid: int
    passes_modes: bool = False


NOBODY = Account(uid=65534, gid=65534)


def server_account(must_enter: Iterable[Path]) -> Account | None:
    """Return the user for PostgreSQL; None means the present one."""
    if os.geteuid() != 0:
        return None
    folders = {folder for place in must_enter for folder in (place, *place.parents) if folder.exists()}
    if all(_enters(folder, NOBODY) for folder in folders):
        return NOBODY
    return Account(NOBODY.uid, NOBODY.gid, passes_modes=True)


def own(folder: Path, account: Account | None) -> None:
    """Give the folder and all below to the account, where it is not the owner yet."""
    if account is None or folder.stat().st_uid == account.uid:
        return
    for root, _folders, files in os.walk(folder):
        for path in (root, *(os.path.join(root, name) for name in files)):  # noqa: PTH118 - plain strings from os.walk
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def become(account: Account) -> None:
    """Turn this process (a fresh child, before exec) into the account. Raises OSError: where the kernel refuses."""
    if account.passes_modes:
        # access(2) drops the capabilities of a user other than root unless this bit is set.
        _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    if account.passes_modes:
        _keep_only(_CAP_DAC_OVERRIDE)


def die_with_parent(death_signal: int) -> None:
    """Ask the kernel for a signal when the parent is gone. It forgets this when the user changes, so call it after."""
    if _LIBC is not None:
        _prctl(_PR_SET_PDEATHSIG, death_signal)


def _keep_only(capability: int) -> None:
    if _LIBC is None:
        raise OSError("capabilities are Linux's")
    bit = 1 << capability
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    effective_permitted_inheritable = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
    if _LIBC.capset(header, effective_permitted_inheritable) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)


def _prctl(option: int, first: int, second: int = 0) -> None:
    if _LIBC is None or _LIBC.prctl(option, first, second, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _enters(folder: Path, account: Account) -> bool:
    found = folder.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & 0o100)
    if found.st_gid == account.gid:
        return bool(found.st_mode & 0o010)
    return bool(found.st_mode & 0o001)
