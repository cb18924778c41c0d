#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/kernels.h"
#include "layers/cpu/simd/loops.h"
#include "runtime/kernel.h"

// One function per file of this folder; each adds the rows of its file, and kernels.cpp lists them.
// isa: the instruction sets that decide whether a row serves, and in which type and layout. A table
// for sets that the process lacks can describe, but not make, kernels that need them.
namespace cnn::layers::cpu {

// Adds all of oneDNN's rows, or their substitutes in a build without oneDNN.
void add_library_rows(KernelTable& table, const KernelChoice& choice);

// Rows of oneDNN: Conv2d and Dense with their two gradients, AveragePool with its gradient and that
// of MaxPool, Convert.
void add_conv_rows(KernelTable& table, const Isa& isa = effective_isa());
void add_dense_rows(KernelTable& table, const KernelChoice& choice = {});
void add_pool_rows(KernelTable& table, const Isa& isa = effective_isa());
void add_convert_rows(KernelTable& table);

// Returns our loops in the best of these instruction sets, AVX2 at least.
const Loops& loops_for(const Isa& isa);

// Adds all rows that use our own loops, listed below.
void add_own_kernels(KernelTable& table, const Loops& loops);

void add_lrn_rows(KernelTable& table);         // Lrn and its gradient
void add_lrn_within_rows(KernelTable& table);  // WithinLrn and its gradient
void add_stale_gradient_rows(KernelTable& table);

// Adds convolutions by Winograd's algorithm where it is faster; before oneDNN's rows of the same
// ops. only: restricts them to one form, which serves whatever its rounding errors are; without it
// each uses the form with the fewest operations among those that are accurate enough for it.
void add_winograd_rows(KernelTable& table, const Isa& isa,
                       const std::optional<WinogradForm>& only = {});

// Adds convolutions in one form of Winograd's algorithm wherever it can run, faster or not: a
// candidate of tuning.
void add_winograd_candidate(KernelTable& table, const Isa& isa, const WinogradForm& form);

// Kernels of one kind for convolutions, wherever they can run.
struct ConvCandidateRows {
  std::string name;  // "onednn"
  KernelTable table;
  bool has_layouts = false;  // it runs in the layouts of images that it is asked for
};
// Returns the kinds that need oneDNN: its own convolutions, and our gradients in its memory order.
// Empty in a build without it.
std::vector<ConvCandidateRows> library_conv_candidates(const Isa& isa);

// Adds dense layers with few outputs, summed in double; before oneDNN's row of the same op.
void add_narrow_dense_rows(KernelTable& table);

// Adds Convert from and to f16; before oneDNN's row.
void add_half_convert_rows(KernelTable& table);

// Rows with our own loops, in the instruction set of `loops`, which must outlive the table.
void add_batch_norm_rows(KernelTable& table, const Loops& loops);
void add_batch_norm_backward_rows(KernelTable& table, const Loops& loops);
void add_batch_norm_inference_rows(KernelTable& table, const Loops& loops);
void add_sliced_norm_rows(KernelTable& table, const Loops& loops);  // all of layers/sliced_norm.h
void add_activation_rows(KernelTable& table, const Loops& loops);
void add_elementwise_rows(KernelTable& table, const Loops& loops);  // Add, Scale, Fill, Normalise
void add_concat_rows(KernelTable& table, const Loops& loops);  // Concat, Split, Pad-, SliceChannels
void add_batch_slice_rows(KernelTable& table, const Loops& loops);   // SliceBatch, ConcatBatch
void add_column_slice_rows(KernelTable& table, const Loops& loops);  // SliceColumns, ConcatColumns
void add_row_slice_rows(KernelTable& table, const Loops& loops);     // all of layers/row_slice.h
void add_dropout_rows(KernelTable& table, const Loops& loops);
void add_drop_path_rows(KernelTable& table, const Loops& loops);
void add_loss_rows(KernelTable& table, const Loops& loops);
void add_optimizer_rows(KernelTable& table, const Loops& loops);
void add_spatial_mean_rows(KernelTable& table, const Loops& loops);
void add_flatten_rows(KernelTable& table, const Loops& loops);
void add_subsample_rows(KernelTable& table, const Loops& loops);  // Subsample and its gradient

}  // namespace cnn::layers::cpu
