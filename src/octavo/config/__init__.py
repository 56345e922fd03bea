"""Settings: defaults < octavo.toml < environment < flags. Each option is described once.

The option `drain_timeout` is `drain-timeout = 10` (or `drain_timeout = 10`) in the file, OCTAVO_DRAIN_TIMEOUT in the
environment and `--drain-timeout 10` on the command line. The environment is read here and nowhere else.
"""

from octavo.config.folders import state_folder
from octavo.config.load import key_for_calls, load_settings
from octavo.config.option import Option, flag_of
from octavo.config.settings import Settings, options
from octavo.config.tracing import wants_traces

__all__ = ["Option", "Settings", "flag_of", "key_for_calls", "load_settings", "options", "state_folder", "wants_traces"]
