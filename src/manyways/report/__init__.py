"""The page on which a person compares the plans of a set and chooses one: a single HTML document without dependencies.

`view_of` turns a plan set into plain data, `render` turns that data into the page. The same templates make the file
that `PlanSet.report` writes and the live page of `manyways serve`, which adds names, notes, stars and choices.
"""

from manyways.report.offers import offers_of
from manyways.report.page import Live, notebook_view, render, write_report
from manyways.report.view import view_of

__all__ = ["Live", "notebook_view", "offers_of", "render", "view_of", "write_report"]
