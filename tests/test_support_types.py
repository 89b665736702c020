"""Wrong types in a declaration: one sentence with the field, what was given, what may be given, and an example."""

import dataclasses

import pytest

from conformance.adapter import Support, registry
from conformance.adapter.declarations import demand_sense
from conformance.adapter.support_types import EXAMPLES
from conformance.errors import UsageError

FIELDS = [field.name for field in dataclasses.fields(Support)]
# What may be told of a value that is wrong, none of which is of the expected type anywhere.
WRONG = (2.5, b"x", object(), {1: 2}, [None], (("a",),), lambda: None, {"mask": None}, {"mask": {}})


def told(tmp_path, **declared) -> str:
    """The sentence with which a function that declares so is refused."""
    file = tmp_path / "mine.py"
    file.write_text("def attention(query, key, value, *, mask=None): ...\n")
    function = registry.load(str(file) + ":attention")
    function.conformance = Support(**declared)
    with pytest.raises(UsageError) as refused:
        demand_sense(registry.resolve(f"{file}:attention"))
    return str(refused.value).replace(f"{file}:attention", "mine")


@pytest.mark.parametrize("field", FIELDS)
def test_no_wrong_type_is_told_in_words_of_a_library(tmp_path, field):
    for value in WRONG:
        said = told(tmp_path, **{field: value})
        assert said.startswith(f"Support.{field} of mine is "), said
        assert f", such as {field}=" in said and said.endswith("."), said
        assert not {"Expected", "array`", "null", "object`"} & set(said.split()), said


@pytest.mark.parametrize("field", FIELDS)
def test_examples_can_be_declared(tmp_path, field):
    file = tmp_path / "mine.py"
    file.write_text("def attention(query, key, value, *, mask=None, causal=False, visible=None): ...\n")
    function = registry.load(f"{file}:attention")
    value = eval(EXAMPLES[field][1], {"NotImplementedError": NotImplementedError})
    function.conformance = Support(**{field: value})
    demand_sense(registry.resolve(f"{file}:attention"))


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"dtypes": "float32"}, "is the text 'float32': it takes names in a tuple, such as dtypes=('float32',), with the comma."),
        ({"lacks": "mask"}, "is the text 'mask': it takes names in a set, such as lacks={'mask'}."),
        ({"features": "mask"}, "is the text 'mask': it takes names in a set, or None, such as features={'mask'}."),
        ({"widths": 64}, "is 64: it takes whole numbers in a tuple, such as widths=(64,), with the comma."),
        ({"widths": (64, "128")}, "is (64, '128'): it takes whole numbers in a tuple"),
        (
            {"declines": TypeError},
            "is the class TypeError: it takes types of exceptions in a tuple, such as declines=(TypeError,)",
        ),
        (
            {"routes": {"causal": "mask"}},
            "is {'causal': 'mask'}: it takes a dictionary of features and",
        ),
        ({"profile": {"float32": None}}, "is {'float32': None}: it takes the name of a profile, a dictionary"),
        ({"shapes": True}, "is True: it takes a whole number, or None, such as shapes=8."),
        ({"multiples": {"width": 8.5}}, "is {'width': 8.5}: it takes a dictionary of names of sizes and whole"),
        ({"axes": "hbld"}, "Support.axes of mine: Unknown order of axes 'hbld': did you mean blhd or bhld?"),
        ({"framework": ""}, "Support.framework of mine: Unknown framework '': there are"),
        ({"scale_dtype": ""}, "Support.scale_dtype names '', which the suite does not know: it knows float64"),
        ({"at_most": {"query_lenght": 8}}, "Support.at_most names 'query_lenght', which the suite does not know: it knows batch"),
    ],
)
def test_the_sentence(tmp_path, declared, expected):
    assert expected in told(tmp_path, **declared)


def test_a_set_of_dtypes_has_one_order_in_every_process(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from conformance.adapter import Support\n"
        "def attention(query, key, value): ...\n"
        "attention.conformance = Support(dtypes={'float64', 'float32', 'float16'})\n"
    )
    assert registry.resolve(f"{file}:attention").support.dtypes == ("float16", "float32", "float64")


def test_a_ready_implementation_is_held_to_it_too(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from conformance.adapter import Implementation, Support\n"
        "from conformance.adapter.registry import frameworks\n"
        "def attention(query, key, value): ...\n"
        "mine = Implementation('mine', attention, Support(dtypes='float32'), frameworks()['numpy'])\n"
    )
    with pytest.raises(UsageError, match=r"is the text 'float32': it takes names in a tuple"):
        registry.resolve(f"{file}:mine")


@pytest.mark.parametrize(("field", "advice"), [("dtype", "did you mean dtypes"), ("xyz", "it has operation, features, lacks, ")])
def test_a_field_that_does_not_exist(tmp_path, field, advice):
    file = tmp_path / "mine.py"
    file.write_text(f"from conformance.adapter import Support\n\n\nSUPPORT = Support({field}=())\n")
    with pytest.raises(UsageError) as refused:
        registry.resolve(f"{file}:attention")
    assert f"Importing mine.py failed: Support has no field '{field}': {advice}" in str(refused.value)
    assert f"{file}:4" in str(refused.value)
