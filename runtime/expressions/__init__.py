"""Expressions on vectors and matrices, each step of which is a launch of a library kernel."""

from __future__ import annotations

from qgpu.runtime.expressions.evaluate import Evaluation, evaluate
from qgpu.runtime.expressions.launcher import Launcher, LaunchRecord

__all__ = ["Evaluation", "LaunchRecord", "Launcher", "evaluate"]
