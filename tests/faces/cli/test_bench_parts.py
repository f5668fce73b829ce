"""The parts of a benchmark that decide about a figure: percentiles, messages off the wire, /proc."""

import os
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.faces.cli.bench import children
from tocsin.faces.cli.bench.http import Message, Messages
from tocsin.faces.cli.bench.listeners import Listener
from tocsin.faces.cli.bench.machine import fsync_us
from tocsin.faces.cli.bench.process import cpu_s, family_cpu_s, peak_rss_mb, rss_mb, server_of
from tocsin.faces.cli.bench.report import Figures, Machine, quantile, report_of
from tocsin.faces.cli.bench.trips import Arrivals
from tocsin.settings import load

BODIES = st.lists(st.binary(max_size=30), max_size=5)
NO_PROCESS = 2**22 + 1


@given(BODIES, st.lists(st.integers(0, 400), max_size=8))
def test_messages_are_the_same_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    heads = [b"HTTP/1.1 200 OK\r\nContent-Length: %d" % len(body) for body in bodies]
    stream = b"".join(head + b"\r\n\r\n" + body for head, body in zip(heads, bodies, strict=True))
    messages = Messages()
    found: list[Message] = []
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        found += messages.feed(stream[start:end])

    assert found == list(map(Message, heads, bodies))
    assert all(message.status == 200 for message in found)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(
    values: list[float], part: float
) -> None:
    found = quantile(values, part)

    assert found in values
    assert sum(value <= found for value in values) >= part * len(values) - 1e-9
    assert sum(value < found for value in values) < part * len(values) + 1e-9


def test_a_figure_that_does_not_apply_is_null_and_not_zero() -> None:
    machine = Machine(cpus=2, postgres="18.1", python="3.11.2", fsync_us=None)
    report = report_of("x", Figures(jobs=10, seconds=2.0, rate=5.0, floor_rate=8.0), machine)

    assert report.ratio == 0.625
    assert report.p50_ms is None
    assert report.wal_bytes_per_job is None
    assert report.cpu_us_per_job.postgres is None


def test_processes_that_are_measured_write_no_line_for_each_call(tmp_path: Path) -> None:
    env = children._env(SimpleNamespace(url="postgresql://h/n"), tmp_path, {})

    assert load(env).log.level == "warning"


def test_a_process_that_works_is_seen_to_use_the_processor_and_memory() -> None:
    before = cpu_s(os.getpid())
    assert before is not None
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass

    after = cpu_s(os.getpid())
    idle, peak = rss_mb(os.getpid()), peak_rss_mb(os.getpid())
    assert after is not None
    assert after - before >= 0.03
    assert idle is not None
    assert peak is not None
    assert 1 < idle <= peak


def test_a_process_that_is_not_there_has_no_figures() -> None:
    readings = (cpu_s, family_cpu_s, rss_mb, peak_rss_mb, server_of)

    assert [read(NO_PROCESS) for read in readings] == [None] * 5


def test_a_process_that_is_no_postgresql_is_not_taken_for_one() -> None:
    assert server_of(os.getpid()) is None


def test_a_flush_costs_something_and_what_is_forbidden_is_not_guessed(tmp_path: Path) -> None:
    assert (fsync_us(tmp_path) or 0) > 0
    assert fsync_us(tmp_path / "nowhere") is None


@pytest.mark.parametrize("cut", [1, 20, 90, 150, 200, 400])
async def test_a_listener_notes_the_event_of_a_message_however_it_arrives(cut: int) -> None:
    job_id = "0199a6b2-0000-7000-8000-000000000001"
    event = b'data: {"type":"new_notification","notification":{"id":"%b"}}\n\n' % job_id.encode()
    stream = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        b"retry: 2000\n\n"
        b'id: 1\ndata: {"type":"count_update","unread_count":0,"version":1}\n\n' + event
    )
    arrivals = Arrivals()
    listener = Listener(b"", arrivals)

    listener.data_received(stream[:cut])
    listener.data_received(stream[cut:])

    assert listener.placed.done()
    assert listener.placed.exception() is None
    assert await arrivals.of(job_id) > 0
