"""A package's modules without what the package itself imports."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec


@contextmanager
def bare_package(name: str) -> Iterator[None]:
    """Meanwhile, modules of a top-level package are imported without running its `__init__`.

    Afterwards the package counts as not imported: whoever imports it later gets it whole, with the same modules.
    Raises ModuleNotFoundError where there is no such package.
    """
    if name in sys.modules:
        yield
        return
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.modules[name] = module_from_spec(spec)  # not executed; it knows in which folder its modules are
    try:
        yield
    finally:
        del sys.modules[name]
