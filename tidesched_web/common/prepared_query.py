"""Queries that are asked with each request: their SQL is made once, and their rows come with fewer objects.

To make the SQL of a query with a dozen subqueries costs the processor several times what the database takes to answer.
`Prepared` keeps it, with the converters of its columns; its rows are the objects that the queryset itself would give.
What changes from call to call is a `Given`. Whatever else the SQL depends on (the rights of the caller) belongs to the
key under which a `Prepared` is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import ModelIterable

Row = TypeVar("Row", bound=Model)
# A reader of one related object: (row, the object that it belongs to).
_Populate = Callable[[Sequence[Any], Any], None]


@dataclass(frozen=True)
class _Place:
    """Where a value is put in when the query is asked."""

    name: str


class Given(Expression):
    """A value of a `Prepared` query that is known when it is asked."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return "%s", (_Place(self.name),)


class Prepared(Generic[Row]):
    """A queryset without prefetched relations, ready to be asked again and again, by any thread."""

    def __init__(self, queryset: QuerySet[Row]) -> None:
        if queryset._prefetch_related_lookups:  # type: ignore[attr-defined]  # noqa: SLF001 - nothing else tells
            raise ValueError("What is prefetched takes queries of its own.")
        self._using = queryset.db
        self._compiler = queryset.query.get_compiler(using=self._using)
        try:
            self._sql, self._params = self._compiler.as_sql()
        except EmptyResultSet:
            self._sql, self._params = "", ()
            return
        fields = [column[0] for column in self._compiler.select[: self._compiler.col_count]]
        self._converters = list(self._compiler.get_converters(fields).items())

    def rows(self, **given: Any) -> list[Row]:
        if not self._sql:
            return []
        connection = connections[self._using]
        params = tuple(given[value.name] if isinstance(value, _Place) else value for value in self._params)
        with connection.cursor() as cursor:
            cursor.execute(self._sql, params)
            found = cursor.fetchall()
        return list(_objects(self._compiler, self._using, self._converted(found, connection)))

    def _converted(self, found: list[tuple[Any, ...]], connection: Any) -> Iterator[Sequence[Any]]:
        if not self._converters:
            yield from found
            return
        for values in found:
            row = list(values)
            for place, (converters, expression) in self._converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, connection)
            yield row


class _Shared(ModelIterable):
    """Rows of a queryset; those that name the same related object have the very same one."""

    def __iter__(self) -> Iterator[Any]:
        queryset = self.queryset
        compiler = queryset.query.get_compiler(using=queryset.db)
        found = compiler.execute_sql(chunked_fetch=self.chunked_fetch, chunk_size=self.chunk_size)
        return _objects(compiler, queryset.db, compiler.results_iter(found))


def shared(queryset: QuerySet[Row]) -> QuerySet[Row]:
    """The queryset for a list that is only read: a hundred rows of one cluster make one cluster, not a hundred."""
    if queryset._iterable_class is not ModelIterable:  # noqa: SLF001 - `values` sets it
        return queryset
    found = queryset.all()
    found._iterable_class = _Shared  # noqa: SLF001 - as `values` does
    return found


def _objects(compiler: Any, using: str, rows: Iterator[Sequence[Any]]) -> Iterator[Any]:
    """What `ModelIterable` makes of rows, with related objects shared."""
    info, select = compiler.klass_info, compiler.select
    first, last = info["select_fields"][0], info["select_fields"][-1] + 1
    names = [column[0].target.attname for column in select[first:last]]
    related = [_populate(below, select, using) for below in info.get("related_klass_infos", ())]
    annotations = list((compiler.annotation_col_map or {}).items())
    make = info["model"].from_db
    for row in rows:
        found = make(using, names, row[first:last])
        for populate in related:
            populate(row, found)
        for name, place in annotations:
            setattr(found, name, row[place])
        yield found


def _populate(info: dict[str, Any], select: Any, using: str) -> _Populate:
    """Reads the related object out of a row; one that many rows may name is made once for each key."""
    places = info["select_fields"]
    first, last = places[0], places[-1] + 1
    names = [select[place][0].target.attname for place in range(first, last)]
    make, key = info["model"].from_db, first + names.index(info["model"]._meta.pk.attname)
    below = [_populate(further, select, using) for further in info.get("related_klass_infos", ())]
    many = not info["reverse"] and not info["field"].unique
    keep, keep_back = info["local_setter"], info["remote_setter"]
    made: dict[Any, Any] = {}

    def populate(row: Sequence[Any], owner: Any) -> None:
        pk = row[key]
        found = made.get(pk)
        if found is None and pk is not None:
            found = make(using, names, row[first:last])
            for further in below:
                further(row, found)
            if many:
                made[pk] = found
        keep(owner, found)
        if found is not None:
            keep_back(found, owner)

    return populate
