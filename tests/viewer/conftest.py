"""Page of the viewer whose server the test plays."""

from __future__ import annotations

import pytest
from chromium import Watched, chromium
from played import ADDRESS, Played, answer


@pytest.fixture(scope="module")
def watched():
    with chromium() as running:
        found = Watched(running)
        found.context.route(f"{ADDRESS}/**", answer)
        yield found


@pytest.fixture
def server():
    return Played()


@pytest.fixture
def page(watched, server, request):
    watched.context.route_web_socket("**/ws?token=t", server.open)
    opened = watched.open(f"{ADDRESS}/?token=t")
    opened.wait_for_selector(".rm-stage[data-settled=true]")
    yield opened
    if request.session.testsfailed or watched.wrong:
        watched.keep(request.node.name)
    opened.close()
    assert not watched.wrong
    assert not watched.strangers
