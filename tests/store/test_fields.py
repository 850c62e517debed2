from __future__ import annotations

from spectui.core.profile import TuningProfile
from spectui.store.fields import describe_fields, describe_sections


def test_fields_say_what_they_allow() -> None:
    allowed = {doc.key: doc.allowed for doc in describe_fields()}
    assert allowed["speculation.draft_length"] == "a whole number from 1 to 64"
    assert allowed["speculation.p_min"] == "a number from 0 to 1"
    assert allowed["server.gpu_layers"] == 'a whole number of at least 0 or "auto" or "all"'
    assert allowed["server.split_mode"] == '"none", "layer", "row" or "tensor"'
    assert allowed["server.extra_args"] == "a list of texts"
    assert allowed["traffic.ignore_eos"] == "true or false"
    assert allowed["speculation.mode"] == "text that is not empty"
    assert allowed["schema_version"] == "1"


def test_every_field_has_a_doc_and_its_real_default() -> None:
    profile = TuningProfile()
    for doc in describe_fields():
        owner = getattr(profile, doc.section) if doc.section else profile
        assert doc.doc, doc.key
        assert doc.default == getattr(owner, doc.name)


def test_sections_come_in_the_order_of_the_profile() -> None:
    assert [section.name for section in describe_sections()] == [
        "",
        "server",
        "speculation",
        "sampling",
        "traffic",
        "baseline",
    ]


def test_optional_fields_are_marked() -> None:
    optional = {doc.key: doc.optional for doc in describe_fields()}
    assert optional["server.model"]
    assert not optional["sampling.seed"]
