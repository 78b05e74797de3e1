"""An objective without a tradeoff, as a user might write one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import manyways as mw


@mw.register
@dataclass(frozen=True)
class Breadth(mw.Objective):
    """Mean reward + the time on each choice by the plan that spends most on it."""

    def on(self, mdp, compared):
        return CoverageOnModel(mdp, compared)

    def describe(self) -> str:
        return "mean reward + coverage of the choices"


@dataclass(frozen=True, eq=False)
class CoverageOnModel(mw.SetObjective):
    """Value and gradient of coverage; convex, since a maximum of linear functions is."""

    def value(self, x):
        return float((x @ self.mdp.reward).mean() + x.max(axis=0).sum())

    def gradient(self, x, smoothing=0.0):
        del smoothing
        first = np.arange(len(x))[:, None] == x.argmax(axis=0)
        return self.mdp.reward / len(x) + first
