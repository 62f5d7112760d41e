"""Flows: a day of dependent work. Code defines a flow, each period starts once, people look at it and repair it."""

from rota.flow.flow import Flow, Step, StepArgs, codes_of, handler_of, specs_of
from rota.flow.status import FlowStatus, StepStatus

__all__ = ["Flow", "FlowStatus", "Step", "StepArgs", "StepStatus", "codes_of", "handler_of", "specs_of"]
