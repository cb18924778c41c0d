#!/usr/bin/env python3
"""Records 20-step losses of every model on the CPU, with tolerances that this machine's rounding justifies.

Needs an x86 processor with AVX-512 for bf16, or --without_bf16. Writes one or two JSON files for each model (cases.py), with the exact
flags; compare.py reads nothing else. Takes a quarter of an hour; run it again only if a model, an initial value or
this folder's cases change, and look at the difference before it is committed.
"""
import argparse
import json
import os
import pathlib
import sys
from typing import Any, Iterator, Optional

import cases
import curve
import tolerance

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Other orders of summation, as far apart as one machine can have them.
OTHER_ORDER = curve.Setting(threads=1, fusion="none")
OTHER_KERNELS = {"CNN_MAX_CPU_ISA": "avx2"}
TIMEOUT_S = 600


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="a release build with oneDNN")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/losses", help="default: %(default)s")
    parser.add_argument("--models", help="comma list (default: all)")
    parser.add_argument("--without_bf16", action="store_true", help="measure no deviation of bf16 (tolerance.py)")
    options = parser.parse_args()
    known = [case.name for case in cases.all_cases()]
    options.models = options.models.split(",") if options.models else known
    if unknown := [name for name in options.models if name not in known]:
        parser.error(f"--models: {', '.join(unknown)} is not one of {', '.join(known)}")
    return options


def described(case: cases.Case, rate: float) -> dict[str, Any]:
    return {"model": case.model_name, "data_set": case.data_set, "steps": cases.STEPS, "flags": case.flags(rate),
            "images": None if case.scale is None else {"shape": case.shape, "scale": case.scale}}


def short(values: list[float]) -> list[float]:
    return [float(f"{value:.8g}") for value in values]


def measure(program: str, entry: dict[str, Any], losses: curve.Losses, kinds: tuple[str, ...],
            without_bf16: bool) -> dict[str, float]:
    def apart(setting: curve.Setting, environment: Optional[dict[str, str]] = None) -> float:
        return curve.deviation(losses, curve.run(program, entry, setting, TIMEOUT_S, environment)[0]).mean
    measured = {"order": apart(OTHER_ORDER, OTHER_KERNELS)}
    if "bf16" in kinds and not without_bf16:
        measured["bf16"] = apart(curve.Setting(precision="bf16"))
    if "bf16" in measured and "fp32_strict" not in kinds:  # chaotic, so one sample says little
        measured["bf16"] = max(measured["bf16"], apart(curve.Setting(precision="bf16", threads=1)))
    return {name: float(f"{value:.2g}") for name, value in measured.items()}


def record(program: str, case: cases.Case, rate: float, kinds: tuple[str, ...], without_bf16: bool) -> dict[str, Any]:
    entry = described(case, rate)
    losses, report = curve.run(program, entry, curve.Setting(), TIMEOUT_S)
    measured = measure(program, entry, losses, kinds, without_bf16)
    still = curve.Losses([losses.base_loss[0]] * cases.STEPS, losses.weight_loss)  # of a program that does not learn
    fall = curve.deviation(losses, still).mean
    machine = report["machine"]
    return {**entry, "base_loss": short(losses.base_loss), "weight_loss": short(losses.weight_loss),
            "fall": float(f"{fall:.4g}"), "measured": measured,
            "tolerance": {kind: tolerance.tolerance(kind, fall, measured) for kind in kinds},
            "tolerance_reasons": "scripts/losses/tolerance.py",
            "recorded_with": {"version": report["version"], "cpu": machine["cpu"]["name"],
                              "cores": machine["cpu"]["cores_used"], "libraries": machine["libraries"]}}


def curves(program: str, case: cases.Case, without_bf16: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """File name and content: one curve for all precisions, or two."""
    if case.fine_rate is None:
        yield case.name, record(program, case, case.rate, tolerance.STRICT + tolerance.ROUNDED, without_bf16)
        return
    yield case.name + curve.FINE, record(program, case, case.fine_rate, tolerance.STRICT, without_bf16)
    yield case.name, record(program, case, case.rate, tolerance.ROUNDED, without_bf16)


def text_of(entry: dict[str, Any]) -> str:
    """A key on each line: a list of losses over twenty would say no more."""
    return "{" + ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items()) + "}\n"


def line(name: str, entry: dict[str, Any]) -> str:
    measured, allowed = entry["measured"], entry["tolerance"]
    return (f"{name:20} loss {entry['base_loss'][0]:.4g} to {entry['base_loss'][-1]:.4g}, fall {entry['fall']:.3g}; "
            + "apart: " + ", ".join(f"{k} {v:.1e}" for k, v in measured.items())
            + "; tolerances: " + ", ".join(f"{k} {v:.1e}" for k, v in allowed.items())
            + ("" if 1.5 * max(allowed.values()) < entry["fall"] else "; TOO WIDE: choose another rate"))


def main() -> None:
    options = arguments()
    os.nice(10)
    options.out.mkdir(parents=True, exist_ok=True)
    for case in cases.all_cases():
        if case.name not in options.models:
            continue
        try:
            for name, entry in curves(options.program, case, options.without_bf16):
                (options.out / f"{name}.json").write_text(text_of(entry))
                print(line(name, entry), flush=True)
        except curve.RunFailed as failure:
            sys.exit(f"{case.name}: {failure}")


if __name__ == "__main__":
    main()
