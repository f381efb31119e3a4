"""Reads the texts of Django templates for Babel (`locale/babel.cfg` names it), which knows no such format by itself."""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from typing import IO, Any

from django.template.base import Lexer, TokenType
from django.utils.translation import trim_whitespace

# (line, function, message or (singular, plural), comments), as Babel wants it.
Found = tuple[int, str, Any, list[str]]

_TEXT = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_TRANSLATE = re.compile(rf"^(?:trans|translate)\s+{_TEXT}", re.DOTALL)
_BLOCK = re.compile(r"^blocktrans(?:late)?\b")
_END = re.compile(r"^endblocktrans(?:late)?$")
_CALL = re.compile(rf"(?<!\w)_\({_TEXT}\)")


def extract_django(
    fileobj: IO[bytes], keywords: Mapping[str, Any], comment_tags: Collection[str], options: Mapping[str, str]
) -> Iterator[Found]:
    del keywords, comment_tags
    text = fileobj.read().decode(options.get("encoding", "utf-8"))
    start = 0
    singular: str | None = None
    plural: str | None = None
    trimmed = False
    for token in Lexer(text).tokenize():
        if singular is not None:
            if token.token_type is TokenType.BLOCK and _END.match(token.contents):
                if trimmed:  # lines of a long text are one message
                    singular, plural = trim_whitespace(singular), plural and trim_whitespace(plural)
                if plural is None:
                    yield start, "gettext", singular, []
                else:
                    yield start, "ngettext", (singular, plural), []
                singular = plural = None
            elif token.token_type is TokenType.BLOCK and token.contents == "plural":
                plural = ""
            elif plural is None:
                singular += _inside(token.token_type, token.contents)
            else:
                plural += _inside(token.token_type, token.contents)
            continue
        if token.token_type is TokenType.BLOCK:
            if _BLOCK.match(token.contents):
                start, singular, trimmed = token.lineno or 0, "", "trimmed" in token.split_contents()
                continue
            if found := _TRANSLATE.match(token.contents):
                yield token.lineno or 0, "gettext", _doubled(ast.literal_eval(found[1])), []
        if token.token_type in (TokenType.BLOCK, TokenType.VAR):
            for call in _CALL.finditer(token.contents):
                yield token.lineno or 0, "gettext", _doubled(ast.literal_eval(call[1])), []


def _inside(kind: TokenType, contents: str) -> str:
    if kind is TokenType.VAR:
        return f"%({contents})s"
    return _doubled(contents)


def _doubled(text: str) -> str:
    """Django looks a template's text up with its percent signs doubled."""
    return text.replace("%", "%%")
