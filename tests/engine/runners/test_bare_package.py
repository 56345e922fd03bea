"""Modules of a package without the package's own imports."""

import sys
from pathlib import Path

import pytest

from octavo.engine.runners.llama_cpp.bare_package import bare_package


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "heavy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from heavy_package.part import VALUE\nIS_WHOLE = True\n")
    (folder / "part.py").write_text("VALUE = object()\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("heavy_package", "heavy_package.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_module_is_imported_without_running_the_package() -> None:
    with bare_package("heavy_package"):
        from heavy_package import part

        assert not hasattr(sys.modules["heavy_package"], "IS_WHOLE")

    assert sys.modules["heavy_package.part"] is part
    assert "heavy_package" not in sys.modules


def test_whoever_imports_the_package_later_gets_it_whole_with_the_same_module() -> None:
    with bare_package("heavy_package"):
        from heavy_package import part
    import heavy_package

    assert heavy_package.IS_WHOLE
    assert heavy_package.VALUE is part.VALUE


def test_a_package_that_is_imported_already_is_left_as_it_is() -> None:
    import heavy_package

    with bare_package("heavy_package"):
        assert sys.modules["heavy_package"] is heavy_package
    assert sys.modules["heavy_package"] is heavy_package


def test_a_package_that_is_not_there_is_said() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), bare_package("no_such_package"):
        pass
