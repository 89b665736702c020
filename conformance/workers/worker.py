"""A process in which implementations run: it loads them, says what they are, and answers item by item."""

import pickle

import msgspec

from conformance.children import channel
from conformance.floating_point import FloatingPoint
from conformance.loading import load_here
from conformance.workers.answering import Answering
from conformance.workers.asking import Ask, Task
from conformance.workers.trail import Trail


def main() -> None:
    """The process. It ends with its connection."""
    line = channel()
    task: Task = pickle.loads(line.receive())
    trail, floating_point = Trail(task.trail), FloatingPoint()
    implementations = load_here(task.names, task.given, line, floating_point)
    answering = Answering(implementations, task, trail.note, floating_point)
    while True:
        ask = msgspec.json.decode(line.receive(), type=Ask)
        trail.forget()
        line.send(msgspec.json.encode(answering.answer(ask.identifier, ask.implementation)))
