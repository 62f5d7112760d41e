"""The day in a Flask app: plain view functions start it, plan it, look at it and mend it.

flask --app examples.race_day.flask_site run
"""

from typing import Any

import msgspec
from flask import Flask, request

import rota.flask
from examples.race_day.app import app
from examples.race_day.day import day
from examples.race_day.races import plan_program
from examples.race_day.racing import Race
from rota import InvalidOptions


def create_app(**config: object) -> Flask:
    """Dates are DDMMYYYY, as the racing service writes them."""
    site = Flask("race_day")
    site.config.from_mapping(config)
    rota.flask.init_app(site, app)

    @site.post("/days/<date_string>/start")
    def start(date_string: str) -> dict[str, str]:
        """The orchestrator: what is done stays done, what waits goes on waiting."""
        return {step: str(decision.reason) for step, decision in day.start_sync(date_string).items()}

    @site.get("/days/<date_string>")
    def look(date_string: str) -> dict[str, Any]:
        status = day.status_sync(date_string)
        steps = {name: {"state": step.state, "blocked_by": step.blocked_by} for name, step in status.steps.items()}
        return {"done": status.done, "steps": steps}

    @site.post("/days/<date_string>/races")
    def plan(date_string: str) -> dict[str, str]:
        """The planner: the racing service sends its program whenever it changes, with starts in milliseconds."""
        races = msgspec.json.decode(request.get_data(), type=list[Race])
        return {"report": plan_program(races, date_string)}

    @site.post("/days/<date_string>/reset")
    def reset(date_string: str) -> dict[str, list[str]]:
        return {"forgotten": day.reset_sync(date_string)}

    @site.errorhandler(InvalidOptions)
    @site.errorhandler(msgspec.ValidationError)
    def wrong(error: Exception) -> tuple[dict[str, str], int]:
        return {"error": str(error)}, 422

    return site
