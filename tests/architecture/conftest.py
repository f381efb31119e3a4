"""What the rules read of compiled catalogues is compiled first."""

from tidesched_web.console import build

build.compile_catalogues()
