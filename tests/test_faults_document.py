"""docs/faults.md says what the catalogue says; what was measured may be of another day."""

from dataclasses import replace

from conformance.evaluation import render
from conformance.evaluation.kill_tables import as_json, judged_trials
from conformance.evaluation.kills import FaultTrial, Kill, KillMatrix
from conformance.faults import catalogue


def test_the_document_is_fresh():
    assert not render.stale(), "run: python -m conformance.evaluation.render"


def test_the_document_names_every_fault_with_its_sources():
    text = render.render()
    for fault in catalogue().values():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{fault.id}` |"))
        assert all(identifier in row for identifier in fault.requirements) or fault.equivalent
        assert all(source.rpartition(": ")[2].rstrip("/") in row for source in fault.sources if "http" in source)


def test_what_was_measured_is_kept_apart(tmp_path, monkeypatch):
    kill = Kill(requirement="ATT-OUT-001", named=True, outcome="ERROR", r=None, seconds=0.25, random=False)
    trials = (
        FaultTrial(fault="scale-missing", dtype="float32", kills=(kill,), seconds=1.0),
        FaultTrial(fault="scale-missing", dtype="float16", kills=(replace(kill, seconds=0.5, r=30.0),), seconds=1.0),
        FaultTrial(fault="scale-by-width", dtype="float32", kills=(), seconds=1.0),
        FaultTrial(fault="same", dtype="float32", kills=(kill,), seconds=1.0),
    )
    faults = {**catalogue(), "same": replace(catalogue()["scale-missing"], id="same", equivalent="It does nothing.")}
    second = render.measured(judged_trials(as_json(KillMatrix(trials, faults, complete=False))))
    assert "| `scale-missing` | ATT-OUT-001 | 0.500 | 30 |" in second
    assert "scale-by-width" not in second and "same" not in second
    document = tmp_path / "faults.md"
    monkeypatch.setattr(render, "DOCUMENT", document)
    assert render.stale()
    document.write_text(render.render() + "\n" + second, encoding="utf-8")
    assert not render.stale()
    render.main([])
    assert document.read_text(encoding="utf-8").endswith(second)
    document.write_text("something else\n" + second, encoding="utf-8")
    assert render.stale()
