"""The grid of a sweep: its settings, cells, keys, families and pace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.profile import SpeculationSettings, TuningProfile
from spectui.core.sweep.grid import PLAIN, Cell, Condition, Grid, Pace, Setting, anchor, by_start

GRID = Grid(
    workloads=("code", "prose"),
    temperatures=(0.0, 0.8),
    modes=("draft-simple", "ngram-simple"),
    ks=(8, 1, 2, 4),
    p_mins=(0.0, 0.5),
    drafts=("/m/a.gguf", "/m/b.gguf"),
    lookups=(2, 4, 8),
    lengths=(8, 48),
)

grids = st.builds(
    Grid,
    workloads=st.lists(st.sampled_from(["code", "prose", "json"]), min_size=1, unique=True).map(tuple),
    temperatures=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, unique=True).map(tuple),
    modes=st.lists(
        st.sampled_from(["draft-simple", "draft-mtp", "ngram-simple", "ngram-cache"]), unique=True
    ).map(tuple),
    ks=st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True).map(tuple),
    p_mins=st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.8]), min_size=1, unique=True).map(tuple),
    drafts=st.lists(st.sampled_from(["/a b.gguf", "/b.gguf"]), min_size=1, unique=True).map(tuple),
    lookups=st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True).map(tuple),
    lengths=st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True).map(tuple),
)


def test_every_combination_is_a_cell_once() -> None:
    drafted = 2 * 2 * 4
    assert len(GRID.settings) == drafted + 3 * 2
    assert len(GRID.cells) == 4 * (drafted + 6)
    assert [s.k for s in GRID.fixed[0]] == [1, 2, 4, 8]
    assert {s.draft for s in GRID.settings} == {"/m/a.gguf", "/m/b.gguf", None}


@given(grids)
def test_keys_name_cells_and_lives_serve_each_once(grid: Grid) -> None:
    keys = [cell.key for cell in grid.cells]
    assert len(set(keys)) == len(keys) == len(grid.conditions) * len(grid.settings)
    starts = by_start(grid.cells)
    assert list(starts) == list(dict.fromkeys(grid.settings))
    assert all(len(cells) == len(grid.conditions) for cells in starts.values())
    assert set(grid.certain(replays=False)) <= set(grid.settings)


@given(grids)
def test_neighbours_are_mutual_and_differ_on_one_axis(grid: Grid) -> None:
    for family in grid.free:
        assert set(family.scattered()) <= set(family.settings)
        for setting in family.settings:
            for near in family.neighbours(setting):
                assert near != setting
                assert setting in family.neighbours(near)


def test_keys_stay_as_they_are_since_kept_sweeps_hold_them() -> None:
    cells = [
        Cell(Condition("code", 0.0), Setting(mode="draft-simple", draft="/m/a.gguf", k=4, p_min=0.5)),
        Cell(Condition("own", 0.8), Setting(mode="ngram-simple", ngram_lookup=4, ngram_length=8)),
        Cell(Condition("code", 1.0), PLAIN),
    ]
    assert [cell.key for cell in cells] == [
        "code T=0 draft-simple draft=/m/a.gguf k=4 p_min=0.5",
        "own T=0.8 ngram-simple lookup=4 length=8",
        "code T=1 off",
    ]


def test_a_label_shows_no_escape_sequence() -> None:
    setting = Setting(mode="draft-simple", draft="/m/\x1b[31mred\n.gguf", k=4, p_min=0.0)
    assert setting.label == "draft-simple red .gguf k 4"


@pytest.mark.parametrize(
    ("ks", "expected"), [((1, 2, 4, 8), 4), ((1, 2, 3), 2), ((16,), 16), ((2, 6, 8), 6), ((1, 2, 8, 16), 8)]
)
def test_the_anchor_is_4_or_in_the_middle(ks: tuple[int, ...], expected: int) -> None:
    assert anchor([Setting(mode="draft-simple", k=k, p_min=0.0) for k in ks]).k == expected


def test_a_setting_takes_the_place_of_the_profiles_bet() -> None:
    profile = TuningProfile(
        speculation=SpeculationSettings(mode="draft-simple", draft_model="/old.gguf", draft_min=4, p_min=0.9)
    )
    drafted = Setting(mode="draft-simple", draft="/new.gguf", k=2, p_min=0.0).applied_to(profile).speculation
    assert (drafted.draft_model, drafted.draft_length, drafted.draft_min, drafted.p_min) == (
        "/new.gguf",
        2,
        2,
        0.0,
    )
    lookup = Setting(mode="ngram-simple", ngram_lookup=4, ngram_length=8).applied_to(profile).speculation
    assert (lookup.mode, lookup.ngram_lookup, lookup.ngram_length, lookup.draft_min) == (
        "ngram-simple",
        4,
        8,
        0,
    )
    assert PLAIN.applied_to(profile).speculation.mode == "off"


def test_pace_counts_starts_warm_up_and_requests() -> None:
    pace = Pace(tokens=100, speed=50.0, start=3.0, first_token=0.25)
    assert pace.seconds(2, 4, 10) == pytest.approx(2 * 3 + 4 * ((10 * 100 + 32) / 50 + 11 * 0.25))
    assert pace.seconds(0, 0, 10) == 0
