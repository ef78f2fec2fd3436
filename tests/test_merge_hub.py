"""A base of the hub: its files are fetched from a server that speaks as the hub does, and no others."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parent / "data" / "qwen3_5" / "0.8B"
NAME, COMMIT = "Owner/Base-1.0", "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": (PUBLISHED / "config.json").read_bytes(),
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "merges.txt": b"a b",
    "model.safetensors": b"weights",
    "figures/plot.png": b"a picture",
    "pytorch_model.bin": b"weights in another format",
}
WANTED = {name for name in FILES if not name.endswith((".png", ".bin"))}


def _entry(name: str) -> dict[str, object]:
    """A file in the list of a model's files."""
    content = FILES[name]
    return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


class Hub(BaseHTTPRequestHandler):
    """Endpoints of the hub: what a model has, the list of its files, and a file."""

    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody wants to know."""

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        name = path.removeprefix(f"/{NAME}/resolve/{COMMIT}/")
        if path.startswith(f"/api/models/{NAME}/tree/"):
            content = json.dumps([_entry(file) for file in FILES]).encode()
        elif path.startswith(f"/api/models/{NAME}"):
            siblings = [{"rfilename": file} for file in FILES]
            content = json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode()
        elif name in FILES:
            content = FILES[name]
            self.asked.append(name)
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if body:
            self.wfile.write(content)


@pytest.fixture
def hub() -> Iterator[tuple[str, list[str]]]:
    """The address of a hub, and the files that were asked for."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Hub,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def run(code: str, home: Path, endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with another hub, and a cache of its own."""
    proxies = {name for name in os.environ if name.lower().endswith("_proxy")}
    kept = {name: value for name, value in os.environ.items() if name not in proxies}
    environment = {**kept, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )


QGPUC = "from qgpu.toolchain.driver import main; main(prog_name='qgpuc')"
FETCH = f"""\
from qgpu.toolchain.hub import base_directory
folder = base_directory({NAME!r})
print(*sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()))
"""


def test_a_dry_run_fetches_the_config_alone(hub: tuple[str, list[str]], tmp_path: Path) -> None:
    endpoint, asked = hub
    arguments = ("--emit-weights", "--base", NAME, "--dry-run", "--json", "--machine", "seed")
    ran = run(QGPUC, tmp_path, endpoint, *arguments)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["hidden_size"] > 1024
    assert set(asked) == {"config.json"}


def test_a_merge_fetches_what_it_reads(hub: tuple[str, list[str]], tmp_path: Path) -> None:
    endpoint, asked = hub
    ran = run(FETCH, tmp_path, endpoint)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.split()) == WANTED == set(asked)
    asked.clear()
    assert run(FETCH, tmp_path, endpoint).stdout == ran.stdout
    assert asked == []


def test_a_model_that_the_hub_has_not(hub: tuple[str, list[str]], tmp_path: Path) -> None:
    ran = run(QGPUC, tmp_path, hub[0], "--emit-weights", "--base", "Owner/Other", "--dry-run")
    assert ran.returncode == 1
    assert "cannot get 'Owner/Other'" in ran.stderr
    assert "Traceback" not in ran.stderr
