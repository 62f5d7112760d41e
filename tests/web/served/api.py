"""A site of FastAPI."""

import logging

from fastapi import FastAPI

import rota.fastapi
from tests.web.served.work import app

logging.basicConfig(level=logging.INFO)
api = FastAPI()
rota.fastapi.install(api, app)
