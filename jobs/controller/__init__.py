"""The controllers of jobs: one reconciles a job with what is there, one gives bare pods their PodGroup, a manager runs them."""

from __future__ import annotations

from jobs.controller.manager import ControllerManager

__all__ = ["ControllerManager"]
