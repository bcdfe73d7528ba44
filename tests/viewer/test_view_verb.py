"""Law: `raymarch view` shows a file, says what goes wrong in page and terminal, and ends cleanly."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.viewer.server.open_browser import no_browser_reason, ssh_line

pytestmark = pytest.mark.extra
require_extra("websockets", "viewer")

from websockets.sync.client import connect  # noqa: E402

CAMERA = {"type": "camera", "id": 1, "position": [0, -4, 0], "width": 40, "height": 36, "moving": False}


def ball(radius):
    return rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < radius), shape=(12, 12, 12))


def start(*arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if name not in ("SSH_CONNECTION", "DISPLAY")}
    return subprocess.Popen(
        [sys.executable, "-m", "raymarch", "view", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**clean, **environment},
    )


def next_of(link, *kinds):
    """The next message of some kinds, and its bytes."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        data = link.recv(60)
        if isinstance(data, str):
            header, rest = json.loads(data), None
        else:
            (length,) = struct.unpack("<I", data[:4])
            header, rest = json.loads(data[4 : 4 + length]), data[4 + length :]
        if header["type"] in kinds and header.get("final", True):
            return header, rest
    raise AssertionError(f"no {kinds} came")


def test_the_whole_way(tmp_path):
    file = tmp_path / "ball.h5"
    rm.save(ball(0.5), file)
    with start(file, "--no-browser", "--arch", "cpu", SSH_CONNECTION="10.0.0.7 50412 10.0.0.9 22", USER="ann") as verb:
        try:
            url = verb.stdout.readline().strip()
            host, query = url.removeprefix("http://").split("/?")
            with connect(f"ws://{host}/ws?{query}", origin=f"http://{host}", max_size=None) as link:
                scene, _ = next_of(link, "scene")
                assert scene["shape"] == [12, 12, 12] and scene["name"] == "ball.h5" and not scene["fit"]
                link.send(json.dumps(CAMERA))
                header, first = next_of(link, "frame")
                assert header["of"] == [40, 36] and first.startswith(b"\x89PNG")
                link.send('{"type": "look", "exposure": NaN}')
                assert next_of(link, "error")[0]["text"] == "exposure is nan, want a number from -10 to 10"
                rm.save(ball(0.9), file)
                assert "was replaced on disk" in next_of(link, "note")[0]["text"]
                assert next_of(link, "frame")[1] != first
                file.write_bytes(b"no volume")
                assert "the new one is not shown" in next_of(link, "note")[0]["text"]
                link.socket.shutdown(2)
            verb.send_signal(signal.SIGINT)
            out, err = verb.communicate(timeout=30)
        finally:
            verb.kill()
    assert verb.returncode == 0 and out == ""
    port = host.split(":")[1]
    assert f"ssh -N -L {port}:127.0.0.1:{port} ann@10.0.0.9" in err and "Traceback" not in err
    assert err.count("exposure is nan") == 1 and err.count("was replaced on disk") == 2
    with pytest.raises(OSError, match="refused"):
        connect(f"ws://{host}/ws?{query}").__enter__()


BALL = "ball.h5"
WRONG = [(["missing.h5"], "missing.h5"), ([BALL, "--views", "nowhere"], "nowhere"), ([BALL, "--port", "-1"], "-1")]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_what_cannot_be_shown_is_one_line_without_a_url(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    rm.save(ball(0.5), "ball.h5")
    with start(*arguments, "--no-browser") as verb:
        out, err = verb.communicate(timeout=60)
    assert verb.returncode in (1, 2) and out == "" and said in err and "Traceback" not in err


def test_where_no_browser_is_opened():
    assert no_browser_reason({}, "linux") == "there is no display"
    assert (
        no_browser_reason({"DISPLAY": ":0"}, "linux")
        == no_browser_reason({}, "darwin")
        == no_browser_reason({}, "win32")
        == ""
    )
    assert ssh_line(80, {}) == ssh_line(80, {"SSH_CONNECTION": "odd"}) == ""
