"""The two colour themes. Everything else speaks in theme variables, so any Textual theme works as well."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="spectui-dark",
    primary="#7aa2f7",
    secondary="#8fa3c8",
    accent="#56c7d6",
    success="#6fcf8e",
    warning="#e5b45c",
    error="#f2777a",
    foreground="#d5dae6",
    background="#11141b",
    surface="#171b24",
    panel="#212734",
    dark=True,
)

LIGHT: Final = Theme(
    name="spectui-light",
    primary="#2f5fc4",
    secondary="#52627f",
    accent="#0f7d8c",
    success="#1f7a3d",
    warning="#8f5b00",
    error="#b3262b",
    foreground="#20242d",
    background="#f4f5f8",
    surface="#ffffff",
    panel="#e4e8f0",
    dark=False,
)
