from collections.abc import Iterable, Iterator

import brotli
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

# Above this size the best quality takes up to ten seconds for a tenth of the bytes. What the first page with a figure
# needs is below.
LARGE_BYTES = 1_250_000


class BoundedCompressor(Compressor):
    """Brotli at its best quality, except for large files."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        packed: bytes = brotli.compress(data, quality=9 if len(data) > LARGE_BYTES else 11)
        return packed


class HashedStorage(CompressedManifestStaticFilesStorage):
    """Compresses hashed files only: pages name no others. Source maps are read by developers' tools alone."""

    def create_compressor(self, **kwargs: object) -> Compressor:
        return BoundedCompressor(**kwargs)

    def compress_files(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        hashed = set(self.hashed_files.values())
        yield from super().compress_files([path for path in paths if path in hashed and not path.endswith(".map")])
