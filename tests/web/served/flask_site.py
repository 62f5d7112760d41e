"""A site of Flask, made by a factory."""

import logging

from flask import Flask, current_app

import rota.flask
from tests.web.served.work import app


@app.task
def whose() -> str:
    return current_app.name


@app.task(executor="process")
def whose_child() -> str:
    return current_app.name


def create_app() -> Flask:
    logging.basicConfig(level=logging.INFO)
    site = Flask("shop")
    rota.flask.init_app(site, app)

    @site.get("/")
    def home() -> str:
        return "home"

    return site


flask_app = create_app()
