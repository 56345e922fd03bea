"""The document that a schema is, and what its references lead to. Nothing is ever fetched."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from octavo.constraints.schema.check import check_schema, subschemas
from octavo.constraints.schema.paths import Path, unsupported
from octavo.errors import UnsupportedGrammar

_ROOT = "http://schema.invalid/"
_INDEX = re.compile(r"0|[1-9][0-9]*")


class Document:
    """A well-formed schema, whose parts are named by their paths."""

    def __init__(self, root: Any) -> None:
        check_schema(root)
        self._root = root
        self._resources: dict[str, Path] = {_ROOT: ()}
        self._anchors: dict[str, Path] = {}
        self._bases: dict[Path, str] = {}
        self._dynamic: dict[str, list[Path]] = {}
        self._register((), root, _ROOT)

    def at(self, path: Path) -> Any:
        node = self._root
        for step in path:
            node = node[step]
        return node

    def target(self, path: Path, keyword: str) -> Path:
        """What the `$ref` or `$dynamicRef` of the schema at `path` refers to.

        Raises UnsupportedGrammar where that is no part of the document, or known only while a value is validated.
        """
        place = (*path, keyword)
        reference = self.at(place)
        found = self._found(place, _joined(self._base(path), reference))
        if keyword == "$dynamicRef" and (name := self._dynamic_name(found, reference)):
            return self._outermost(place, name)
        return found

    def _register(self, path: Path, schema: Any, base: str) -> None:
        if not isinstance(schema, Mapping):
            return
        identity = schema.get("$id")
        if isinstance(identity, str) and identity.startswith("#"):  # an anchor of draft 6 and 7
            self._anchors[base + identity] = path
        elif isinstance(identity, str):
            base = urldefrag(_joined(base, identity)).url
            self._resources[base] = path
        self._bases[path] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in schema:
                self._anchors[f"{base}#{schema[keyword]}"] = path
        if "$dynamicAnchor" in schema:
            self._dynamic.setdefault(schema["$dynamicAnchor"], []).append(path)
        for place, child in subschemas(path, schema):
            self._register(place, child, base)

    def _base(self, path: Path) -> str:
        return next(self._bases[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self._bases)

    def _found(self, place: Path, address: str) -> Path:
        base, fragment = urldefrag(address)
        fragment = unquote(fragment)
        if base not in self._resources:
            raise unsupported(place, f"{self.at(place)!r} is not in this schema, and nothing is fetched.")
        if fragment and not fragment.startswith("/"):
            if f"{base}#{fragment}" not in self._anchors:
                raise unsupported(place, f"{self.at(place)!r} refers to nothing in this schema.")
            return self._anchors[f"{base}#{fragment}"]
        return self._pointed(place, self._resources[base], fragment)

    def _pointed(self, place: Path, start: Path, pointer: str) -> Path:
        path, node = start, self.at(start)
        for name in _names(pointer):
            step = _step(node, name)
            if step is None:
                raise unsupported(place, f"{self.at(place)!r} refers to nothing in this schema.")
            path, node = (*path, step), node[step]
        if path not in self._bases and not isinstance(node, bool):
            self._adopt(place, path, node)
        return path

    def _adopt(self, place: Path, path: Path, node: Any) -> None:
        """A schema that stands where none is expected, but is referred to."""
        try:
            check_schema(node)
        except UnsupportedGrammar as error:
            raise unsupported(place, f"what {self.at(place)!r} refers to is no schema.") from error
        self._register(path, node, self._base(path))

    def _dynamic_name(self, found: Path, reference: str) -> str | None:
        """The name that is looked up again, where the reference leads to a dynamic anchor by its name."""
        schema = self.at(found)
        name = schema.get("$dynamicAnchor") if isinstance(schema, Mapping) else None
        return name if name is not None and urldefrag(reference).fragment == name else None

    def _outermost(self, place: Path, name: str) -> Path:
        """The anchor that validation meets first: the root's, or the only one."""
        anchors = self._dynamic[name]
        of_root = [path for path in anchors if self._base(path) == self._base(())]
        if len(of_root) == 1:
            return of_root[0]
        if len(anchors) == 1:
            return anchors[0]
        raise unsupported(place, f"which of the anchors {name!r} is meant depends on the value.")


def _joined(base: str, reference: str) -> str:
    return base + reference if reference.startswith("#") else urljoin(base, reference)


def _names(pointer: str) -> Iterator[str]:
    return (name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:])


def _step(node: Any, name: str) -> str | int | None:
    if isinstance(node, Mapping):
        return name if name in node else None
    if isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(node):
        return int(name)
    return None
