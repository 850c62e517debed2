from __future__ import annotations

from dataclasses import replace
from functools import partial

from spectui.core.profile import BaselineSettings, ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.verdict.verdict import Change
from spectui.lab.session.staging import Staging, changed

A = TuningProfile(
    server=ServerSettings(model="t.gguf"),
    speculation=SpeculationSettings(mode="draft-simple", draft_model="d.gguf", draft_length=4),
)


def length(k: int, profile: TuningProfile = A) -> TuningProfile:
    return profile.with_speculation(draft_length=k)


B, C = length(8), length(16)


def running(*profiles: TuningProfile) -> Staging:
    """Settings that ran one after the other, each staged before."""
    staging = Staging(profiles[0])
    for profile in profiles:
        staging.stage(partial(_instead, profile))
        assert staging.started(profile) == profile
    return staging


def _instead(profile: TuningProfile, _: TuningProfile) -> TuningProfile:
    return profile


def undone(staging: Staging) -> TuningProfile:
    """Undo one step and start what it gives."""
    back = staging.undo()
    assert back is not None
    return staging.started(back, back=True)


def test_before_anything_ran_there_is_nothing_to_change_or_undo() -> None:
    staging = Staging(A)
    length_8 = partial(length, 8)
    staging.stage(length_8)
    assert staging.staged == length_8(A)
    assert staging.running is None
    assert staging.changes == ()
    assert not staging.can_undo
    assert staging.undo() is None
    assert staging.staged == B


def test_staging_changes_nothing_that_runs() -> None:
    staging = running(A)
    staging.stage(lambda p: length(8, p))
    assert staging.running == A
    assert staging.changes == ("speculation.draft_length",)
    assert staging.can_undo


def test_undo_drops_staged_changes_first() -> None:
    staging = running(A, B)
    staging.stage(lambda p: length(16, p))
    assert staging.undo() is None
    assert (staging.staged, staging.running) == (B, B)
    assert staging.undo() == A


def test_undo_goes_back_step_by_step_and_then_ends() -> None:
    staging = running(A, B, C)
    assert undone(staging) == B
    assert undone(staging) == A
    assert (staging.running, staging.staged, staging.changes) == (A, A, ())
    assert not staging.can_undo
    assert staging.undo() is None


def test_undo_forgets_only_what_runs_again() -> None:
    staging = running(A, B)
    assert staging.undo() == A
    assert staging.running == B
    assert staging.changes == ("speculation.draft_length",)
    assert staging.undo() is None  # the staged way back is itself a change that can be dropped
    assert staging.staged == B
    assert undone(staging) == A


def test_after_an_undo_new_settings_can_be_undone_again() -> None:
    staging = running(A, B)
    undone(staging)
    staging.stage(lambda p: length(16, p))
    staging.started(C)
    assert undone(staging) == A
    assert not staging.can_undo


def test_a_failed_start_keeps_what_was_staged_and_the_way_back() -> None:
    staging = running(A)
    staging.stage(lambda p: length(8, p))
    staging.ended()
    assert (staging.staged, staging.running, staging.changes) == (B, None, ())
    assert staging.can_undo
    staging.ended()  # a second attempt fails as well
    assert undone(staging) == A
    assert not staging.can_undo


def test_an_undo_that_fails_can_be_tried_again() -> None:
    staging = running(A, B)
    assert staging.undo() == A
    staging.ended()
    assert staging.undo() == B
    staging.ended()
    assert undone(staging) == B
    assert undone(staging) == A


def test_other_settings_after_a_failed_start_lead_back_to_what_ran() -> None:
    staging = running(A)
    staging.stage(lambda p: length(8, p))
    staging.ended()
    staging.stage(lambda p: length(16, p))
    staging.started(staging.staged)
    assert staging.running == C
    assert undone(staging) == A


def test_a_crash_keeps_staged_changes() -> None:
    staging = running(A)
    staging.stage(lambda p: length(8, p))
    staging.ended()
    assert staging.staged == B
    staging.started(staging.staged)
    assert staging.running == B
    assert undone(staging) == A


def test_the_same_settings_after_a_crash_leave_nothing_to_undo() -> None:
    staging = running(A)
    staging.ended()
    could = staging.can_undo
    staging.started(A)
    assert (could, staging.can_undo) == (True, False)
    assert staging.undo() is None
    again = running(A, B)
    again.ended()
    again.started(B)
    assert undone(again) == A


def test_settings_of_the_moment_apply_at_once_and_survive() -> None:
    staging = running(A)
    staging.apply_now(lambda p: p.with_sampling(temperature=0.8))
    assert staging.running == staging.staged == A.with_sampling(temperature=0.8)
    assert staging.changes == ()
    assert not staging.can_undo
    staging.stage(lambda p: length(8, p))
    staging.started(staging.staged)
    staging.apply_now(lambda p: p.with_traffic(workload="json", concurrency=2))
    staging.apply_now(lambda p: replace(p, baseline=BaselineSettings(tokens_per_second=34.0)))
    now = undone(staging)
    assert now.speculation == A.speculation
    assert now.sampling.temperature == 0.8
    assert (now.traffic.workload, now.traffic.concurrency) == ("json", 2)
    assert now.baseline.tokens_per_second == 34.0
    assert now == staging.running == staging.staged


def test_a_start_takes_the_sampling_of_the_moment_it_ends() -> None:
    """While a server loads, the temperature may have been changed."""
    staging = running(A)
    asked = length(8, staging.staged)
    staging.apply_now(lambda p: p.with_sampling(temperature=0.5))
    assert staging.started(asked) == asked.with_sampling(temperature=0.5)
    assert staging.running == asked.with_sampling(temperature=0.5)


def test_dropping_staged_changes_keeps_the_temperature() -> None:
    staging = running(A)
    staging.stage(lambda p: length(8, p))
    staging.apply_now(lambda p: p.with_sampling(temperature=0.3))
    assert staging.undo() is None
    assert staging.staged == A.with_sampling(temperature=0.3)


def test_starting_the_same_settings_is_no_step() -> None:
    staging = running(A)
    staging.started(A.with_traffic(workload="json"))
    assert not staging.can_undo


def test_the_way_back_is_bounded() -> None:
    staging = running(*(length(k) for k in range(1, 65)))
    steps = 0
    while staging.can_undo:
        undone(staging)
        steps += 1
    assert steps == 50
    assert staging.running == length(14)


def test_an_advised_lookup_leaves_the_draft_where_it_was() -> None:
    lookup = changed(A, Change(mode="ngram-simple", ngram_lookup=2, ngram_length=16))
    assert lookup.speculation.lookup_sizes == (2, 16)
    assert lookup.with_speculation(mode=A.speculation.mode, ngram_lookup=None, ngram_length=None) == A
    assert A.with_speculation(mode="ngram-simple").speculation.lookup_sizes == (12, 48)
