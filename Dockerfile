# Images of edgefast. Targets: `proxy` (default: the data plane, and standalone) and `controller` (the control plane).
#
#   docker build --target proxy -t edgefast .
#   docker build --target controller -t edgefast-controller .
#   docker run --read-only -v $PWD/examples:/etc/edgefast:ro -p 8080:8080 edgefast run -f /etc/edgefast/quickstart.yaml
#
# WHEEL selects where the wheel comes from: `build` compiles it, `dist` takes that of `make wheels`:
#
#   docker build --target proxy --build-arg WHEEL=dist -t edgefast .
#
# Both run as 65532:65532 and need no writable file system; a volume on /var/lib/edgefast (--state-dir) is optional.
# Probes and Prometheus reach 19003 (8081 of the controller) and 19001 from outside; admin (19000) is on loopback inside.
# BASE is any Debian-like image with Python 3.11 or newer; the same one is used to build and to run. Without a container
# engine, and without a registry to pull BASE from: make image.

ARG BASE=python:3.13-slim-bookworm
ARG WHEEL=build

# Images named python have venv; Debian's own Python has it in a package.
FROM ${BASE} AS environment
RUN python3 -c 'import ensurepip' 2>/dev/null \
 || { apt-get update && apt-get install -y --no-install-recommends python3-venv && apt-get clean && rm -rf /var/lib/apt/lists/*; }
RUN python3 -m venv /opt/edgefast

# Debian 12's own cargo is older than the registry's index; cargo-web there is newer.
FROM environment AS build
RUN apt-get update \
 && if apt-cache show cargo-web >/dev/null 2>&1; then cargo=cargo-web; else cargo=cargo; fi \
 && apt-get install -y --no-install-recommends ca-certificates gcc g++ libc6-dev libnghttp2-dev cmake make $cargo \
 && { python3 -c 'import sysconfig; open(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null \
      || apt-get install -y --no-install-recommends python3-dev; } \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The TLS library is AWS-LC, inside of the engine. A layer of its own: it changes with its version alone.
ENV EDGEFAST_TLS=aws-lc
COPY csrc/libraries csrc/libraries
RUN python3 csrc/libraries/build.py aws-lc
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY csrc csrc
COPY edgefast edgefast
COPY controller controller
COPY docs docs
# Compiled once; each target installs the wheel with what it alone needs.
RUN /opt/edgefast/bin/python -P -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM scratch AS dist
COPY dist/*.whl /wheels/

FROM ${WHEEL} AS wheel

# unchecked-hash: the image has one time for all files, which is not the time in a .pyc.
FROM environment AS proxy-packages
COPY --from=wheel /wheels /wheels
RUN wheel=$(ls /wheels/*-$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-*.whl) \
 && /opt/edgefast/bin/python -P -m pip install --no-cache-dir --no-compile "$wheel[xds,tracing]" \
 && /opt/edgefast/bin/python -P -m pip uninstall --yes pip \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/edgefast

FROM environment AS controller-packages
COPY --from=wheel /wheels /wheels
RUN wheel=$(ls /wheels/*-$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')-*.whl) \
 && /opt/edgefast/bin/python -P -m pip install --no-cache-dir --no-compile "$wheel[controller]" \
 && /opt/edgefast/bin/python -P -m pip uninstall --yes pip \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/edgefast

FROM ${BASE} AS runtime
# No command takes code from the folder that it is started in, nor one that somebody starts by hand in a container.
ENV PATH=/opt/edgefast/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1
# HTTP/2's frames: the distribution's library, so that its fixes come with the base image's. A wheel of `make wheels` has its own.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libnghttp2-14 \
 && apt-get clean && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /var/lib/edgefast && chown 65532:65532 /var/lib/edgefast
WORKDIR /
USER 65532:65532
STOPSIGNAL SIGTERM

FROM runtime AS controller
# Its threads hardly allocate: heaps of their own are memory that nobody uses.
ENV MALLOC_ARENA_MAX=1
COPY --from=controller-packages /opt/edgefast /opt/edgefast
EXPOSE 8081 18000 18001 18002 19001
ENTRYPOINT ["edgefast-controller"]
CMD ["run"]

FROM runtime AS proxy
COPY --from=proxy-packages /opt/edgefast /opt/edgefast
EXPOSE 8080 8443 19001 19003
ENTRYPOINT ["edgefast"]
CMD ["run", "-f", "/etc/edgefast"]
