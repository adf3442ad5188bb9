"""Pages in a headless Chromium, and pictures of them; the apps of Spaces, started as the Hub starts them.

Needs Debian's chromium and chromium-driver, selenium, and gradio for the apps.
"""

from __future__ import annotations

import base64
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

STARTING_SECONDS = 240.0
WAITING_SECONDS = 60.0
WINDOW = (1280, 1000)
NARROW = 390
VIEWS = tuple((width, scheme) for width in (WINDOW[0], NARROW) for scheme in ("light", "dark"))
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
del sys.modules["transformers"]  # `load_dataset` imports what stands there
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
def running_apps(folders: Sequence[Path], **environment: str) -> Iterator[list[str]]:
    """The addresses of Spaces' apps, all started as the Hub starts one: ``python app.py`` in its folder.

    Args:
        folders: the Spaces.
        environment: variables of the apps, beside this process's.

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
            env={**os.environ, **settings, **environment},
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
    """A headless Chromium, driven by selenium, which keeps all that pages write to their consoles."""
    from selenium import webdriver

    if missing := missing_programs():
        words = f"no {' and no '.join(missing)} (Debian: apt-get install chromium chromium-driver)"
        raise DataError(words)
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    switches = ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars")
    for switch in (*switches, f"window-size={WINDOW[0]},{WINDOW[1]}"):
        options.add_argument(f"--{switch}")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


def view_as(browser: Any, width: int = 0, scheme: str = "") -> None:
    """Show pages in a viewport of this width, to a reader who prefers ``light`` or ``dark``; without, as before."""
    if width:
        size = {"width": width, "height": WINDOW[1], "deviceScaleFactor": 1, "mobile": width <= NARROW}
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
    """Open an app's page and wait until its example is scored.

    Raises:
        DataError: it was not, for a minute.
    """
    browser.get(url)
    wait_for(browser, _scored, "the example's scores")


# gradio lays a spinner over what an event is about to fill
_SCORED = """
const trackers = [...document.querySelectorAll('[data-testid=status-tracker]')];
const spinner = trackers.some((node) => node.checkVisibility() && node.innerText.trim());
// what is shown anew fades in
for (let node = document.querySelector('#scores :is(li, td)'); node; node = node.parentElement)
  if (getComputedStyle(node).opacity !== '1') return false;
const scores = document.querySelector('#scores')?.innerText ?? '';
return !spinner && /[0-9]/.test(scores);
"""


def _scored(browser: Any) -> bool:
    return bool(browser.execute_script(_SCORED))


_BOX = """
const box = document.querySelector(arguments[0]).getBoundingClientRect();
return [box.x + scrollX, box.y + scrollY, box.width, box.height];
"""


def picture(browser: Any, selector: str = "html", most: float = float("inf")) -> bytes:
    """Return the first element that matches as PNG, of less than 100 kB where few colours allow that.

    Args:
        browser: as of `headless_browser`.
        selector: the element's, in CSS.
        most: the largest height in pixels; what lies below is cut off.
    """
    x, y, width, height = browser.execute_script(_BOX, selector)
    clip = {"x": x, "y": y, "width": width, "height": min(height, most), "scale": 1}
    answer = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return _small(base64.b64decode(answer["data"]))


def take_views(browser: Any, name: str, folder: Path, show: Callable[[], None]) -> list[Path]:
    """Save a page as ``NAME-WIDTH-THEME.png`` in a wide and a narrow window, in a light and a dark theme.

    Args:
        browser: as of `headless_browser`.
        name: of the pictures.
        folder: where they go.
        show: opens the page, and returns when it shows what it should.
    """
    paths = []
    for width, scheme in VIEWS:
        view_as(browser, width, scheme)
        show()
        paths.append(folder / f"{name}-{width}-{scheme}.png")
        paths[-1].write_bytes(picture(browser))
    return paths


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
