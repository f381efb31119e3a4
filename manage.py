#!/usr/bin/env python
"""Django's command line for TideSched: `python manage.py help`."""

import os
import sys


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        # Not the address itself: it holds a password.
        where = (
            "DATABASE_URL"
            if os.environ.get("DATABASE_URL")
            else f"the data folder {os.environ.get('DATA_DIR', '.data')}"
        )
        print(f"error: the database of {where} does not answer: {error}".rstrip(), file=sys.stderr)
        print("hint: start TideSched with `make up`, or set DATABASE_URL.", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
