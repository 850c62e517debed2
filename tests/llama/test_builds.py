from __future__ import annotations

from spectui.core.bet.estimates import BetReading
from spectui.core.verdict.verdict import Facts, judge
from spectui.llama.builds import BAD, CACHE_GATE, DRAFT_REREADS, REAL, TWO_PASSES, Builds, rereads_draft


def test_a_range_of_builds_includes_its_ends() -> None:
    builds = Builds(10, 20)
    assert [b for b in (None, 9, 10, 20, 21) if b in builds] == [10, 20]
    assert [b for b in (None, 9, 10, 10**6) if b in Builds(10)] == [10, 10**6]


def test_a_draft_rereads_from_b9109_and_where_no_real_number_is_known() -> None:
    assert [b for b in (None, 1, 999, 1000, 9108, 9109, 10434) if rereads_draft(b)] == [
        None,
        1,
        999,
        9109,
        10434,
    ]
    assert DRAFT_REREADS.first in REAL


def test_requests_need_cache_prompt_in_old_two_pass_builds_only() -> None:
    assert [b for b in (None, 1, 4163, 4164, 6722, 6723) if b in CACHE_GATE] == [4164, 6722]


def test_words_of_the_core_name_the_builds_of_the_table() -> None:
    verdict = judge(Facts(mode="draft-simple", draft_length=3, bet=BetReading(two_pass=True)))
    finding = next(f for f in verdict.findings if f.code == "old-two-pass-server")
    assert TWO_PASSES.last is not None
    assert f"b{TWO_PASSES.last + 1}" in finding.advice


def test_the_good_build_follows_the_bad_ones() -> None:
    assert BAD
    for bad in BAD:
        assert bad.builds.last is not None
        assert bad.good == f"b{bad.builds.last + 1}"
