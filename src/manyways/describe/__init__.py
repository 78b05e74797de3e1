"""Descriptions: what each plan of a set does and how it differs from the others, in numbers and in sentences."""

from manyways.describe.likeness import GRADES
from manyways.describe.measure import Measure, measures
from manyways.describe.portrait import Portrait, portraits
from manyways.describe.survey import Survey, survey_of

__all__ = ["GRADES", "Measure", "Portrait", "Survey", "measures", "portraits", "survey_of"]
