"""Flows: a day of dependent work. Defined in code, started once per period, seen and mended by people."""

from rota.flow.flow import Flow, Step, StepArgs
from rota.flow.status import FlowStatus, StepStatus

__all__ = ["Flow", "FlowStatus", "Step", "StepArgs", "StepStatus"]
