"""docs/faults.md says what the catalogue says; what was measured may be of another day."""

from conformance.faults import catalogue, render
from conformance.faults.pending import PENDING


def test_the_document_is_fresh():
    assert not render.stale(), "run: python -m conformance.faults.render"


def test_the_document_names_every_fault_with_its_sources_and_whatever_is_pending():
    text = render.render()
    for fault in catalogue().values():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{fault.id}` |"))
        assert all(identifier in row for identifier in fault.requirements) or fault.equivalent
        assert all(source.rpartition(": ")[2].rstrip("/") in row for source in fault.sources if "http" in source)
    assert all(f"**{kind.kind}**" in text for kind in PENDING)


def test_what_was_measured_is_kept_apart(tmp_path, monkeypatch):
    kill = {"requirement": "ATT-OUT-001", "named": True, "outcome": "ERROR", "r": None, "seconds": 0.25, "random": False}
    trials = [
        {"fault": "one", "dtype": "float32", "kills": [kill], "seconds": 1.0, "equivalent": False},
        {"fault": "one", "dtype": "float16", "kills": [{**kill, "seconds": 0.5, "r": 30.0}], "seconds": 1.0, "equivalent": False},
        {"fault": "other", "dtype": "float32", "kills": [], "seconds": 1.0, "equivalent": False},
    ]
    second = render.measured(trials)
    assert "| `one` | ATT-OUT-001 | 0.500 | 30 |" in second and "other" not in second
    document = tmp_path / "faults.md"
    monkeypatch.setattr(render, "DOCUMENT", document)
    assert render.stale()
    document.write_text(render.render() + "\n" + second, encoding="utf-8")
    assert not render.stale()
    render.main([])
    assert document.read_text(encoding="utf-8").endswith(second)
    document.write_text("something else\n" + second, encoding="utf-8")
    assert render.stale()
