"""The judgement: outputs against the oracle's answers, which are kept for a while."""
