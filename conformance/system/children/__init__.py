"""Processes of our own in which code of the user's runs: one that loads, is asked, answers, is ended and begun again.

Whatever that code does to its process, ends it, hangs it, closes its streams, forks, costs the question at hand and nothing else.
"""

from conformance.system.children.channel import Channel, channel
from conformance.system.children.descendants import adopt_orphans, end_orphans
from conformance.system.children.process import Child, how_it_ended

__all__ = ["Channel", "Child", "adopt_orphans", "channel", "end_orphans", "how_it_ended"]
