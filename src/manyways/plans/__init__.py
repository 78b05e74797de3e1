"""Plan sets: the result of planning, its file, its certificate, and single plans as policies."""

from manyways.plans.certificate import Certificate, Check
from manyways.plans.planset import Plan, PlanSet, load
from manyways.plans.policy import Policy, Rollout, load_policy
from manyways.plans.route import Route
from manyways.plans.verification import verify

__all__ = ["Certificate", "Check", "Plan", "PlanSet", "Policy", "Rollout", "Route", "load", "load_policy", "verify"]
