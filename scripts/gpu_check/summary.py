"""What all rows say together: one line for each network and precision, and the ratios to PyTorch."""
from __future__ import annotations

from typing import Any

import losses
import peers
import sanitizer
import speed
import suites
from rows import BAD, DOES_NOT_FIT, OK

TEXTS = {"tests": suites.text, "losses": losses.text, "sanitizer": sanitizer.text, "table": speed.text,
         "peers": peers.text}
GIB = 2 ** 30


def line_of(row: dict[str, Any]) -> str:
    return f"{row['status']}: {TEXTS[row['slice']](row) if row['result'] else row['error']}"


def warm_start(rows: list[dict]) -> float | None:
    """Seconds from the process to its first step, where the plan cache had all."""
    starts = [row["result"]["start"]["process_to_first_step"] for row in rows
              if not row["result"]["graph"] and not row["result"]["variant"]]
    return min(starts, default=None)


def torch_speeds(rows: dict[str, dict], model: str, precision: str, batch: int) -> dict[str, float]:
    found = [row["result"] for row in rows.values() if row["slice"] == "peers" and row["status"] == OK]
    return {one["variant"]: one["images_per_sec"] for one in found
            if (one["model"], one["precision"], one["batch"]) == (model, precision, batch)}


def entry(rows: dict[str, dict], model: str, precision: str) -> dict[str, Any]:
    """The fastest of our rows, and PyTorch at its batch."""
    ours = speed.measured(rows, model, precision)
    best = max((row for row in ours if row["result"]["variant"] != "nondeterministic"), key=speed.speed_of,
               default=ours[0])["result"]
    speed_here = best["batch"] / best["median_step_seconds"]
    torch = torch_speeds(rows, model, precision, best["batch"])
    return {"model": model, "precision": precision, "batch": best["batch"], "level": best["level"],
            "graph": best["graph"], "images_per_sec": best["images_per_sec"], "uncertainty": best["uncertainty"],
            "jitter": best["jitter"], "median_images_per_sec": speed_here,
            "percent_of_roofline": best["percent_of_roofline"], "predicted_peak_bytes": best["predicted_peak_bytes"],
            "measured_peak_bytes": best["measured_peak_bytes"], "warm_start_seconds": warm_start(ours), "torch": torch,
            "ratio_to_eager": speed_here / torch["eager"] if "eager" in torch else None,
            "ratio_to_best": speed_here / max(torch.values()) if torch else None}


def entries(rows: dict[str, dict]) -> list[dict[str, Any]]:
    pairs = dict.fromkeys((row["result"]["model"], row["result"]["precision"]) for row in rows.values()
                          if row["slice"] == "table" and row["status"] == OK)
    return [entry(rows, model, precision) for model, precision in pairs]


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def columns(one: dict[str, Any]) -> list[str]:
    measured = one["measured_peak_bytes"]
    peak = f"{one['predicted_peak_bytes'] / GIB:.2f}"
    if measured != one["predicted_peak_bytes"]:
        peak += f" ({number(measured and measured / GIB, '.2f')})"
    torch = one["torch"]
    return [one["model"], one["precision"], str(one["batch"]), one["level"] + ("" if one["graph"] else ", launches"),
            f"{one['images_per_sec']:.1f} +- {one['uncertainty']:.1f}", number(one["percent_of_roofline"], ".0f"), peak,
            number(one["warm_start_seconds"], ".1f"), *(number(torch.get(name), ".1f") for name in
                                                        ("eager", "graph", "compile")),
            number(one["ratio_to_eager"], ".2f"), number(one["ratio_to_best"], ".2f")]


HEADER = ["model", "type", "batch", "level", "img/s", "% limit", "peak GiB", "start s", "torch eager", "graph",
          "compile", "x eager", "x best"]


def table(found: list[dict[str, Any]]) -> list[str]:
    lines = [HEADER, *(columns(one) for one in found)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(HEADER))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]


def text(rows: dict[str, dict], left: list[str]) -> str:
    lines = []
    for name, row in rows.items():
        if row["slice"] not in ("table", "peers") or row["status"] in (*BAD, DOES_NOT_FIT):
            lines.append(f"{name}: {line_of(row)}")
    if found := entries(rows):
        lines += ["", *table(found)]
    bad = [name for name, row in rows.items() if row["status"] in BAD]
    lines.append(f"{len(rows)} rows: {len(bad)} bad, {len(left)} left for another run")
    return "\n".join(lines)
