"""Pictures of the metric Spaces' pages, for their cards: ``python -m eraser_hub.conversion.screenshots``.

Builds each Space in a temporary folder, starts its app, presses Submit in a headless Chromium and saves what it shows as
``metrics/cards/NAME.png``. Needs Debian's chromium and chromium-driver, selenium and gradio.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eraser_hub.errors import DataError

from .spaces import build_metrics, metric_names, metrics_folder

STARTING_SECONDS = 90.0
WAITING_SECONDS = 60.0
WINDOW = (1200, 1180)
LARGEST_PICTURE = 100_000


def missing_programs() -> list[str]:
    """The programs that driving a browser needs and this machine has not."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


@contextlib.contextmanager
def running_app(folder: Path) -> Iterator[str]:
    """The address of a Space's app, started as the Hub starts it: ``python app.py`` in its folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    settings = {
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "no_proxy": "127.0.0.1",
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log
        )
        try:
            deadline = time.monotonic() + STARTING_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    said = log.read().decode(errors="replace")[-2000:]
                    raise DataError(f"the app did not start: {said}", file=folder / "app.py")
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)


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
            with running_app(folder) as url:
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
