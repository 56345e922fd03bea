"""Rewrites a parsed template so that no part of it works without being accounted for."""

from jinja2 import nodes
from jinja2.exceptions import TemplateAssertionError
from jinja2.visitor import NodeTransformer

# Names with a space, which no template can write.
METER = "meter value"
WEIGH = "weigh value"
CONCATENATE = "concatenate values"


def metered(template: nodes.Template) -> nodes.Template:
    """Pass through the filters METER (the value was made), WEIGH (all that is in it will be read) and CONCATENATE what
    Jinja would compile to plain Python: each turn of a loop, comparisons, slices, literals and `~`. Calls, filters,
    tests and other operators have hooks of their own."""
    environment = template.environment
    result: nodes.Template = _Meters().visit(template)
    result.set_environment(environment)  # type: ignore[arg-type]
    return result


class _Meters(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        turn = nodes.ExprStmt(_filtered(METER, nodes.Const(None, lineno=node.lineno)), lineno=node.lineno)
        # In the body rather than around the iterable, because a recursive loop is given others later.
        node.body.insert(0, turn)
        if isinstance(node.test, nodes.Expr):
            node.test = _filtered(METER, node.test)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _weighed(node.expr)
        for operand in node.ops:
            operand.expr = _weighed(operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(CONCATENATE, nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filtered(METER, node.node)
        return node

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(METER, node)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(METER, node)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        # Of tuples all is read: they can be keys, and a hash goes through what they hold.
        return _filtered(WEIGH, node) if node.ctx == "load" else node

    def visit_ScopedEvalContextModifier(self, node: nodes.ScopedEvalContextModifier) -> nodes.Node:  # noqa: N802
        # Prompts are not HTML, and escaping would go around the hooks.
        raise TemplateAssertionError("the tag 'autoescape' is not supported", node.lineno)


def _weighed(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filtered(WEIGH, node)


def _filtered(name: str, node: nodes.Expr) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
