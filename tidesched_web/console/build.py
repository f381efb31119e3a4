import subprocess
import sys

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.core.management import call_command

from tidesched_web.embedded import prepared


def compile_catalogues() -> bool:
    """With Babel, since a bare machine has no `msgfmt`."""
    stale = prepared.stale_catalogues()
    for source in stale:
        with source.open("rb") as text:
            catalogue = read_po(text)
        fresh = source.with_suffix(".new")
        with fresh.open("wb") as compiled:
            write_mo(compiled, catalogue)
        fresh.replace(source.with_suffix(".mo"))
    return bool(stale)


def collect_static() -> bool:
    if prepared.static_is_current():
        return False
    wanted = prepared.static_fingerprint()
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    prepared.static_stamp().write_text(wanted, encoding="ascii")
    return True


def start_compiling() -> subprocess.Popen[bytes] | None:
    if prepared.kernels_are_current():
        return None
    return subprocess.Popen([sys.executable, "-m", "scheduler_core.cli.warm"])


def finish_compiling(process: subprocess.Popen[bytes] | None) -> bool:
    if process is None or process.wait() != 0:
        return False
    if (stamp := prepared.kernels_stamp()) is not None:
        stamp.write_text(prepared.engine_fingerprint(), encoding="ascii")
    return True
