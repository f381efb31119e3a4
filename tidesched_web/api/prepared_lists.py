"""Pages of lists whose SQL is made once for each shape of the request: to make it costs more than to answer it.

A shape is the view, what of the caller's rights its query depends on, the parameters but for the cursor, and the
direction of the walk; the place of the cursor is given each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from django.db.models import BigIntegerField, QuerySet
from rest_framework.request import Request

from tidesched_web.api.pagination import KeysetPagination
from tidesched_web.common.permissions import Access
from tidesched_web.common.prepared_query import Given, Prepared

MOST_SHAPES = 128

_kept: OrderedDict[Any, Prepared[Any]] = OrderedDict()
_turn = threading.Lock()


def page_of(
    view: type, access: Access, request: Request, paging: KeysetPagination, rows: Callable[[], QuerySet[Any]]
) -> list[Any]:
    """One page of ``rows``, whose query depends on no right but ``everything`` and ``tenant_ids``, and on no clock."""
    said = tuple(sorted((name, *values) for name, values in request.query_params.lists() if name != "cursor"))
    shape = (view, access.everything, access.tenant_ids, said, paging.downwards, paging.anchor > 0)
    with _turn:
        found = _kept.get(shape)
        if found is not None:
            _kept.move_to_end(shape)
    if found is None:
        found = Prepared(paging.page(rows(), Given("anchor", BigIntegerField())))
        with _turn:
            _kept[shape] = found
            while len(_kept) > MOST_SHAPES:
                _kept.popitem(last=False)
    return paging.turned(found.rows(anchor=paging.anchor))
