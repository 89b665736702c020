"""Implementations under test: modules by framework, and ``seeds`` for systems that public tutorials teach.

A module is found by being here. It may define ``FRAMEWORK``, how arrays get in and out of its framework, and
``IMPLEMENTATIONS``, a tuple of what it offers. It imports its framework inside functions only, so that the suite can list
everything where the framework is not installed.
"""
