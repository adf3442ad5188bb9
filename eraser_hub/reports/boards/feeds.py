"""Feeds of a board's lines, so that a reader's program tells of a new or a changed one: RSS 2.0 and JSON Feed 1.1.

A feed has the verified and the self-reported lines, in the order of the board. Lines of a repository on the Hub have
the date of their predictions there, others have none: equal lines give equal bytes. An item's identity is made of what
was scored and of its scores, so a changed line is a new item.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import Any

from eraser_hub.records.errors import show_controls
from eraser_hub.records.outputs import GENERATOR

from ..board_lines import BoardLine
from ..catalogue import format_number, metric
from ..markup import fill_template
from ..report_tables import get_sort_key

PAGE = "index.html"
DESCRIPTION = "Lines of the board that were scored by this project: verified, or as a score file reports them."
# what XML 1.0 has no sign for, when control characters are shown
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def make_json_feed(lines: Sequence[BoardLine], title: str) -> dict[str, Any]:
    """Return the feed as JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/).

    Args:
        lines: as `board.collect_board_lines` gives them.
        title: the board's title.
    """
    items = [
        {
            "id": _identify(line),
            "title": _clean(f"{line.system}: {', '.join(filter(None, [line.dataset, line.split]))} ({line.status})"),
            "content_text": _describe(line),
            "tags": [line.status],
            **({"date_published": line.date} if line.date else {}),
        }
        for line in lines
        if line.kind == "scored"
    ]
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "_eraser_hub": {"generator": GENERATOR},  # the format's own keys have no place for it
        "title": _clean(title),
        "description": DESCRIPTION,
        "items": items,
    }


def make_rss_feed(lines: Sequence[BoardLine], title: str) -> str:
    """Return the same feed as RSS 2.0; its link is relative, as a page knows no address of its own.

    Args:
        lines: as `board.collect_board_lines` gives them.
        title: the board's title.
    """

    def format_date(text: str) -> str:
        return format_datetime(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc))

    feed = make_json_feed(lines, title)
    return fill_template("feed.xml", feed=feed, page=PAGE, generator=GENERATOR, date=format_date) + "\n"


def _clean(text: str) -> str:
    """Return text that XML and a terminal can show."""
    return _NOT_XML.sub("\ufffd", show_controls(text))


def _list_scores(line: BoardLine) -> list[str]:
    keys = sorted((key for key, value in line.scores.items() if value is not None), key=get_sort_key)
    return [f"{metric(key).label} {format_number(line.scores[key])}" for key in keys if metric(key).family != "other"]


def _describe(line: BoardLine) -> str:
    counted = [f"n {line.instances}"] if line.instances is not None else []
    return _clean("; ".join([*filter(None, [line.source, *counted, line.sample]), *_list_scores(line), line.detail]))


def _identify(line: BoardLine) -> str:
    """Return the identity of a line: a digest of what was scored, of its scores as shown and of its status."""
    own = [line.system, line.dataset, line.split, line.status, line.data, list(line.predictions), _list_scores(line)]
    digest = hashlib.sha256(json.dumps(own).encode()).hexdigest()
    return f"urn:sha256:{digest}"
