"""The report page: one HTML file that needs nothing but itself, made from records.

Python prepares what is shown (``results``, ``conventions``, ``accuracy``, ``speed``, ``growth``), ``templates/`` lay it out, and
``assets/`` hold the style and the little script. Whatever only the script can do, filters and heat maps, is an extra: without it
the page shows everything.
"""

from conformance.page.make import make_page, write_page
from conformance.page.plots import MISSING, plots_available

__all__ = ["MISSING", "make_page", "plots_available", "write_page"]
