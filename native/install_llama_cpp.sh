#!/usr/bin/env bash
# Install llama-cpp-python, built for this processor and with the files of this folder, into a virtual environment.
#
#     native/install_llama_cpp.sh VENV VERSION
#
# The wheel is built once (6 to 12 minutes on two cores) and kept in ~/.cache/octavo/wheels, in a folder whose name is a
# digest of all that the result depends on: another compiler, processor, version or file here is another wheel. pip's own
# cache knows none of these, so it is not used here.
set -euo pipefail

venv=$1
version=$2
here=$(cd "$(dirname "$0")" && pwd)
compiler=${CXX:-c++}

command -v "$compiler" >/dev/null || {
    echo "A C++ compiler is needed (Debian: apt-get install g++; macOS: xcode-select --install)." >&2
    exit 1
}

processor() {
    if [ -r /proc/cpuinfo ]; then
        grep -m 2 -E '^(flags|Features|model name)' /proc/cpuinfo || uname -m
    else
        sysctl -n machdep.cpu.brand_string
    fi
}
digest() { "$venv/bin/python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest()[:16])'; }

key=$({ echo "$version ${CMAKE_ARGS:-}"; "$compiler" --version; cat "$here"/*; processor; } | digest)
wheels=${XDG_CACHE_HOME:-$HOME/.cache}/octavo/wheels/$key
marker=$venv/.llama-cpp-$key

[ -e "$marker" ] && exit 0

unpack() {
    "$venv/bin/pip" download --quiet --no-cache-dir --no-deps --no-binary llama-cpp-python --dest "$1" \
        "llama-cpp-python==$version"
    mkdir "$1/source"
    tar -xzf "$1"/llama_cpp_python-"$version".tar.gz --strip-components 1 -C "$1/source"
}

# patch(1) is not everywhere where a compiler is; pip is.
patch_sources() {
    "$venv/bin/pip" install --quiet --no-deps --target "$1/tools" patch-ng==1.19.1
    PYTHONPATH=$1/tools "$venv/bin/python" -m patch_ng --strip 1 --directory "$1/source/vendor/llama.cpp" \
        "$here/llama_cpp.patch"
    cp "$here"/*.cpp "$here"/interleaved_quants.h "$here"/grouped_attention.h "$1/source/vendor/llama.cpp/ggml/src/ggml-cpu/"
}

if ! compgen -G "$wheels/llama_cpp_python-$version-*.whl" >/dev/null; then
    echo "Building llama.cpp for this processor (once; 6 to 12 minutes on two cores) …"
    build=$(mktemp -d)
    trap 'rm -rf "$build"' EXIT
    unpack "$build"
    patch_sources "$build"
    # The path of the cure must not change between builds, nor hold a space: compile from a copy in the build folder.
    cp "$here/amx_tile_config_cure.h" "$build/cure.h"
    CMAKE_ARGS="-DCMAKE_CXX_FLAGS=-include$build/cure.h ${CMAKE_ARGS:-}" \
        "$venv/bin/pip" wheel --no-cache-dir --no-deps --wheel-dir "$build/wheels" "$build/source"
    mkdir -p "$wheels"
    mv "$build"/wheels/llama_cpp_python-*.whl "$wheels/"
fi

"$venv/bin/pip" install --quiet --no-deps --force-reinstall "$wheels"/llama_cpp_python-"$version"-*.whl
rm -f "$venv"/.llama-cpp-*
touch "$marker"
