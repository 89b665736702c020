"""A process in which implementations run: it loads them, says what they are, and answers item by item."""

import pickle

import msgspec

from conformance.adapter.loading import load_here
from conformance.run.workers.answering import Answering
from conformance.run.workers.asking import Ask, WorkerTask
from conformance.run.workers.trail import Trail
from conformance.system.children import channel
from conformance.system.floating_point import FloatingPoint


def main() -> None:
    """The process. It ends with its connection."""
    line = channel()
    task: WorkerTask = pickle.loads(line.receive())
    trail, floating_point = Trail(task.trail), FloatingPoint()
    implementations = load_here(task.names, task.given, line, floating_point)
    answering = Answering(implementations, task, trail.note, floating_point)
    while True:
        ask = msgspec.json.decode(line.receive(), type=Ask)
        trail.forget()
        line.send(msgspec.json.encode(answering.answer(ask.identifier, ask.implementation)))
