"""Plan files (`.mw`) as models: a plan file holds the model that it was planned for.

So `manyways plan plans.mw --keep plans.mw:1,3` plans again, even if the source of the model is gone.
"""

from __future__ import annotations

from pathlib import Path

from manyways.errors import ModelError, PlanFileError, SourceError
from manyways.files.archive import unpack
from manyways.formats.format import FORMATS, Format
from manyways.model.as_arrays import PLAN_SCHEMA, PLAN_VERSIONS, model_from_arrays
from manyways.model.mdp import MDP


def read_plan_file(path: Path) -> MDP:
    """The model in a plan file. Its source is the one that it was read from before planning."""
    try:
        header, arrays = unpack(path, str(path), PLAN_SCHEMA, PLAN_VERSIONS)
        return model_from_arrays(header["model"], arrays)
    except PlanFileError as error:
        raise SourceError(str(error)) from None
    except (ModelError, KeyError, TypeError, IndexError, ValueError) as error:
        raise SourceError(f"{path} is damaged: {error}") from None


FORMATS.add(Format("the model of a plan file", read_plan_file, endings=(".mw",), example="plans.mw"))
