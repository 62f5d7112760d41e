"""The inventory of a target: of its app, if it names one, and of its store."""

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.options.target import Target
from rota.views.forecast import Inventory
from rota.views.inventory import inventory_of


async def read_inventory(target: Target, app: Rota | None) -> Inventory:
    async with target.client() as client:
        if app is None:
            return await inventory_of(client, target.tz())
        registry = core_of(app).registry
        flows = app.flows.values()
        return await inventory_of(
            client, app.settings.tz, app.settings.name, registry.declared(), registry.specs(), flows
        )
