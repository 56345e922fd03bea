#!/usr/bin/env bash
# Build llama-server from the llama.cpp that llama-cpp-python carries: the same sources, compiler and flags as Octavo's own.
#
#     benchmarks/build_llama_server.sh VERSION TARGET
#
# TARGET becomes a folder with llama-server and its libraries (about 10 minutes on two cores). PYTHON and CXX choose the
# interpreter and the compiler, JOBS how many compile at once, CMAKE_ARGS adds flags.
set -euo pipefail

version=$1
target=$2
cure=$(cd "$(dirname "$0")/../native" && pwd)/amx_tile_config_cure.h

mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$(dirname "$target")/build.XXXXXX")
trap 'rm -rf "$work"' EXIT

# pip asks an sdist's build backend for its metadata; with the backend installed first nothing else is fetched for it.
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet 'scikit-build-core>=0.11' packaging pathspec
command -v cmake >/dev/null || "$work/venv/bin/pip" install --quiet cmake
command -v ninja >/dev/null || "$work/venv/bin/pip" install --quiet ninja
PATH=$PATH:$work/venv/bin

"$work/venv/bin/pip" download --quiet --no-deps --no-binary :all: --no-build-isolation --dest "$work" \
    "llama-cpp-python==$version"
mkdir "$work/source"
tar -xzf "$work/llama_cpp_python-$version.tar.gz" --strip-components 1 -C "$work/source"

# The user interface would be fetched while compiling: leave it out, and leave out TLS, which a loopback peer has no use for.
# shellcheck disable=SC2086  # CMAKE_ARGS is a list of flags
cmake -G Ninja -S "$work/source/vendor/llama.cpp" -B "$work/build" \
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=ON "-DCMAKE_CXX_FLAGS=-include \"$cure\"" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN;@loader_path' \
    -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF ${CMAKE_ARGS:-}
cmake --build "$work/build" --target llama-server --parallel "${JOBS:-2}"

rm -rf "$target"
mv "$work/build/bin" "$target"
