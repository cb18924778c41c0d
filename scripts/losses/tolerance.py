"""How far from its recorded curve a run may be, for each precision, from what was measured on the recording machine.

Deviation: the mean of |log(found / recorded)| over the 20 losses; for small ones that is the relative difference. Not
the largest one: where a network is chaotic, a single step may be far off in any precision.
Fall: the deviation of a program that does not learn, whose loss stays what it was at first.

Two deviations are measured:
  order: float32 again, in other orders of summation: one thread, oneDNN's kernels for AVX2, nothing fused.
  bf16:  --precision=bf16: activations, weights and products rounded to 8 bits of mantissa, sums in float32. (Of two
         orders of summation, the worse, where there is a fine curve as well, so where this one may be chaotic.)
Rounding seldom acts smoothly: a ReLU or a maximum that lies on the edge falls to the other side and takes a
thousandth of a gradient with it. Whether that happens within 20 steps is luck, hence floors in parts of the fall.

fp32_strict  A GPU sums in yet other orders, and cuDNN may take Winograd's or Fourier's transforms, which round some
             ten times worse than a plain sum: 10 x order; at least 1 % of the fall.
tf32         Operands of convolutions and matrix products have 11 bits instead of bf16's 8, everything else is float32.
             Their error is an eighth of bf16's while it acts smoothly, and as large as bf16's where networks are
             chaotic and each run is another sample: 2 x the worse of bf16 and order; at least 2 % of the fall.
fp16         The same 11 bits, for activations too, as bf16 has them: 2 x, as for tf32; at least 2 % of the fall.
bf16         Other places of rounding than the CPU's (fused epilogues, workspaces): 3 x; at least 3 % of the fall.

Where bf16 was not measured, order and the floors stand alone. Only for networks without batch normalisation, whose bf16
stays far below its floor.
"""

STRICT = ("fp32_strict",)
ROUNDED = ("tf32", "fp16", "bf16")
OF_FALL = {"fp32_strict": 0.01, "tf32": 0.02, "fp16": 0.02, "bf16": 0.03}


def tolerance(kind: str, fall: float, measured: dict[str, float]) -> float:
    worst = max(measured.values())
    if kind == "fp32_strict":
        wanted = 10 * measured["order"]
    elif kind == "bf16":
        wanted = 3 * worst
    else:
        wanted = 2 * worst
    return float(f"{max(wanted, OF_FALL[kind] * fall):.2g}")


def kind_of(device: str, precision: str) -> str:
    """Which tolerance a run has: on a CPU all three kinds of fp32 are plain float32, on a GPU fp32 means TF32."""
    if precision in ("fp32", "tf32", "fp32_strict"):
        return "fp32_strict" if device == "cpu" or precision == "fp32_strict" else "tf32"
    return "bf16" if device == "cpu" else precision
