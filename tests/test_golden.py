"""The golden cases: what they hold, that they can be made again byte for byte, and what is said of damaged files."""

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import ml_dtypes
import numpy as np
import pytest

from conformance.errors import UsageError
from conformance.golden_tool import add, check, write
from conformance.problem import parse
from conformance.specification import requirements
from conformance.system.resources import golden_folder
from conformance.values import golden, materialise
from conformance.values.golden_files import read_tensors, tensors_to_bytes
from tests.support.commands import PATIENCE

CASES = golden.load_cases()
CAUSAL_TEXT = "attention batch=1 heads=1 length=3 width=2 dtype=float32 values=spread.1#1 causal=top-left"


def find(requirement: str, dtype: str, note: str) -> golden.GoldenCase:
    return next(c for c in CASES if c.requirement == requirement and c.problem.dtype == dtype and c.note.startswith(note))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the golden folder that may be damaged."""
    return Path(shutil.copytree(golden_folder(), tmp_path / "golden"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# What they hold


def test_there_are_sixty_cases_and_more_in_less_than_3_mb() -> None:
    assert len(CASES) >= 60
    assert [case.number for case in CASES] == list(range(1, len(CASES) + 1))
    assert sum(path.stat().st_size for path in golden_folder().iterdir()) < 3_000_000


def test_each_case_refers_to_a_requirement_of_its_operation() -> None:
    known = requirements()
    for case in CASES:
        assert known[case.requirement].operation == case.problem.operation, case.id


def test_every_operation_has_cases_in_every_dtype() -> None:
    found = {(case.problem.operation, case.problem.dtype) for case in CASES}
    assert len(found) == 3 * 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_is_found_by_its_problem_text(case: golden.GoldenCase) -> None:
    problem = parse(case.problem.text)
    inputs, expected = materialise(problem), golden.golden_expected(case)
    for name, array in inputs.arrays().items():
        assert array.dtype.name == problem.dtype, name
        assert array.flags.writeable, name
    assert (golden.golden_output(problem) == expected["output"]).all()
    assert np.isfinite(expected["output"]).all()
    assert expected["budget"].shape == expected["output"].shape
    assert (expected["budget"] > 0).all()


def test_she_likes_coffee_step_by_step() -> None:
    she, likes, coffee = [0.2, 0.9, 0.1, 0.5], [0.8, 0.3, 0.7, 0.2], [0.4, 0.6, 0.3, 0.9]
    query = key = [[0.33, 0.89, 0.25, 0.57], [0.84, 0.44, 0.76, 0.36], [0.54, 0.70, 0.46, 0.94]]
    value = [[0.40, 0.83, 0.33, 0.57], [0.79, 0.56, 0.72, 0.36], [0.56, 0.71, 0.49, 0.94]]
    scores = [[sum(q * k for q, k in zip(row, other, strict=True)) for other in key] for row in query]
    scaled = [[s / 2 for s in row] for row in scores]  # √4 = 2
    weights = [[math.exp(s) / sum(math.exp(t) for t in row) for s in row] for row in scaled]
    output = [[sum(w * value[j][c] for j, w in enumerate(row)) for c in range(4)] for row in weights]
    assert scores[0] == pytest.approx([1.2884, 1.064, 1.452])

    case = find("ATT-HEAD-010", "float64", "she likes coffee")
    inputs, expected = golden.case_inputs(case), golden.golden_expected(case)
    assert inputs.query[0].tolist() == [she, likes, coffee]
    assert inputs.weights.query[0].tolist() == inputs.weights.key[0].tolist() == [0.9, 0.1, 0.1, 0.1]
    assert inputs.weights.value[1].tolist() == [0.2, 0.8, 0.2, 0.1]
    assert inputs.weights.output is None
    assert expected["projected_query"][0] == pytest.approx(np.array(query), rel=1e-15)
    assert expected["projected_key"][0] == pytest.approx(np.array(key), rel=1e-15)
    assert expected["projected_value"][0] == pytest.approx(np.array(value), rel=1e-15)
    assert expected["scores"][0, 0] == pytest.approx(np.array(scores), rel=1e-15)
    assert expected["scaled_scores"][0, 0] == pytest.approx(np.array(scaled), rel=1e-15)
    assert expected["weights"][0, 0] == pytest.approx(np.array(weights), rel=1e-15)
    assert expected["output"][0] == pytest.approx(np.array(output), rel=1e-15)


def test_she_likes_coffee_as_plain_attention_is_the_same() -> None:
    whole = golden.golden_expected(find("ATT-HEAD-010", "float64", "she likes coffee"))["output"]
    plain = golden.golden_expected(find("ATT-SCALE-001", "float64", "she likes coffee"))["output"]
    unscaled = golden.golden_expected(find("ATT-SCALE-006", "float64", "she likes coffee"))
    assert plain[0, 0] == pytest.approx(whole[0], rel=1e-15)
    assert (unscaled["scaled_scores"] == unscaled["scores"]).all()
    assert np.abs(unscaled["output"] - plain).max() > 0.01


def test_the_weights_of_three_tokens_are_the_softmax_of_small_numbers() -> None:
    e = math.e
    output = golden.golden_expected(find("ATT-OUT-013", "float64", "the weights of three tokens"))["output"][0, 0]
    assert output[0] == pytest.approx([e / (2 * e + 1), 1 / (2 * e + 1), e / (2 * e + 1)], rel=1e-15)
    root = math.sqrt(e)
    assert output[2] == pytest.approx(np.array([root, root * e, e]) / (root + root * e + e), rel=1e-15)


def test_the_cat_sat_on_the_mat_needs_positions_to_tell_the_from_the() -> None:
    without = golden.golden_expected(find("ATT-HEAD-013", "float64", "The cat sat"))["output"][0]
    encoded = golden.golden_expected(find("ATT-POS-008", "float64", "The cat sat"))["output"]
    causal = find("ATT-HEAD-021", "float64", "The cat sat")
    assert (without[0] == without[4]).all()
    assert (golden.case_inputs(causal).query == encoded).all()
    weights = golden.golden_expected(causal)["weights"]
    assert (np.triu(weights, 1) == 0).all()
    assert (weights[0, :, 0, 0] == 1).all()


def test_bfloat16_is_stored_as_it_is() -> None:
    query = golden.case_inputs(find("ATT-SCALE-001", "bfloat16", "she likes coffee")).query
    assert query.dtype == ml_dtypes.bfloat16
    assert (query[0, 0, 0] == np.array([0.33, 0.89, 0.25, 0.57]).astype(ml_dtypes.bfloat16)).all()


def test_rows_without_a_key_are_not_judged() -> None:
    case = find("ATT-MASK-013", "float32", "causal bottom-right, 7 queries, 4 keys")
    judged = golden.golden_expected(case)["judged"]
    assert judged.shape == (1, 2, 7, 1)
    assert judged[0, 1, :, 0].tolist() == [False, False, False, True, True, True, True]


def test_a_golden_problem_cannot_be_changed() -> None:
    problem = CASES[0].problem
    with pytest.raises(UsageError, match="no field of it can be changed"):
        materialise(problem.but(causal="top-left"))
    with pytest.raises(UsageError, match="There is no golden case number 9999"):
        materialise(parse(problem.text.replace("golden.1#1 ", "golden.1#9999 ")))


def test_inputs_are_fresh_each_time() -> None:
    first = golden.case_inputs(CASES[0])
    first.query[...] = 7.0
    assert (golden.case_inputs(CASES[0]).query != 7.0).any()


# Made again


def test_every_byte_can_be_made_again() -> None:
    assert check() == []


def test_the_schema_forbids_what_it_does_not_know(folder: Path) -> None:
    schema = json.loads((folder / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads((folder / "masking.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    for place in (document, document["cases"][0], document["cases"][0]["parameters"], document["cases"][0]["inputs"]["query"]):
        place["surprise"] = 1
        with pytest.raises(jsonschema.ValidationError, match=r"surprise|valid under"):
            jsonschema.validate(document, schema)
        del place["surprise"]


def test_check_names_the_tensor_and_the_field_that_differ(folder: Path) -> None:
    path = folder / "scaling.safetensors"
    tensors = {name: array.copy() for name, array in read_tensors(path).items()}
    name = next(name for name in tensors if name.endswith("/output"))
    tensors[name].reshape(-1)[0] = np.nextafter(tensors[name].reshape(-1)[0], np.inf)
    path.write_bytes(tensors_to_bytes(tensors))
    text = (folder / "heads.json").read_text(encoding="utf-8")
    (folder / "heads.json").write_text(text.replace("grouped heads, causal", "grouped heads"), encoding="utf-8")
    (folder / "numbers.json").unlink()
    (folder / "stray.json").write_text("{}", encoding="utf-8")
    differences = "\n".join(check(folder))
    assert f"{path} differs in {name}." in differences
    assert re.search(r"heads\.json differs in GOLD-\d{4}: note\.", differences)
    assert "numbers.json is missing" in differences
    assert "stray.json belongs to no definition" in differences
    assert len(differences.splitlines()) == 4


def test_a_budget_stands_though_its_last_bits_differ_but_not_beyond(folder: Path) -> None:
    path = folder / "numbers.safetensors"
    tensors = {name: array.copy() for name, array in read_tensors(path).items()}
    name = next(name for name in tensors if name.endswith("/budget"))
    document = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    original = tensors[name].copy()
    for factor, differs in ((1.0 + 1e-12, False), (1.1, True)):
        tensors[name] = original * factor
        path.write_bytes(tensors_to_bytes(tensors))
        lines = [line for line in check(folder) if name in line]
        assert bool(lines) == differs
    assert document["cases"]


def test_write_makes_what_is_missing_and_overwrites_nothing(folder: Path) -> None:
    before = contents(folder)
    (folder / "positions.json").unlink()
    (folder / "positions.safetensors").unlink()
    assert [path.name for path in write(folder)] == ["positions.json", "positions.safetensors"]
    assert contents(folder) == before
    (folder / "outputs.json").write_bytes(before["outputs.json"] + b"\n")
    with pytest.raises(UsageError, match=r"outputs\.json is not what its definitions give, and nothing is overwritten"):
        write(folder)


# Added


def test_adding_assigns_the_next_id_and_changes_no_other_case(folder: Path) -> None:
    before = read_tensors(folder / "masking.safetensors")
    entries = json.loads((folder / "masking.json").read_text(encoding="utf-8"))["cases"]
    identifier = add("ATT-MASK-009", "one more", "the tests", CAUSAL_TEXT, steps=True, folder=folder)
    assert identifier == f"GOLD-{len(CASES) + 1:04}"
    assert json.loads((folder / "masking.json").read_text(encoding="utf-8"))["cases"][:-1] == entries
    after = read_tensors(folder / "masking.safetensors")
    assert all((after[name] == array).all() for name, array in before.items())
    added = golden.load_cases(folder)[-1]
    assert (added.id, added.requirement, added.note) == (identifier, "ATT-MASK-009", "one more")
    assert (golden.golden_expected(added)["weights"][0, 0].round(12)[0] == [1, 0, 0]).all()
    assert check(folder) == []


def test_adding_keeps_transformed_arrays_and_says_their_shapes(folder: Path) -> None:
    text = "attention batch=3 heads=2 length=4/5 width=2 dtype=float32 values=spread.1#1 lengths=5,2,3 edits=batch-row.1*1.0#0"
    add("ATT-MASK-017", "row 1 alone", "the tests", text, folder=folder)
    added = golden.load_cases(folder)[-1]
    assert added.problem.text.startswith("attention batch=1 heads=2 length=4/5 width=2 dtype=float32 values=golden.1#")
    assert added.problem.key_lengths == (2,)
    assert (golden.case_inputs(added).query == materialise(parse(text)).query).all()


@pytest.mark.parametrize(
    ("requirement", "note", "text", "words"),
    [
        ("ATT-MASK-999", "n", CAUSAL_TEXT, "There is no requirement ATT-MASK-999"),
        ("MASK-9", "n", CAUSAL_TEXT, "no requirement id"),
        ("ATT-POS-001", "n", CAUSAL_TEXT, "is about sinusoidal_encoding, not attention"),
        ("ATT-MASK-009", " ", CAUSAL_TEXT, "the note is empty"),
        ("ATT-MASK-009", "n", "attention batch=1", "lacks heads="),
        ("ATT-MASK-009", "n", CAUSAL_TEXT.replace("spread.1#1", "golden.1#1"), "not from another golden case"),
        ("ATT-MASK-009", "n", CAUSAL_TEXT.replace("length=3", "length=2000"), "too many for a golden case"),
        ("ATT-NUM-003", "n", CAUSAL_TEXT + " edits=put-value.1*nan#0", "value holds nan"),
        ("ATT-OUT-003", "n", next(c.made_from for c in CASES if c.requirement == "ATT-OUT-003"), "stored already, as GOLD-"),
    ],
)
def test_what_cannot_be_added_changes_nothing(folder: Path, requirement: str, note: str, text: str, words: str) -> None:
    before = contents(folder)
    with pytest.raises(UsageError, match=re.escape(words)):
        add(requirement, note, "the tests", text, folder=folder)
    assert contents(folder) == before


def test_nothing_is_added_to_a_file_that_is_not_as_defined(folder: Path) -> None:
    document = json.loads((folder / "masking.json").read_text(encoding="utf-8"))
    document["cases"].pop()
    (folder / "masking.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UsageError, match=r"masking\.json does not hold the cases"):
        add("ATT-MASK-009", "n", "the tests", CAUSAL_TEXT, folder=folder)


# Damaged


def read_everything(folder: Path) -> None:
    golden.forget()
    for case in golden.load_cases(folder):
        golden.case_inputs(case)
        golden.golden_expected(case)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def swap_with_other(path: Path) -> None:
    shutil.copy(path.with_name("scaling.safetensors"), path)


def drop_a_query(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["cases"][0]["inputs"]["query"]
    path.write_text(json.dumps(document), encoding="utf-8")


def replace_text(old: str, new: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("heads.safetensors", Path.unlink, "cannot be read (No such file"),
        ("heads.safetensors", cut_short, "is damaged, it is no safetensors file"),
        ("heads.safetensors", flip_a_bit, "the sha256 of the tensor GOLD-"),
        ("heads.safetensors", swap_with_other, "lacks the tensor GOLD-"),
        ("heads.json", cut_short, "it is no JSON text"),
        ("heads.json", replace_text("attention-golden-1", "something-else"), 'it lacks "format": "attention-golden-1"'),
        (
            "heads.json",
            replace_text('"requirement"', '"requirements"'),
            "is damaged in its case number 1 (Object missing required field `requirement`)",
        ),
        ("heads.json", replace_text("values=golden.1#", "values=golden.1#9"), "is damaged in its case number 1 (GOLD-"),
        ("heads.json", replace_text("values=golden.1#", "worth=golden.1#"), "unknown field 'worth'"),
        ("heads.json", replace_text('"cases": [', '"cases": 3, "more": ['), "it has no list of cases"),
        ("heads.json", replace_text('"budget"', '"bound"'), "output or budget is not expected"),
        ("heads.json", drop_a_query, "has not the inputs that it needs ('query')"),
        ("heads.json", replace_text('"sha256"', '"sha"'), "a tensor lacks dtype, shape or sha256"),
    ],
)
def test_damage_is_told_in_a_sentence(folder: Path, name: str, damage: Callable[[Path], None], words: str) -> None:
    read_everything(folder)
    damage(folder / name)
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        read_everything(folder)
    assert str(folder / name) in str(caught.value)


def test_a_case_in_two_files_and_an_empty_folder_are_told(folder: Path) -> None:
    shutil.copy(folder / "heads.json", folder / "more.json")
    with pytest.raises(UsageError, match=r"is both in heads\.json and in"):
        read_everything(folder)
    for path in folder.glob("*.json"):
        path.unlink()
    with pytest.raises(UsageError, match="There are no golden cases in"):
        read_everything(folder)


# From another language


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_of_the_readme_checks_the_cases() -> None:
    script = (golden_folder() / "README.md").read_text(encoding="utf-8").split("```js\n")[1].split("```")[0]
    command = ["node", "-e", script]
    ran = subprocess.run(command, cwd=golden_folder(), capture_output=True, text=True, timeout=PATIENCE, check=True)
    target = sum(c.problem.operation == "attention" and c.problem.dtype in ("float64", "float32") for c in CASES)
    match = re.fullmatch(r"(\d+) cases, largest r = ([\d.]+)\n", ran.stdout)
    assert match, ran.stdout
    assert int(match[1]) == target
    assert float(match[2]) < 1
