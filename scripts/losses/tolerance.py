"""How far from its recorded curve a run may be, for each precision, from what was measured on the recording machine.

Deviation: the largest |log(found / recorded)| of the 20 losses, which for small ones is the relative difference.
Fall: log(first / last recorded loss), so what a program would show that does not learn at all.

Two deviations are measured:
  order: float32 again, in other orders of summation: one thread, oneDNN's kernels for AVX2, nothing fused.
  bf16:  --precision=bf16: activations, weights and products rounded to 8 bits of mantissa, sums in float32.
Rounding seldom acts smoothly: a ReLU or a maximum that lies on the edge falls to the other side and takes a
thousandth of a gradient with it. Whether that happens within 20 steps is luck, hence floors in parts of the fall.

fp32_strict  A GPU sums in yet other orders, and cuDNN may take Winograd's or Fourier's transforms, which round some
             ten times worse than a plain sum: 10 x order; at least 1 % of the fall.
tf32         Operands of convolutions and matrix products have 11 bits instead of bf16's 8, everything else is float32.
             Their error is an eighth of bf16's while it acts smoothly, and as large as bf16's where networks are
             chaotic and each run is another sample: 2 x bf16; at least 2 % of the fall.
fp16         The same 11 bits, for activations too, as bf16 has them: 2 x bf16; at least 2 % of the fall.
bf16         Other places of rounding than the CPU's (fused epilogues, workspaces): 3 x bf16; at least 3 % of the fall.
"""

STRICT = ("fp32_strict",)
ROUNDED = ("tf32", "fp16", "bf16")
OF_FALL = {"fp32_strict": 0.01, "tf32": 0.02, "fp16": 0.02, "bf16": 0.03}


def tolerances(fall: float, measured: dict[str, float]) -> dict[str, float]:
    """For the precisions of which enough was measured: "order" gives fp32_strict, "bf16" the others."""
    wanted = {}
    if "order" in measured:
        wanted["fp32_strict"] = 10 * measured["order"]
    if "bf16" in measured:
        wanted |= {"tf32": 2 * measured["bf16"], "fp16": 2 * measured["bf16"], "bf16": 3 * measured["bf16"]}
    return {kind: float(f"{max(value, OF_FALL[kind] * fall):.2g}") for kind, value in wanted.items()}


def kind_of(device: str, precision: str) -> str:
    """Which tolerance a run has: on a CPU all three kinds of fp32 are plain float32, on a GPU fp32 means TF32."""
    if precision in ("fp32", "tf32", "fp32_strict"):
        return "fp32_strict" if device == "cpu" or precision == "fp32_strict" else "tf32"
    return "bf16" if device == "cpu" else precision  # a CPU computes bf16 where fp16 is asked for
