# One image for the command line, live use and the extras:
#
#   docker build -t manyarms .
#   docker run --rm manyarms policies
#
# EXTRAS are extras of pyproject.toml, separated by commas; `serve` alone has no simulator.
# WARM=yes compiles the paper's policies during the build, which needs the extra `sim`; the
# compiled code is used only on processors of the same kind.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=sim
WORKDIR /source
COPY pyproject.toml README.md LICENSE requirements/dev.lock ./
COPY src src
RUN python -m venv /opt/manyarms \
 && /opt/manyarms/bin/pip install --no-cache-dir --constraint dev.lock ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
ARG WARM=no
COPY --from=build /opt/manyarms /opt/manyarms
# /data is for results and stores. /cache can be deleted at any time. Compiled code is used only
# from a folder that no other user can write to.
RUN install -d -o nobody -g nogroup -m 0700 /data /cache
ENV PATH=/opt/manyarms/bin:$PATH \
    HOME=/data \
    MANYARMS_CACHE=/cache \
    MPLCONFIGDIR=/cache/matplotlib \
    PYTHONUNBUFFERED=1
USER nobody
WORKDIR /data
RUN if [ "$WARM" = yes ]; then manyarms warm; fi
VOLUME ["/data"]
ENTRYPOINT ["manyarms"]
CMD ["--help"]
