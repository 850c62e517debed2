from __future__ import annotations

import pytest

from spectui.llama.http.address import port_of


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("http://127.0.0.1:18931", 18931),
        ("host:8080/v1/", 8080),
        ("https://host", None),
        ("http://host:99999", None),
        ("no address", None),
        ("", None),
        (None, None),
    ],
)
def test_the_port_of_an_address(address: str | None, port: int | None) -> None:
    assert port_of(address) == port
