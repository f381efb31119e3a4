"""`python -m tidesched_web.embedded up | down`."""

import sys


def main(arguments: list[str]) -> int:
    """Run one command; return the exit status."""
    try:
        from tidesched_web.embedded.down import down
        from tidesched_web.embedded.errors import StartError
        from tidesched_web.embedded.up import up
    except ImportError as error:
        return _refuse(f"the installation is broken: {error}", "run `make clean`, then `make up`")
    commands = {"up": up, "down": down}
    if len(arguments) != 1 or arguments[0] not in commands:
        return _refuse("expected one word: up or down", "python -m tidesched_web.embedded up")
    try:
        commands[arguments[0]]()
    except StartError as error:
        return _refuse(error.message, error.hint)
    return 0


def _refuse(message: str, hint: str) -> int:
    print(f"error: {message}\nhint: {hint}", file=sys.stderr, flush=True)  # noqa: T201 - a command line prints
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
