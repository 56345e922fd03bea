r"""JSON schemas, as grammars of which every text is valid JSON under the schema; or a refusal that names the place.

How one is made, a step a file:
- `references` and `check`: the Document is well-formed, and knows what its references lead to;
- a Goal is a schema of it that a value must be valid or invalid under, or a constant that it equals or does not;
- `cases`: what fulfils several goals, as cases. `assertions` and `negations` take a schema's own keywords for facts,
  `applicators` combine the cases of its subschemas, `possible` drops the cases whose facts contradict each other;
- `objects`, `arrays`, `strings` and `numbers`: a case's facts of one kind of value, as alternatives of a rule;
- `grammar`: a rule for each set of goals that a part of the value has; `rules` drops what allows nothing.
A step may lose texts that are valid, and never adds one that is not.

Why not by llguidance's own compiler of JSON schemas (1.7.6)? It refuses `not`, `oneOf`, `if` and more: it takes 164 of
the test suite's 368 schemas. What it takes it does not always keep to: `{"\u0061": 1}` passes `properties` for `a`, and
2.999999999999999999, as a double, passes `exclusiveMaximum: 3`. White space goes on without end, whatever
`whitespace_pattern` says, and so do digits.
"""

from octavo.constraints.schema.prepare import prepared

__all__ = ["prepared"]
