from __future__ import annotations

from spectui.core.bet.estimates import LossSplit
from spectui.tui.widgets.bet import _loss_lines

LOSS = LossSplit(tokens=2.4, target=1.0, drafting=0.75, verification=0.53, overhead=0.05, unexplained=0.02)


def test_the_parts_of_a_pass_stand_in_one_row() -> None:
    (line,) = _loss_lines(LOSS, 43, 1)
    assert "".join(span.text for span in line) == "1 step +0.75 draft +0.53 check +0.07 rest"
    (narrow,) = _loss_lines(LOSS, 33, 1)
    assert "".join(span.text for span in narrow) == "1 step +0.75 draft +0.53 check"


def test_the_bar_fills_the_width_and_no_part_is_negative() -> None:
    odd = LossSplit(tokens=2.4, target=1.0, drafting=0.5, verification=0.5, overhead=0.0, unexplained=-0.3)
    _, bar = _loss_lines(odd, 40, 2)
    assert [len(span.text) for span in bar] == [20, 10, 10, 0]
