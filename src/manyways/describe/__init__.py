"""Descriptions: what each plan of a set does and how it differs from the others, in numbers and in sentences."""

from manyways.describe.decisions import Decision, Decisions, Taken, decisions_of, two_variables
from manyways.describe.likeness import GRADES
from manyways.describe.measure import Measure, measures
from manyways.describe.portrait import Portrait, portraits
from manyways.describe.rules import Rule
from manyways.describe.survey import Survey, rules_of, survey_of

__all__ = [
    "GRADES",
    "Decision",
    "Decisions",
    "Measure",
    "Portrait",
    "Rule",
    "Survey",
    "Taken",
    "decisions_of",
    "measures",
    "portraits",
    "rules_of",
    "survey_of",
    "two_variables",
]
