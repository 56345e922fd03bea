"""Where llama.cpp has the kernels of native/."""

import pytest

from octavo.engine.runners.llama_cpp import binding


def skip_without_own_kernels() -> None:
    """What only they promise cannot be asked of a build for another processor."""
    if "AVX2 = 1" not in binding.system_info() or "AMX" in binding.system_info():
        pytest.skip("built for a processor whose kernels are llama.cpp's own")
