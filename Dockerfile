# One image for the command line, for live use and for whatever an extra adds:
#
#   docker build -t manyarms .
#   docker run --rm manyarms policies
#
# EXTRAS are those of pyproject.toml, with commas between them; `serve` alone has no simulator.
# WARM=yes compiles the paper's policies while the image is built, for which `sim` is needed; the
# code is used on processors of the same kind only.
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
# /data is for what is kept: results, journals, saved handles. /cache can be deleted at any time.
# Compiled code is used only from a folder that nobody else can write to.
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
