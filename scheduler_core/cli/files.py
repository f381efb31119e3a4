"""Reading and writing files on behalf of a user: what fails names the file."""

import sys
from pathlib import Path

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.memory import MEMORY_VERSION, Memory

STDIN = "-"


def read_bytes(name: str) -> bytes:
    """The content of a file, or of stdin for ``-``. Raises BadInput: ``unreadable_file``."""
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise BadInput("unreadable_file", f"cannot be read: {error.strerror}", file=shown(name)) from None


def write_bytes(name: str, content: bytes) -> None:
    """Write a file. Raises BadInput: ``unwritable_file``."""
    try:
        Path(name).write_bytes(content)
    except OSError as error:
        raise BadInput("unwritable_file", f"cannot be written: {error.strerror}", file=name) from None


def shown(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def read_memory(name: str) -> Memory:
    """What an earlier session left. Raises BadInput: ``malformed_memory``."""
    try:
        memory = msgspec.json.decode(read_bytes(name), type=Memory)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            "malformed_memory", f"not a memory file: {error}", file=shown(name), hint="written by --memory-out"
        ) from None
    if memory.version != MEMORY_VERSION:
        raise BadInput(
            "malformed_memory",
            f"the memory is of version {memory.version}, this engine reads {MEMORY_VERSION}",
            file=shown(name),
            path="version",
            value=memory.version,
            hint="start without --memory",
        )
    return memory


def dump_memory(memory: Memory) -> bytes:
    return msgspec.json.format(msgspec.json.encode(memory, order="sorted"), indent=1) + b"\n"
