import logging
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

import urllib3

from tidesched_web.clusters.kubernetes import plain_text
from tidesched_web.clusters.kubernetes.answers import BeyondBound, lines_of
from tidesched_web.clusters.kubernetes.client import ApiFailure, Json, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.paths import Kind

log = logging.getLogger(__name__)

Key = tuple[str, str]  # namespace and name

PAGE = 500
# A list of more pages than this, a million objects, has no end.
MOST_PAGES = 2_000
# A watch is asked to end after about so long, so that a silent one is never trusted for longer.
_WATCH_SECONDS = 30
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 5.0


class Sink(Protocol):
    def replace(self, kind: Kind, objects: list[Json], version: int) -> None:
        """These are all objects of ``kind`` at ``version``."""

    def change(self, kind: Kind, type_: str, obj: Json) -> None:
        """One event: ADDED, MODIFIED or DELETED."""


@runtime_checkable
class PagedSink(Protocol):
    """As :class:`Sink`, for more objects than should be held twice: a list comes page by page."""

    def page(self, kind: Kind, objects: list[Json]) -> None:
        """Some objects of a list."""

    def ended(self, kind: Kind, keys: set[Key], version: int) -> None:
        """The list is complete: at ``version`` there are no others than those of ``keys``."""

    def change(self, kind: Kind, type_: str, obj: Json) -> None:
        """As :meth:`Sink.change`."""


class _Expired(Exception):
    """The server does not have the changes since our version any more."""


class Reflector(threading.Thread):
    """``heard``: monotonic time of the last answer. ``failed``: of the first failure after it.
    ``absent``: not known, or not shown and may be spared.
    ``went_back``: the server is in an older state than before, and how that was seen."""

    def __init__(self, client: KubernetesClient, kind: Kind, sink: Sink | PagedSink) -> None:
        super().__init__(name=f"watch-{kind.plural}", daemon=True)
        self.kind = kind
        self.synced = threading.Event()
        self.heard = self.failed = float("-inf")
        self.error = ""
        self.code = 0
        self.absent = False
        self._client = client
        self._sink = sink
        self._ending = threading.Event()
        self._response: urllib3.HTTPResponse | None = None
        self._version = ""
        self.newest, self._broke = 0, False
        self.breaks = 0  # connections that ended before their time
        self.went_back = ""
        self._expired = 0  # lists and watches in a row that found their version gone

    def run(self) -> None:
        delay = _FIRST_DELAY
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                if not self._version:
                    self._list()
                if self._ending.is_set():
                    return
                self._watch()
                delay, self._expired = _FIRST_DELAY, 0
                continue
            except _Expired:
                self._version = ""
                self._expired += 1
                if self._expired < 2:  # at once; but not in a circle with a server that has nothing to go on from
                    continue
            except (ApiFailure, Unreachable) as error:
                if isinstance(error, Unreachable):
                    self._version = ""  # a server that was away may be back in an older state: no watch would say so
                    self.breaks += 1
                self._failed(str(error), code=getattr(error, "code", 0))
                self._ending.wait(min(getattr(error, "retry_after", 0.0), _LONGEST_DELAY))
            except BeyondBound as error:
                self._version = ""  # the same event would come again
                self._failed(f"{self._client.connection.url}: {error}")
            except (urllib3.exceptions.HTTPError, OSError) as error:
                self._broke = True
                self.breaks += 1
                delay = delay if time.monotonic() - began < _LONGEST_DELAY else _FIRST_DELAY
                self._failed(f"the watch broke: {error}")
            except Exception as error:
                # An object that cannot be digested must not end the thread: the cache would grow old unnoticed.
                log.exception("watching %s failed; listing again", self.kind.plural)
                self._version = ""
                self._failed(str(error))
            # Jitter, so that the watches of many processes do not come back as one.
            self._ending.wait(delay * random.uniform(0.5, 1.5))
            delay = min(delay * 2, _LONGEST_DELAY)

    def stop(self) -> None:
        self._ending.set()
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (ValueError, RuntimeError, OSError):
                return  # it ended by itself just now

    def _failed(self, message: str, *, code: int = 0) -> None:
        if not self._ending.is_set() and message != self.error:
            log.warning("%s: %s", self.kind.plural, message)
        if not self.error:
            self.failed = time.monotonic()
        self.error, self.code = message, code

    def _list(self) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix=f"{self.name}-ahead") as ahead:
            self._list_with(ahead)

    def _list_with(self, ahead: ThreadPoolExecutor) -> None:
        """The server makes the next page, ``ahead``, while the sink takes one."""
        whole: list[Json] = []
        keys: set[Key] = set()
        coming: Future[Json] | None = None
        # A list that outlived its version between two pages is asked for in one piece.
        query: dict[str, Any] = {"limit": PAGE} if self._expired < 2 else {}
        absent = False
        pages = 0
        while True:
            pages += 1
            if pages > MOST_PAGES:
                raise BeyondBound(
                    "too_large", f"the list has not ended after {MOST_PAGES} pages, the most that are read"
                )
            if self._ending.is_set():
                return
            try:
                page = coming.result() if coming is not None else self._first(query)
            except ApiFailure as error:
                if error.code == 410 and "continue" in query:
                    raise _Expired from None
                if error.code == 404 or (error.code == 403 and self.kind.spare):
                    page, absent = {"items": [], "metadata": {"resourceVersion": ""}}, True
                else:
                    raise
            metadata = page["metadata"]
            if metadata.get("continue"):
                query["continue"] = metadata["continue"]
                coming = ahead.submit(self._client.get, self.kind.path(), dict(query))
            for obj in page["items"]:
                # Items of a list come without what is said once for all of them.
                obj.setdefault("kind", self.kind.name)
                obj.setdefault("apiVersion", self.kind.group_version)
            if isinstance(self._sink, PagedSink):
                self._sink.page(self.kind, page["items"])
                keys.update(key_of(obj) for obj in page["items"])
            else:
                whole += page["items"]
            if not metadata.get("continue"):
                break
        version = self._follow(metadata["resourceVersion"])
        if isinstance(self._sink, PagedSink):
            self._sink.ended(self.kind, keys, version)
        else:
            self._sink.replace(self.kind, whole, version)
        self._version = metadata["resourceVersion"]
        self.absent = absent
        self._alive()
        self.synced.set()

    def _first(self, query: dict[str, Any]) -> Json:
        return self._client.get(self.kind.path(), query, whole="limit" not in query)

    def _watch(self) -> None:
        if not self._version:
            self._ending.wait(_LONGEST_DELAY)
            return
        if self._broke:  # the server may be back in an older state, from which a watch says nothing for long
            self._compare(self._client.get(self.kind.path(), {"limit": 1})["metadata"]["resourceVersion"])
            self._broke = False
        seconds = random.uniform(0.8, 1.2) * _WATCH_SECONDS
        query = {
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": int(seconds),
        }
        try:
            with self._client.stream(self.kind.path(), query, read_timeout=seconds + 10) as response:
                self._response = response
                self._alive()
                for line in lines_of(response):
                    self._take(plain_text.loads(line))
                    if self._ending.is_set():
                        return
        except ApiFailure as error:
            # 404: the kind went; the list says so, and when it is back.
            if error.code in (404, 410) or (error.code == 403 and self.kind.spare):
                raise _Expired from None
            raise
        finally:
            self._response = None

    def _take(self, event: Json) -> None:
        type_, obj = event["type"], event["object"]
        if type_ == "ERROR":
            if obj.get("code") == 410:
                raise _Expired
            raise ApiFailure(int(obj.get("code") or 500), obj)
        if type_ != "BOOKMARK":
            self._sink.change(self.kind, type_, obj)
        self._version = obj["metadata"]["resourceVersion"]
        self._follow(self._version)
        self._alive()

    def _follow(self, version: str) -> int:
        number = self._compare(version)
        self.newest = max(self.newest, number)
        return number

    def _compare(self, version: str) -> int:
        """Versions grow. Where one does not, the server has lost what it had said."""
        number = int(version or 0)
        if version and number < self.newest:
            self.went_back = f"{self.kind.plural} were of version {self.newest} and are of version {number}"
        return number

    def _alive(self) -> None:
        self.heard = time.monotonic()
        self.error, self.code = "", 0


def key_of(obj: Json) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
