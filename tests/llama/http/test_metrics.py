from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.errors import ServerError
from spectui.llama.http.metrics import ServerCounters, parse_metrics

METRICS = Path(__file__).parents[2] / "data" / "metrics"


def of(name: str) -> ServerCounters:
    return parse_metrics((METRICS / f"{name}.txt").read_text())


def test_current_server() -> None:
    assert of("b10434-draft") == ServerCounters(
        drafted=159,
        accepted=51,
        drafts=41,
        accepted_per_position=(24, 13, 9, 5),
        tokens_predicted=92,
        predicted_seconds=4.00045,
        prompt_tokens=44,
        prompt_tokens_cached=0,
        prompt_seconds=0.30199,
        decode_calls=44,
        requests_running=0,
        requests_waiting=0,
    )


def test_zero_counters_of_a_server_that_does_not_speculate() -> None:
    counters = of("b10434-draft-loaded-but-off")
    assert (counters.drafted, counters.accepted, counters.drafts) == (0, 0, 0)
    assert counters.accepted_per_position == ()


def test_old_server_has_no_speculation_counters() -> None:
    counters = of("b6xxx-draft-max")
    speculation = [counters.drafted, counters.accepted, counters.drafts, counters.prompt_tokens_cached]
    assert speculation == [None] * 4
    assert (counters.tokens_predicted, counters.predicted_seconds, counters.decode_calls) == (105, 2.766, 32)


def test_vllm() -> None:
    counters = of("vllm-0.32-ngram")
    assert (counters.drafted, counters.accepted, counters.drafts) == (49, 42, 18)
    assert list(counters.accepted_per_position) == [16, 12, 8, 6]
    assert (counters.tokens_predicted, counters.prompt_tokens) == (72, 48)
    assert counters.predicted_seconds == pytest.approx(0.5624, abs=1e-4)
    assert counters.decode_calls is None


def test_series_of_several_engines_are_summed() -> None:
    text = "".join(
        f'vllm:spec_decode_num_drafts_total{{engine="{e}"}} {e + 1}.0\n'
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="{e}",position="1"}} 2\n'
        for e in (0, 1)
    )
    assert parse_metrics(text) == ServerCounters(drafts=3, accepted_per_position=(0, 4))


def test_body_that_is_one_json_string() -> None:
    text = (METRICS / "b6xxx-draft-max.txt").read_text()
    assert parse_metrics(json.dumps(text)) == parse_metrics(text)


def test_rounded_counter_is_replaced_by_exact_positions() -> None:
    text = (
        "llamacpp:spec_decode_num_accepted_tokens_total 1.23457e+06\n"
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 1000000\n'
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 234567\n'
    )
    assert parse_metrics(text).accepted == 1_234_567


@pytest.mark.parametrize(
    "body",
    [
        '"never closed',
        "llamacpp:n_decode_total twelve\n",
        "llamacpp:spec_decode_num_accepted_tokens_per_pos_total 3\n",
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="x"} 3\n',
    ],
)
def test_bodies_that_are_no_metrics(body: str) -> None:
    with pytest.raises(ServerError, match="/metrics is no Prometheus text"):
        parse_metrics(body)


@pytest.mark.parametrize("body", ["", "<html>hello</html>", "other_total 3\n"])
def test_nothing_of_ours_is_all_unknown(body: str) -> None:
    assert parse_metrics(body) == ServerCounters()


def test_absurd_positions_are_left_out() -> None:
    text = 'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="999999999"} 3\n'
    assert parse_metrics(text).accepted_per_position == ()


def test_difference_of_two_readings() -> None:
    earlier = ServerCounters(drafted=10, accepted=4, accepted_per_position=(3, 1), requests_running=1)
    later = ServerCounters(
        drafted=30, accepted=9, drafts=8, accepted_per_position=(6, 2, 1), requests_running=2, decode_calls=5
    )
    assert later.minus(earlier) == ServerCounters(
        drafted=20, accepted=5, accepted_per_position=(3, 1, 1), requests_running=2
    )


def test_positions_that_appear_later_start_at_zero() -> None:
    later = ServerCounters(drafted=3, accepted_per_position=(2, 1))
    assert later.minus(ServerCounters(drafted=0)).accepted_per_position == (2, 1)


def test_restart_counts_from_the_start() -> None:
    earlier, later = (
        ServerCounters(tokens_predicted=100),
        ServerCounters(tokens_predicted=7, requests_running=0),
    )
    assert later.restarted_since(earlier)
    assert later.minus(earlier) == later
    assert not later.restarted_since(ServerCounters(tokens_predicted=7, requests_running=3))


counts = st.none() | st.integers(0, 10**9).map(float)
readings = st.builds(
    ServerCounters,
    drafted=counts,
    accepted=counts,
    tokens_predicted=counts,
    accepted_per_position=st.lists(st.integers(0, 1000).map(float), max_size=5).map(tuple),
)


@given(readings)
def test_nothing_happened_between_equal_readings(reading: ServerCounters) -> None:
    nothing = reading.minus(reading)
    assert {nothing.drafted, nothing.accepted, nothing.tokens_predicted} <= {0.0, None}
    assert set(nothing.accepted_per_position) <= {0.0}
    assert reading.minus(ServerCounters()).accepted_per_position == reading.accepted_per_position


@given(st.text())
def test_any_body_is_read_or_refused(body: str) -> None:
    with contextlib.suppress(ServerError):
        assert isinstance(parse_metrics(body), ServerCounters)
