"""What is read from /metrics."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from octavo.cli.metrics_page import Change, MetricsPage


class Source:
    """A counter and a histogram, and their page."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.counter = Counter("things", "Things.", ["status"], registry=self._registry)
        self.histogram = Histogram("seconds", "Times.", ["model"], registry=self._registry, buckets=(1.0, 2.0, 4.0))

    def page(self) -> MetricsPage:
        return MetricsPage(generate_latest(self._registry).decode())


@pytest.fixture
def source() -> Source:
    return Source()


def test_a_total_is_of_the_samples_whose_labels_begin_so(source: Source) -> None:
    for status, number in (("200", 3), ("500", 4), ("503", 5)):
        source.counter.labels(status).inc(number)
    page = source.page()
    assert page.total("things_total") == 12
    assert page.total("things_total", status="5") == 9
    assert page.total("nothing_total") == 0
    assert "things_total" in page
    assert "nothing_total" not in page


def test_a_counter_is_told_by_what_it_has_counted_meanwhile(source: Source) -> None:
    source.counter.labels("200").inc(10)
    before = source.page()
    source.counter.labels("200").inc(5)
    assert Change(before, source.page(), 2.0).per_second("things_total") == 2.5


def test_a_server_that_was_started_anew_has_counted_from_nothing(source: Source) -> None:
    source.counter.labels("200").inc(10)
    anew = Source()
    anew.counter.labels("200").inc(4)
    for seconds in (0.5, 3.0, 3.0):
        source.histogram.labels("a").observe(seconds)
    anew.histogram.labels("a").observe(1.5)
    change = Change(source.page(), anew.page(), 2.0)
    assert change.per_second("things_total") == 2.0
    assert change.quantile("seconds", 1.0) == 2.0


def test_a_quantile_is_of_what_was_seen_meanwhile_over_all_labels(source: Source) -> None:
    source.histogram.labels("a").observe(3.9)
    before = source.page()
    source.histogram.labels("a").observe(0.5)
    source.histogram.labels("b").observe(1.5)
    change = Change(before, source.page(), 1.0)
    assert change.quantile("seconds", 0.5) == 1.0
    assert change.quantile("seconds", 0.75) == 1.5
    assert change.quantile("seconds", 1.0) == 2.0


def test_a_quantile_beyond_the_last_bound_is_that_bound_and_of_nothing_there_is_none(source: Source) -> None:
    source.histogram.labels("a").observe(100)
    page = source.page()
    assert Change(MetricsPage(""), page, 1.0).quantile("seconds", 0.5) == 4.0
    assert Change(page, page, 1.0).quantile("seconds", 0.5) is None
    assert Change(page, page, 0.0).per_second("things_total") == 0.0


def test_what_is_no_such_page_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\w"):
        MetricsPage("<html>{</html>\n")
