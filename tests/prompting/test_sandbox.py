import pytest
from prompting_builders import user

from octavo.errors import TemplateError
from octavo.prompting import ChatTemplate


def failure(source: str, *, deadline: float = 2.0) -> str:
    with pytest.raises(TemplateError) as stopped:
        ChatTemplate(source, deadline=deadline).render([user("Hi")], bos_token="<s>", eos_token="</s>")
    assert len(stopped.value.message) < 400
    assert "/" not in stopped.value.message
    return stopped.value.message


NESTED_LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
FILTERED_LOOPS = "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}"
RECURSIVE_LOOP = (
    "{% for a in range(99999) recursive %}{% if loop.depth < 9 %}{{ loop(range(99999)) }}{% endif %}{% endfor %}"
)
BRANCHING_MACRO = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}"
NESTED_FILTERS = (
    "{% set l = [range(99999)] * 99999 %}{% set r = l | map('reject', 'odd') | map('list') | map('length') | list %}"
)
NESTED_LOOKUPS = (
    "{% set l = ['x' * 9999] * 9999 %}{% for x in l %}{{ l | map('replace', 'y', 'z') | list }}{% endfor %}"
)


@pytest.mark.parametrize(
    "source",
    [NESTED_LOOPS, FILTERED_LOOPS, RECURSIVE_LOOP, BRANCHING_MACRO, NESTED_FILTERS, NESTED_LOOKUPS],
    ids=["loops", "filtered loops", "recursive loop", "macro", "filters", "lookups"],
)
def test_a_template_that_does_not_come_to_an_end_is_stopped(source: str) -> None:
    assert failure(source, deadline=0.2).startswith("the model's chat template was stopped: it ")


def test_the_message_of_a_stopped_template_names_the_deadline() -> None:
    assert (
        failure(NESTED_LOOPS, deadline=0.1) == "the model's chat template was stopped: it ran longer than 0.1 seconds"
    )


DOUBLING = "{% set ns = namespace(v='x') %}{% for i in range(60) %}{% set ns.v = EXPRESSION %}{% endfor %}{{ ns.v }}"


@pytest.mark.parametrize(
    "expression",
    [
        "'x' * 2000000000",
        "2000000000 * 'x'",
        "[0] * 2000000000",
        "2 ** 2000000000",
        "10 ** 999 ** 9",
        "'%2000000000d' % 1",
        "'%*d' % (2000000000, 1)",
        "'%.2000000000f' % 1.5",
        "'%2000000000d' | format(1)",
        "'{:2000000000}'.format(1)",
        "'{:{}}'.format(1, 2000000000)",
        "('{:9999}' * 9999).format(*range(9999))",
        "'ab' | indent(2000000000, true)",
        "'x' * 9999 * 999 | replace('x', 'y' * 9999)",
        "('x' * 99999).replace('', 'y' * 99999)",
        "(['x' * 9999] * 9999) | join",
        "('y' * 9999).join(['x'] * 9999)",
        "(range(99999) | map('replace', '', 'x' * 9999)) | list",
        "[[1]] | tojson(indent=2000000000)",
        "range(2000000000) | list",
        "strftime_now('%Y' * 99999)",
        "'x' | center(2000000000)",
        "'x'.center(2000000000)",
        "'x'.ljust(2000000000)",
        "'x'.zfill(2000000000)",
        "'\\t'.expandtabs(2000000000)",
        "'x'.translate({120: 'y' * 99999})",
        "(1).to_bytes(2000000000, 'big')",
        "1 | round(2000000000)",
        "[1] | batch(2000000000, 'x') | list",
        "lipsum(n=2000000)",
        "('9' * 999999) | int(base=16) * 2",
    ],
)
def test_an_expression_cannot_make_a_huge_value(expression: str) -> None:
    assert "ran longer" not in failure("{{ " + expression + " }}", deadline=60)


@pytest.mark.parametrize(
    "expression",
    [
        "ns.v ~ ns.v",
        "ns.v + ns.v",
        "[ns.v, ns.v]",
        "{'a': ns.v, 'b': ns.v}",
        "(ns.v, ns.v)",
        "ns.v | replace('x', 'xx')",
        "'%s%s' % (ns.v, ns.v)",
        "'{0}{0}'.format(ns.v)",
        "dict(a=ns.v, b=ns.v).values()",
    ],
)
def test_a_value_cannot_double_without_end(expression: str) -> None:
    message = failure(DOUBLING.replace("EXPRESSION", expression), deadline=60)
    assert message.startswith("the model's chat template was stopped: it makes too")


def test_text_cannot_double_without_end_in_macros_and_blocks() -> None:
    assert "too much text" in failure(
        "{% macro f(n) %}{{ 'x' * 9999 }}{{ f(n - 1) * 2 if n }}{% endmacro %}{{ f(60) }}"
    )
    source = "{% set ns = namespace(v='x') %}{% for i in range(60) %}{% set v %}{{ ns.v }}{{ ns.v }}{% endset %}"
    assert "too much text" in failure(source + "{% set ns.v = v %}{% endfor %}")


def test_the_output_is_bounded() -> None:
    assert "too much text" in failure("{% for i in range(99999) %}" + "x" * 9999 + "{% endfor %}", deadline=60)


def test_copies_that_are_kept_are_counted() -> None:
    source = "{% set big = 'x' * 9999999 %}{% set l = [0] * 999999 %}"
    source += "{% for i in range(9999) %}{% set y = EXPRESSION %}{% endfor %}"
    for expression in ("big[1:]", "big.upper()", "big | upper", "l[1:]", "l | list"):
        assert "it makes too" in failure(source.replace("EXPRESSION", expression), deadline=60)


def test_comparing_lists_that_hold_each_other_is_refused() -> None:
    doubled = "{% set ns.X = [ns.X, ns.X] %}"
    source = (
        "{% set ns = namespace(a=1, b=1) %}{% for i in range(18) %}A{% endfor %}{% set a = ns.a %}{% set b = ns.b %}"
    )
    source = source.replace("A", doubled.replace("X", "a") + doubled.replace("X", "b"))
    more = "{% set a = [a, a, a, a, a, a, a, a] %}"
    assert "it makes too" in failure(source + more + "{{ a == b }}", deadline=60)


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__[1].__subclasses__()",
        "messages.__class__",
        "(''|attr('__class__')).__mro__",
        "raise_exception.__globals__",
        "strftime_now.__self__._guard",
        "'{0.__class__.__mro__}'.format('')",
        "''.format.__globals__",
        "''['__class__']['__mro__']",
        "messages | map(attribute='__class__') | list | first | attr('mro')",
        "cycler.__init__.__globals__",
        "namespace.__init__.__globals__",
        "dict.mro()",
        "self.__init__",
        "messages.append(1)",
        "messages[0].update({})",
        "dict.fromkeys('abc')",
        "loop",
        "''.encode().hex()",
    ],
)
def test_attributes_of_python_are_out_of_reach(expression: str) -> None:
    source = "{{ (" + expression + ").x }}"
    assert failure(source).startswith("the model's chat template failed: ")


@pytest.mark.parametrize("tag", ["include 'x'", "import 'x' as x", "from 'x' import y", "extends 'x'"])
def test_a_template_cannot_reach_other_files(tag: str) -> None:
    assert failure("{% " + tag + " %}").startswith("the model's chat template failed: ")


def test_recursion_without_end_is_stopped() -> None:
    assert failure("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").endswith("nests too deeply")
    assert failure("{% block b %}{{ self.b() }}{% endblock %}").endswith("nests too deeply")
    assert failure("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}").startswith("the model's chat template failed: ")


@pytest.mark.parametrize(
    "expression", ["nothing.x", "1 + 'a'", "1 / 0", "messages['a'].b", "'%d' % 'x'", "range(1, 2, 0)"]
)
def test_a_template_that_fails_says_so(expression: str) -> None:
    assert failure("{{ " + expression + " }}").startswith("the model's chat template failed: ")


def test_escaping_for_html_is_not_supported() -> None:
    with pytest.raises(TemplateError, match="autoescape"):
        ChatTemplate("{% autoescape true %}{{ 1 }}{% endautoescape %}")
