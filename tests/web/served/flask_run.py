"""`app.run()` of the Flask site: `python -m tests.web.served.flask_run PORT [--debug]`."""

import sys

from tests.web.served.flask_site import flask_app

if __name__ == "__main__":
    flask_app.run(port=int(sys.argv[1]), debug="--debug" in sys.argv)
