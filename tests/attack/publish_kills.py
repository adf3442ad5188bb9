"""SIGKILL of `publish` in the middle of its requests: each repository holds the old tree or the new."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .runs import Outcome
from .workers import Verdict


class Trap(list[tuple[str, str]]):
    """The Hub's requests; at one of them the child that publishes is killed, and the request may be lost."""

    def __init__(self, at: int, lost: bool) -> None:
        super().__init__()
        self.at, self.lost = at, lost
        self.child: subprocess.Popen[bytes] | None = None

    def append(self, request: tuple[str, str]) -> None:
        super().append(request)
        if len(self) == self.at and self.child is not None:
            self.child.kill()
            if self.lost:
                raise ConnectionAbortedError


def publish_kills(home: Path, count: int, seed: int) -> Iterator[Verdict]:
    """Kills of `publish` to a Hub on loopback: each repository's main is the old tree or the new; a rerun ends it."""
    if not count:
        return
    from tests.publishing.loopback_hub import TOKEN, LoopbackHub

    hub = LoopbackHub()
    command = [sys.executable, "-m", "eraser_hub", "publish", "--namespace", "org", "--dir", str(home / "hub")]
    command += ["--dataset", "eraser", "--metric", "normalized_fidelity"]
    with hub.running(), tempfile.TemporaryDirectory() as cache:
        online = {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_HOME": cache,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
        }
        environment = {**os.environ, **online}

        def publish(seconds: float) -> int:
            child = subprocess.Popen(
                command, env=environment, cwd=cache, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            if isinstance(hub.requests, Trap):
                hub.requests.child = child
            try:
                said = child.communicate(timeout=seconds)[1]
            except subprocess.TimeoutExpired:
                child.kill()
                said = child.communicate()[1]
            if child.returncode > 0:
                print(said.decode("utf-8", "replace")[-500:], file=sys.stderr)
            return child.returncode

        start = time.monotonic()
        if publish(120):
            raise RuntimeError("publish to a Hub on loopback failed")
        length, new, asked = time.monotonic() - start, trees(hub), len(hub.requests)
        for number in range(count):
            hub.repos.clear(), hub.objects.clear(), hub.collections.clear()
            draw, how = random.Random(f"{seed} publish {number}"), ""
            if number % 3:  # at a request: of an upload, a commit or a tag
                at, lost = draw.randint(1, asked), draw.random() < 0.5
                how = f"at request {at} of {asked}, which {'is lost' if lost else 'takes effect'}"
                hub.requests = Trap(at, lost)
                status = publish(120)
                how += f": {' '.join(hub.requests[-1])}"
            else:
                after = draw.uniform(0.3, 1.0) * length
                how, status = f"after {after:.2f} s", publish(after)
            hub.requests = []
            now = trees(hub)
            strange = [
                name
                for name, tree in now.items()
                if tree not in (new[name], {".gitattributes": new[name][".gitattributes"]})
            ]
            fault = f"{strange} neither old nor new" if strange else ""
            if not fault and (publish(120) or trees(hub) != new):
                fault = "the rerun does not end it"
            kind = "half-written" if fault else "success" if status == 0 else "clean error"
            yield Verdict(
                "kill publish",
                number,
                "publish/kill",
                "anything",
                kind,
                fault,
                Outcome(rc=status),
                f"killed {how}",
            )


def trees(hub: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """What each repository's main holds."""
    return {name: repo.commits[repo.branches["main"]] for name, repo in hub.repos.items()}
