from __future__ import annotations

from spectui.core.profile import TuningProfile
from spectui.core.views.ab import AbState, AbView, ArmView, differences

PROFILE = TuningProfile().with_speculation(mode="draft-simple", draft_model="d.gguf", draft_length=4)


def test_differences_are_those_of_the_configuration_not_of_the_traffic() -> None:
    other = (
        PROFILE.with_speculation(draft_length=8)
        .with_server(threads=2)
        .with_sampling(temperature=0.7, seed=9)
        .with_traffic(workload="prose", concurrency=4)
    )
    assert differences(PROFILE, other) == (
        "server.threads",
        "speculation.draft_length",
        "sampling.temperature",
    )
    assert differences(PROFILE, PROFILE.with_sampling(seed=3)) == ()


def test_a_length_that_neither_arm_uses_is_no_difference() -> None:
    off = PROFILE.without_speculation()
    assert differences(off, off.with_speculation(draft_length=9)) == ()


def test_a_run_is_busy_while_it_has_servers() -> None:
    busy = {state for state in AbState if AbView(state=state).busy}
    assert busy == {AbState.STARTING, AbState.RUNNING, AbState.STOPPING}


def test_an_arm_by_its_name() -> None:
    view = AbView(a=ArmView(profile=PROFILE, name="running"))
    assert view.arm("a") is view.a
    assert view.arm("b") is None
