"""GitHub's workflow commands: lines of output that a runner takes as annotations. Escaped as its own toolkit does."""

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def workflow_command(name: str, message: str, **properties: str | int | None) -> str:
    """``::name file=…,line=…::message``, in one line whatever the text; properties that are None are left out."""
    told = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in properties.items() if value is not None)
    return f"::{name}{' ' if told else ''}{told}::{_escaped(message, _DATA)}"


def _escaped(text: str, codes: dict[str, str]) -> str:
    """Character by character, so that no escape is escaped again."""
    return "".join(codes.get(character, character) for character in text)
