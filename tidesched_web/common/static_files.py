from collections.abc import AsyncIterator
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.http import FileResponse, HttpRequest
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

PIECE_BYTES = 256 * 1024


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Serves static files. WhiteNoise's own answer holds a plain iterator, which Django would read whole first."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> FileResponse:
        response = WhiteNoiseMiddleware.serve(static_file, request)
        file = response.file_to_stream
        response.streaming_content = _pieces(file)
        return response


async def _pieces(file: BinaryIO | None) -> AsyncIterator[bytes]:
    while file is not None and (piece := await sync_to_async(file.read, thread_sensitive=False)(PIECE_BYTES)):
        yield piece
