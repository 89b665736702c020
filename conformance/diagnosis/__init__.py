"""Diagnosis: which fault of the catalogue explains the failures of an implementation, and what can be said where none does."""

from conformance.diagnosis.diagnosing import diagnose
from conformance.diagnosis.finding import Diagnosis, Finding, Unexplained

__all__ = ["Diagnosis", "Finding", "Unexplained", "diagnose"]
