"""Metrics for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyarms.serve.service import Service

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts requests; all other metrics are computed when they are requested."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._requests: dict[tuple[str, int], list[float]] = {}  # buckets, then sum

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        seen = self._requests.get((route, status))
        if seen is None:
            seen = self._requests[route, status] = [0.0] * (len(_BUCKETS) + 2)
        seen[bisect_left(_BUCKETS, seconds)] += 1
        seen[-1] += seconds

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Any]:
        """Yield all metrics but those of the process."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        requests = HistogramMetricFamily(
            "manyarms_request_seconds",
            "Duration of requests, by route and status.",
            labels=("route", "status"),
        )
        for (route, code), seen in self._requests.items():
            total, buckets = 0.0, []
            for end, count in zip((*map(str, _BUCKETS), "+Inf"), seen[:-1], strict=True):
                total += count
                buckets.append((end, total))
            requests.add_metric([route, str(code)], buckets, seen[-1])
        yield requests
        leader = self._service.leader
        # summed over experiments: this page needs no token, so it must not show their names
        pending = sum(len(one.experiment.ledger.pending) for one in leader.experiments.values())
        for name, about, value in (
            ("manyarms_ready", "Whether requests are answered.", not self._service.not_ready()),
            ("manyarms_leads", "Whether this process leads.", leader.leads),
            ("manyarms_loaded", "Experiments that are loaded.", len(leader.experiments)),
            ("manyarms_pending", "Pending pulls.", pending),
            ("manyarms_commit_p50_seconds", "Median duration of a commit.",
             leader.commit_quantile(0.5)),
            ("manyarms_commit_p99_seconds", "99th percentile of the duration of a commit.",
             leader.commit_quantile(0.99)),
            ("manyarms_unsaved_events", "Events since the last snapshot, maximum over experiments.",
             max((one.committed - one.saved for one in leader.experiments.values()), default=0)),
        ):  # fmt: skip
            yield GaugeMetricFamily(name, about, value=float(value))
        yield CounterMetricFamily("manyarms_events", "Committed events.", value=leader.events)
        yield CounterMetricFamily(
            "manyarms_terms", "How often this process became the leader.", value=leader.terms
        )
