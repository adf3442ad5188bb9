"""Pictures of the metric Spaces' pages, for their cards: ``python -m eraser_hub.publishing.screenshots``.

Builds each Space in a temporary folder, starts its app, presses Submit in a headless Chromium and saves what it shows as
``metrics/cards/NAME.png``. Needs Debian's chromium and chromium-driver, selenium and gradio.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError

from .spaces import build_metrics, metric_names, metrics_folder

STARTING_SECONDS = 90.0
WAITING_SECONDS = 60.0
WINDOW = (1200, 1180)
NARROW = 600
LARGEST_PICTURE = 100_000


def missing_programs() -> list[str]:
    """The programs that driving a browser needs and this machine has not."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


# Each app is run as the Hub runs it, `python app.py` in its folder, in a process of its own; only the import of what
# they all import, seconds long, is done once. A Space has no transformers, which evaluate would import if it could.
_RUN_APPS = """
import os, runpy, sys
sys.modules["transformers"] = None
import datasets, evaluate
for argument in sys.argv[1:]:
    folder, _, port = argument.rpartition("=")
    if os.fork() == 0:
        os.chdir(folder)
        os.environ["GRADIO_SERVER_PORT"] = port
        sys.argv, sys.path[0] = ["app.py"], folder
        runpy.run_path("app.py", run_name="__main__")
        os._exit(0)
os.wait()
sys.exit("an app ended")
"""


@contextlib.contextmanager
def running_apps(folders: Sequence[Path]) -> Iterator[list[str]]:
    """The addresses of Spaces' apps, all started as the Hub starts one: ``python app.py`` in its folder.

    Raises:
        DataError: an app did not start, with what it said.
    """
    ports = _free_ports(len(folders))
    urls = [f"http://127.0.0.1:{port}/" for port in ports]
    settings = {
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "no_proxy": "127.0.0.1",
    }
    arguments = [f"{folder.resolve()}={port}" for folder, port in zip(folders, ports, strict=True)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN_APPS, *arguments],
            env={**os.environ, **settings},
            stdout=log,
            stderr=log,
            start_new_session=True,  # a process group of their own: they end together
        )
        try:
            deadline = time.monotonic() + STARTING_SECONDS
            for folder, url in zip(folders, urls, strict=True):
                while not _answers(url):
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        output = log.read().decode(errors="replace")[-2000:]
                        raise DataError(f"the app did not start: {output}", file=folder / "app.py")
                    time.sleep(0.1)
            yield urls
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # nothing of theirs is worth a farewell
            process.wait(timeout=10)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def headless_browser() -> Iterator[Any]:
    """A headless Chromium, driven by selenium."""
    from selenium import webdriver

    if missing := missing_programs():
        raise DataError(f"no {' and no '.join(missing)} (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    size = "--window-size={},{}".format(*WINDOW)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", size):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def view_as(browser: Any, width: int = 0, scheme: str = "") -> None:
    """Show pages in a viewport of this width, to a reader who prefers ``light`` or ``dark``; without, as they were before."""
    if width:
        size = {"width": width, "height": WINDOW[1], "deviceScaleFactor": 1, "mobile": width < NARROW}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    else:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait_for(browser: Any, condition: Callable[[Any], Any], what: str) -> Any:
    """The condition's first true value, asked again until it has one.

    Raises:
        DataError: it had none for a minute.
    """
    from selenium.common.exceptions import WebDriverException

    deadline = time.monotonic() + WAITING_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(WebDriverException):
            value = condition(browser)
            if value:
                return value
        time.sleep(0.1)
    raise DataError(f"the page did not show {what}")


def text_of(browser: Any, element_id: str) -> str:
    """What an element of the page shows; empty where there is no such element."""
    return "\n".join(element.text for element in browser.find_elements("id", element_id))


def submit(browser: Any) -> None:
    """Press Submit, once the page can take it."""
    wait_for(browser, lambda page: page.find_element("id", "submit").is_enabled(), "the button Submit")
    browser.find_element("id", "submit").click()


def open_page(browser: Any, url: str) -> None:
    """Open the app's page and wait for its boxes."""
    browser.get(url)
    wait_for(browser, lambda page: page.find_elements("css selector", "#references .cm-content"), "the boxes")
    time.sleep(1.0)  # the page wires its buttons after it has drawn them


def take_pictures(names: list[str] | None = None, cards: Path | None = None) -> list[Path]:
    """Save the page of each metric with its example's result as ``NAME.png`` beside its card."""
    cards = cards or metrics_folder() / "cards"
    pictures = []
    with tempfile.TemporaryDirectory() as place, headless_browser() as browser:
        for name in names or metric_names():
            _provide_pictures(name, cards)
            (folder,) = build_metrics(place, [name])
            with running_apps([folder]) as (url,):
                open_page(browser, url)
                submit(browser)
                wait_for(browser, lambda page: len(text_of(page, "scores").splitlines()) > 4, "scores")
                time.sleep(0.5)
                picture = browser.get_screenshot_as_png()
            (cards / f"{name}.png").write_bytes(_small(picture))
            pictures.append(cards / f"{name}.png")
    return pictures


def _provide_pictures(name: str, cards: Path) -> None:
    """A card may show the picture that is only about to be made: an empty one lets its Space be built."""
    picture = cards / f"{name}.png"
    if not picture.exists():
        picture.write_bytes(b"")


def _small(png: bytes) -> bytes:
    """The picture in as many colours as fit into 100 kB."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (128, 64, 32, 16):
        out = io.BytesIO()
        picture.quantize(colours).save(out, "PNG", optimize=True)
        if out.tell() < LARGEST_PICTURE:
            break
    return out.getvalue()


if __name__ == "__main__":
    for path in take_pictures(sys.argv[1:] or None):
        print(path, path.stat().st_size)
