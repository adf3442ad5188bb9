"""``eraser-hub methods``: the parts that there are, of the package and of installed plug-ins."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eraser_hub.records.options import Options
from eraser_hub.records.tables import Cell, Table, Tables

from .usage import TableFormat, print_tables, with_options

if TYPE_CHECKING:
    from eraser_hub.records.registry import Registry

# sort of parts -> where its registry stands, `module:NAME`
REGISTRIES = {
    "methods": "eraser_hub.attribution.method:METHODS",
    "measures": "eraser_hub.attribution.measure:MEASURES",
    "adapters": "eraser_hub.attribution.open:ADAPTERS",
    "systems": "eraser_hub.systems.system:SYSTEMS",
    "readers": "eraser_hub.conversion.importing.sources:READERS",
}
COLUMNS = ("origin", "needs", "settings", "cost", "source", "about")


@dataclass(frozen=True)
class MethodsOptions(Options):
    """The options of ``eraser-hub methods``."""

    format: TableFormat = "text"


@with_options(MethodsOptions)
def methods(options: MethodsOptions) -> None:
    """List methods, measures, systems, readers, adapters, metrics and datasets.

    Installed plug-ins are listed with the distribution that they come from.

    **Examples**

        eraser-hub methods

        eraser-hub methods --format json
    """
    rows = list(_parts())
    table = Table("methods", "parts", ("sort", "name"), COLUMNS)
    for row in rows:
        table.add(row["sort"], row["name"], **{column: Cell(row[column] or None) for column in COLUMNS})
    print_tables(Tables("methods", [table]), options.format, {"parts": rows}, [])


def _parts() -> Iterator[dict[str, str]]:
    from eraser_hub.conversion import HUB_DATASETS
    from eraser_hub.publishing.spaces import get_metrics_folder, list_metric_names, read_space_card

    for sort, place in REGISTRIES.items():
        module, _, attribute = place.partition(":")
        registry = getattr(importlib.import_module(module), attribute)
        for name in registry:
            yield _row(sort, name, registry.origin(name), _facts(registry, name))
    for name in list_metric_names():
        card, _ = read_space_card(get_metrics_folder() / "cards" / f"{name}.md")
        yield _row("metrics", name, "eraser-hub", {"about": str(card.get("short_description", ""))})
    for name, dataset in HUB_DATASETS.items():
        yield _row("datasets", name, "eraser-hub", {"about": f"configs: {', '.join(dataset.configs)}"})


def _row(sort: str, name: str, origin: str, facts: Mapping[str, str]) -> dict[str, str]:
    return {"sort": sort, "name": name, "origin": origin, **{key: facts.get(key, "") for key in COLUMNS[1:]}}


def _facts(registry: Registry[object], name: str) -> dict[str, str]:
    """Return what a part declares about itself, or what it needs if it cannot be imported."""
    try:
        part = registry[name]
    except ModuleNotFoundError as error:
        return {"needs": f"{error.name}, which is not installed"}
    needs = getattr(part, "needs", ())
    # the most inputs that a part takes stand in words where it counts them
    cost = (inspect.getdoc(getattr(part, "most_inputs", None)) or "").partition("\n")[0]
    source = getattr(part, "source", "") or getattr(part, "paper", "")
    facts = {"cost": cost.removeprefix("Return ").rstrip("."), "source": source}
    about = (inspect.getdoc(part) or "").partition("\n")[0]
    facts["needs"] = needs if isinstance(needs, str) else ", ".join(map(str, needs))
    return {"settings": ", ".join(_settings(part)), "about": about, **facts}


def _settings(part: Any) -> Iterator[str]:
    """Yield the settings of a method or a measure that `explain --set` takes, with their defaults."""
    if not hasattr(part, "reads"):
        return
    from eraser_hub.attribution.settings import ExplainSettings
    from eraser_hub.records.options import read_options

    declared = read_options(ExplainSettings)
    asked = getattr(part, "enabled_by", "")
    names: list[str] = [*([asked] if asked in declared else []), *part.reads]
    for name in dict.fromkeys(names):
        if declared[name].settable and declared[name].kind is not bool:
            yield f"{name}={part.default if name == asked else declared[name].default}"
    yield from (f"{name}={setting.default}" for name, setting in part.settings.items())
