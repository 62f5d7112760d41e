"""A test of the served site, which the tests of rota.django run with `manage.py test`."""

from urllib.request import urlopen

from django.core.wsgi import get_wsgi_application
from django.test import LiveServerTestCase

from rota.django import serving


class LiveCase(LiveServerTestCase):
    def test_the_live_server_has_no_engine(self) -> None:
        get_wsgi_application()
        with urlopen(self.live_server_url) as answer:
            assert answer.status == 200
        assert serving.state() == "undecided"
