"""Starts the real `perch serve` on the fixtures."""

import json
import os
import subprocess
from pathlib import Path

import openai
import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
PERCH = Path(os.environ.get("PERCH_BIN", ROOT / "target" / "debug" / "perch"))


def perch(*args, check=True):
    """Runs a command to its end; gives its exit code and what it printed as JSON."""
    done = subprocess.run([PERCH, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert not check or done.returncode == 0, done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


class Served:
    def __init__(self, *args):
        command = [PERCH, "serve", "--port", "0", *map(str, args)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.ready = json.loads(line)
        self.address = self.ready["address"]
        self.token = self.ready["token"]

    def client(self, **options):
        options = {"api_key": self.token, "max_retries": 0, "timeout": 60, **options}
        return openai.OpenAI(base_url=f"{self.address}/v1", **options)

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0


@pytest.fixture(scope="session")
def served():
    served = Served("--models", FIXTURES / "models")
    yield served
    served.stop()


@pytest.fixture
def client(served):
    return served.client()
