"""A site of FastAPI, with a request that does not end."""

import asyncio
import logging

from fastapi import FastAPI

import rota.fastapi
from rota.web import Principal
from rota.web.rights import rights_of
from tests.web.served.work import app

logging.basicConfig(level=logging.INFO)
api = FastAPI()
rota.fastapi.install(api, app, auth=lambda scope: Principal("all", rights_of("admin")))


@api.get("/hang")
async def hang() -> None:
    print("a request hangs", flush=True)
    await asyncio.Event().wait()
