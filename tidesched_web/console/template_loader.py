"""Templates parsed once for each language: what is the same in every answer is written at that time, not each time.

A page of rows renders thousands of nodes. Most are constant: words to translate, icons, addresses of static files. They
become text when the template is loaded, neighbouring texts become one, and the address of a view is looked up once for
each set of arguments. Templates are indented for who reads them; what is sent is not. In Chinese, the end of a line
of a template is no blank beside a sign that brings its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from django.template import Context, Template
from django.template.base import Node, NodeList, TextNode, TokenType, Variable
from django.template.defaulttags import IfNode, LoadNode, URLNode
from django.template.library import SimpleNode
from django.template.loader_tags import ExtendsNode
from django.template.loaders import cached
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.templatetags.static import StaticNode
from django.urls import get_script_prefix, reverse
from django.utils.html import conditional_escape
from django.utils.translation import get_language, gettext, ngettext

from tidesched_web.common.sentences import SIGNS, closed_up, gap

# Tags that give the same for the same arguments, by name.
CONSTANT_TAGS = frozenset({"icon", "list_comma", "state", "step_icon"})
# One end of a line says as much as the blanks around it: no text of a `pre` is indented in a template.
_INDENTATION = re.compile(r"[ \t]*\n\s*")


@lru_cache(maxsize=16_384)
def _address(_prefix: str, view: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> str:
    return reverse(view, args=args, kwargs=dict(kwargs))


def address_of(view: str, *args: Any, **kwargs: Any) -> str:
    """The address of a view, as `reverse` gives it."""
    return _address(get_script_prefix(), view, args, tuple(kwargs.items()))


class KnownURLNode(URLNode):
    """`{% url %}` that looks an address up once."""

    def render(self, context: Context) -> str:
        """As Django's, without an application of its own for each request: no name here depends on one."""
        args = [arg.resolve(context) for arg in self.args]
        kwargs = {name: value.resolve(context) for name, value in self.kwargs.items()}
        if self.asvar or not all(isinstance(value, str | int) for value in (*args, *kwargs.values())):
            return str(super().render(context))
        found = address_of(self.view_name.resolve(context), *args, **kwargs)
        return conditional_escape(found) if context.autoescape else found


class Loader(cached.Loader):
    """Keeps each template once for each language, simplified."""

    def cache_key(self, template_name: str, skip: Any = None) -> str:
        return f"{get_language()}:{super().cache_key(template_name, skip)}"

    def get_template(self, template_name: str, skip: Any = None) -> Template:
        known = self.cache_key(template_name, skip) in self.get_template_cache
        template = super().get_template(template_name, skip)
        if not known:
            _simplify(template.nodelist, template)
        return template


def _simplify(nodes: NodeList, template: Template) -> None:
    """Write what is constant, in place: blocks of a template that extends another are known by identity."""
    kept: list[Node] = []
    for node in nodes:
        for inner in _nodelists(node):
            _simplify(inner, template)
        text = _constant(node, template)
        if text is None:
            if isinstance(node, URLNode):
                node.__class__ = KnownURLNode
            kept.append(node)
        elif kept and isinstance(kept[-1], TextNode):
            kept[-1].s += text
        elif text:
            kept.append(_text(text, node))
    for node in kept:
        if isinstance(node, TextNode):
            node.s = _INDENTATION.sub("\n", node.s)
    if not gap():
        _close_up(kept)
    nodes[:] = kept


def _close_up(nodes: list[Node]) -> None:
    for place, node in enumerate(nodes):
        if isinstance(node, TextNode):
            node.s = closed_up(node.s)
            if place and _said(nodes[place - 1]).endswith(SIGNS):
                node.s = node.s.lstrip()
            if place + 1 < len(nodes) and _said(nodes[place + 1]).startswith(SIGNS):
                node.s = node.s.rstrip()


def _said(node: Node) -> str:
    """The text of a `blocktranslate` in the reader's language, with its places."""
    if not isinstance(node, BlockTranslateNode):
        return ""
    singular, _names = node.render_token_list(node.singular)
    if not node.plural:
        return gettext(singular)
    plural, _names = node.render_token_list(node.plural)
    return ngettext(singular, plural, 2)


def _nodelists(node: Node) -> Iterator[NodeList]:
    if isinstance(node, IfNode):
        for _condition, nodelist in node.conditions_nodelists:
            yield nodelist
        return
    for value in vars(node).values():
        if isinstance(value, NodeList):
            yield value


def _text(text: str, node: Node) -> TextNode:
    made = TextNode(text)
    made.token, made.origin = node.token, node.origin
    return made


def _constant(node: Node, template: Template) -> str | None:
    """What the node always renders to; None where that depends on the request."""
    if isinstance(node, TextNode):
        return str(node.s)
    if isinstance(node, LoadNode):
        return ""
    if isinstance(node, ExtendsNode) or not _always_the_same(node):
        return None
    context = Context()
    context.template = template
    return str(node.render(context))


def _always_the_same(node: Node) -> bool:
    if getattr(node, "asvar", None) or getattr(node, "varname", None) or getattr(node, "target_var", None):
        return False
    if isinstance(node, TranslateNode):
        return node.message_context is None and _literal(node.filter_expression)
    if isinstance(node, BlockTranslateNode):
        said = all(token.token_type == TokenType.TEXT for token in node.singular)
        return said and not (node.plural or node.countervar or node.extra_context or node.message_context)
    if isinstance(node, StaticNode):
        return _literal(node.path)
    if isinstance(node, SimpleNode):
        name = node.func.__name__
        return name in CONSTANT_TAGS and all(_literal(one) for one in (*node.args, *node.kwargs.values()))
    return False


def _literal(expression: Any) -> bool:
    """Whether a filter expression is a text in quotes, without filters."""
    if expression.filters:
        return False
    var = expression.var
    return isinstance(var, str) or (isinstance(var, Variable) and var.lookups is None)
