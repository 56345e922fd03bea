"""JSON schemas, as the grammar library takes them."""

from octavo.constraints.schema.prepare import prepared

__all__ = ["prepared"]
