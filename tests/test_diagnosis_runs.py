"""A diagnosis at the end of a run, in a process of its own that an implementation may end or hang."""

import json
from pathlib import Path

from conformance.records import DiagnosisRecord as Record
from conformance.records import read_records
from conformance.run.workers.afterwards import ask
from conformance.run.workers.asking import Request
from tests import fakes
from tests.support.commands import PATIENCE
from tests.support.diagnosing import run


def test_a_run_ends_with_a_diagnosis(tmp_path):
    folder = run(tmp_path, fakes.named("unscaled"), "-k", "ATT-SCALE or ATT-OUT-00", "-n", "0")
    (diagnosis,) = read_records(folder / "records.jsonl").diagnoses
    assert diagnosis.explanations[0].faults == ("scale-missing",)
    assert diagnosis.explanations[0].sentence.split(":")[0] in (folder / "summary.md").read_text(encoding="utf-8")
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))["diagnoses"][0]["faults"] == [["scale-missing"]]


def test_a_run_without_a_diagnosis(tmp_path):
    folder = run(tmp_path, fakes.named("unscaled"), "-k", "ATT-SCALE-001", "--no-diagnosis", "-n", "0")
    assert not read_records(folder / "records.jsonl").diagnoses


def test_what_ends_its_process_is_diagnosed_by_what_did_not(tmp_path):
    """The implementation dies when it is given a scale, and gives zeros elsewhere."""
    source = tmp_path / "dying.py"
    source.write_text(
        "import os\nimport numpy as np\n"
        "def attention(query, key, value, *, scale=None):\n"
        "    if scale is not None:\n        os._exit(11)\n"
        "    return np.zeros((*query.shape[:3], value.shape[3]), query.dtype)\n"
    )
    folder = run(tmp_path, f"{source}:attention", "-k", "ATT-SCALE-001 or ATT-SCALE-005", "-n", "1")
    recorded = read_records(folder / "records.jsonl")
    assert {str(item.outcome) for item in recorded.items} == {"CRASH", "WRONG_VALUE"}
    (diagnosis,) = recorded.diagnoses
    assert any("outputs are 0" in line for line in diagnosis.lines)
    assert diagnosis.remarks[-1] == "Left out is what ended the process or ran over the time limit: ATT-SCALE-005."


# A diagnosis in a process of its own

PLAIN = "attention batch=1 heads=2 length=3/5 width=4 dtype=float32 values=gaussian.1#0"


def asked(folder: Path, body: str, limit: float = PATIENCE) -> Record:
    """The diagnosis of a function with this ``body`` that is said to fail a problem."""
    source = folder / "mine.py"
    source.write_text(f"import os, sys, time, numpy as np\ndef attention(query, key, value):\n    {body}\n")
    name = f"{source}:attention"
    request = Request(implementation=name, failing={PLAIN: "WRONG_VALUE"}, passing=())
    return ask(request, name, {}, limit)


def test_a_call_that_does_not_return_ends_the_diagnosis(tmp_path):
    assert asked(tmp_path, "time.sleep(1000)", limit=3.0).remarks == ("There is no diagnosis: it took more than 3 s.",)


def test_an_implementation_that_ends_the_process_ends_the_diagnosis_alone(tmp_path):
    (remark,) = asked(tmp_path, "os._exit(0)").remarks
    assert remark.endswith("the implementation ended the process in which its failures were run again.")


def test_an_implementation_that_pretends_to_be_interrupted_is_told(tmp_path):
    (remark,) = asked(tmp_path, "raise KeyboardInterrupt('not you')").remarks
    assert "an exception: KeyboardInterrupt: not you" in remark


def test_failures_that_cannot_be_run_again_are_told_with_what_was_raised(tmp_path):
    (remark,) = asked(tmp_path, "raise MemoryError('no room')").remarks
    assert remark.startswith("There is no diagnosis: the failing problems could not be run again (MemoryError: no room")


def test_what_an_implementation_does_to_its_process_harms_nobody(tmp_path):
    """It prints, closes the streams, and goes elsewhere."""
    (remark,) = asked(tmp_path, "print('x'); os.write(1, b'y'); os.chdir('/'); os.close(2); raise OSError('gone')").remarks
    assert "an exception: OSError: gone" in remark
