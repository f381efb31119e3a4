"""`python -m tidesched_web.embedded up | down`."""

import sys
from importlib.util import find_spec

# What the processes begin with, beside what this command itself imports.
_PACKAGES = ("django", "celery", "uvicorn", "kubernetes", "rest_framework", "numba")


def main(arguments: list[str]) -> int:
    """Run one command; return the exit status."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        return _refuse(f"the package {missing[0]} is missing", "run `make clean`, then `make up`")
    try:
        from tidesched_web.embedded.bootstrap import why_unusable
        from tidesched_web.embedded.down import down
        from tidesched_web.embedded.errors import StartError
        from tidesched_web.embedded.up import up
        from tidesched_web.env import data_dir
    except ImportError as error:
        return _refuse(f"the installation is broken: {error}", "run `make clean`, then `make up`")
    commands = {"up": up, "down": down}
    if len(arguments) != 1 or arguments[0] not in commands:
        return _refuse("expected one word: up or down", "python -m tidesched_web.embedded up")
    try:
        commands[arguments[0]]()
    except StartError as error:
        return _refuse(error.message, error.hint)
    except OSError as error:
        return _refuse(*why_unusable(error, str(data_dir())))
    return 0


def _refuse(message: str, hint: str) -> int:
    print(f"error: {message}\nhint: {hint}", file=sys.stderr, flush=True)  # noqa: T201 - a command line prints
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
