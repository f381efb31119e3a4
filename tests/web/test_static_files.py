"""Static files go out piece by piece: no iterator that the event loop would have to read whole, nothing left open."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as configured
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import FileResponse, HttpResponse
from django.test import RequestFactory

from tidesched_web.common.static_files import PIECE_BYTES, StaticFilesMiddleware

# The end of an answer looks at connections that an earlier test has left.
pytestmark = pytest.mark.django_db

TEXT = b"tide " * PIECE_BYTES  # five pieces


@pytest.fixture
def serve(tmp_path: Path, settings):
    """Ask the middleware of an installation with one file."""
    (tmp_path / "big.txt").write_bytes(TEXT)
    settings.STATIC_ROOT, settings.WHITENOISE_AUTOREFRESH = str(tmp_path), False
    middleware = StaticFilesMiddleware(lambda request: HttpResponse(b"the page"), settings)

    def ask(path: str = "/static/big.txt", method: str = "get", **headers: str) -> FileResponse:
        return middleware(getattr(RequestFactory(), method)(path, headers=headers))

    return ask


def sent(response: FileResponse) -> list[bytes]:
    """The pieces, as an ASGI server gets them; a warning fails."""

    async def read() -> list[bytes]:
        return [piece async for piece in response]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pieces = async_to_sync(read)()
    response.close()
    return pieces


def test_a_file_goes_out_in_pieces_and_is_closed(serve):
    response = serve()
    file = response._resource_closers[0].__self__
    pieces = sent(response)
    assert (b"".join(pieces), len(pieces)) == (TEXT, 5)
    assert file.closed
    assert response["Content-Type"].startswith("text/plain")


def test_a_part_of_it(serve):
    response = serve(range="bytes=5-9")
    assert (response.status_code, sent(response)) == (206, [b"tide "])


def test_answers_without_a_body(serve):
    head = serve(method="head")
    assert (head.status_code, sent(head)) == (200, [])
    again = serve(**{"if-modified-since": head["Last-Modified"]})
    assert (again.status_code, sent(again)) == (304, [])
    assert serve(method="post").status_code == 405


@pytest.mark.parametrize(("kind", "ending"), [("br", "br"), ("gzip", "gz")])
def test_a_hashed_file_is_packed_once_and_kept_by_browsers(serve, tmp_path: Path, kind: str, ending: str):
    (tmp_path / "page.css").write_text("a { color: red }\n" * 500)
    found = list(staticfiles_storage.post_process({"page.css": (staticfiles_storage, "page.css")}))
    assert not [error for _name, _hashed, error in found if isinstance(error, Exception)]
    url = staticfiles_storage.url("page.css")
    assert re.fullmatch(r"/static/page\.[0-9a-f]{12}\.css", url)
    middleware = StaticFilesMiddleware(lambda request: HttpResponse(b"the page"), configured)
    response = middleware(RequestFactory().get(url, headers={"accept-encoding": kind}))
    packed = tmp_path / f"{url.removeprefix('/static/')}.{ending}"
    assert (response["Content-Encoding"], b"".join(sent(response))) == (kind, packed.read_bytes())
    assert "immutable" in response["Cache-Control"]
    assert packed.stat().st_size < 500


def test_everything_else_passes(serve):
    assert serve("/clusters/").content == b"the page"


def test_it_is_what_serves():
    assert "tidesched_web.common.static_files.StaticFilesMiddleware" in configured.MIDDLEWARE
    assert not [name for name in configured.MIDDLEWARE if name.startswith("whitenoise")]
