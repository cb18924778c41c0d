#pragma once

#include <optional>

#include "layers/cpu/isa.h"
#include "layers/cpu/simd/loops.h"
#include "runtime/kernel.h"

// One function per file of this folder, each adding the rows of that file. kernels.cpp lists them.
// isa: the instruction sets that choose whether a row serves, and in which type and layout. A table
// for sets that the process lacks can describe, but not make, what needs them.
namespace cnn::layers::cpu {

// All of the following, or what stands in for them in a build without oneDNN.
void add_library_rows(KernelTable& table, const Isa& isa);

// Rows of oneDNN: Conv2d and Dense with their two gradients, AveragePool with its own and
// that of MaxPool, Convert.
void add_conv_rows(KernelTable& table, const Isa& isa = effective_isa());
void add_dense_rows(KernelTable& table, const Isa& isa = effective_isa());
void add_pool_rows(KernelTable& table, const Isa& isa = effective_isa());
void add_convert_rows(KernelTable& table);

// Our own loops in the best of these instruction sets, AVX2 at least.
const Loops& loops_for(const Isa& isa);

// The rows with own loops, see below.
void add_own_kernels(KernelTable& table, const Loops& loops);

void add_lrn_rows(KernelTable& table);         // Lrn and its gradient
void add_lrn_within_rows(KernelTable& table);  // WithinLrn and its gradient
void add_stale_gradient_rows(KernelTable& table);

// Convolutions by Winograd's algorithm where it pays; before oneDNN's rows of the same ops. only:
// in no other form; without it in whichever form needs the fewest operations.
void add_winograd_rows(KernelTable& table, const Isa& isa,
                       const std::optional<WinogradForm>& only = {});

// Dense layers of a few outputs, summed in double; before oneDNN's row of the same op.
void add_narrow_dense_rows(KernelTable& table);

// Convert from and to f16; before oneDNN's row.
void add_half_convert_rows(KernelTable& table);

// Own loops, in the instruction set of `loops`, which must outlive the table.
void add_batch_norm_rows(KernelTable& table, const Loops& loops);
void add_batch_norm_backward_rows(KernelTable& table, const Loops& loops);
void add_batch_norm_inference_rows(KernelTable& table, const Loops& loops);
void add_activation_rows(KernelTable& table, const Loops& loops);
void add_elementwise_rows(KernelTable& table, const Loops& loops);  // Add, Scale, Fill, Normalise
void add_concat_rows(KernelTable& table, const Loops& loops);  // Concat, Split, Pad-, SliceChannels
void add_dropout_rows(KernelTable& table, const Loops& loops);
void add_drop_path_rows(KernelTable& table, const Loops& loops);
void add_loss_rows(KernelTable& table, const Loops& loops);
void add_optimizer_rows(KernelTable& table, const Loops& loops);
void add_spatial_mean_rows(KernelTable& table, const Loops& loops);
void add_flatten_rows(KernelTable& table, const Loops& loops);
void add_subsample_rows(KernelTable& table, const Loops& loops);  // Subsample and its gradient

}  // namespace cnn::layers::cpu
