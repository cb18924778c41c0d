#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "runtime/error.h"

// Functions that depend on oneDNN; builds without it use alternatives/without_onednn.cpp instead.
namespace cnn::layers::cpu {
namespace {

// Returns the instruction sets within a oneDNN limit; its enumerators are growing bit sets.
Isa allowed_by(dnnl::cpu_isa limit) {
  const auto includes = [limit](dnnl::cpu_isa isa) {
    return (static_cast<unsigned>(limit) & static_cast<unsigned>(isa)) ==
           static_cast<unsigned>(isa);
  };
  return {.avx2 = includes(dnnl::cpu_isa::avx2),
          .avx512 = includes(dnnl::cpu_isa::avx512_core),
          .avx512_bf16 = includes(dnnl::cpu_isa::avx512_core_bf16),
          .avx512_fp16 = includes(dnnl::cpu_isa::avx512_core_fp16),
          .amx_bf16 = includes(dnnl::cpu_isa::avx512_core_amx)};
}

// Returns the oneDNN limit that permits at most these sets.
dnnl::cpu_isa limit_to(const Isa& isa) {
  return isa.amx_bf16      ? dnnl::cpu_isa::isa_default
         : isa.avx512_fp16 ? dnnl::cpu_isa::avx512_core_fp16
         : isa.avx512_bf16 ? dnnl::cpu_isa::avx512_core_bf16
         : isa.avx512      ? dnnl::cpu_isa::avx512_core
                           : dnnl::cpu_isa::avx2;
}

Isa settled_isa() {
  if (const std::optional<Isa> limit = asked_limit()) {
    check(dnnl::set_max_cpu_isa(limit_to(*limit)) == dnnl::status::success,
          "CNN_MAX_CPU_ISA: this oneDNN cannot be limited, or was used before it was");
  }
  // oneDNN queries the hardware first; unlike cpuid, which a hypervisor traps, this query is cheap.
  return allowed_by(dnnl::get_effective_cpu_isa());
}

std::string_view name_of(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx2_vnni_2:
      return "avx2_vnni_2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "avx512_core_fp16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    case dnnl::cpu_isa::avx512_core_amx_fp16:
      return "avx512_core_amx_fp16";
    default:
      return "default";
  }
}

}  // namespace

Isa effective_isa() {
  static const Isa isa = settled_isa();
  return isa;
}

bool multiplies_bf16_fast(const Isa& isa) {
  // Processors with AVX512_FP16 (Sapphire Rapids and later) compute bf16 in tiles; their bf16
  // vector instruction has half the rate of f32: 175 against 350 GFLOP/s in convolutions on two
  // cores of such a processor whose hypervisor hides the tiles. Processors without AVX512_FP16 have
  // a fast one.
  return isa.amx_bf16 || (isa.avx512_bf16 && !isa.avx512_fp16);
}

bool computes_bf16(const Isa& isa) { return isa.avx512; }

Layout preferred_layout(DataType type, const Isa& isa) {
  // Tiles read channels innermost: blocked bf16 convolutions do not use tiles and take four times
  // as long. Without AVX-512 oneDNN blocks by 8, which is none of our layouts.
  if (!isa.avx512 || (type == DataType::bf16 && isa.amx_bf16)) {
    return Layout::nhwc;
  }
  return Layout::nchw16c;
}

std::vector<LibraryVersion> library_versions() {
  effective_isa();  // before the first query of oneDNN
  const dnnl::version_t* v = dnnl::version();
  std::string version = std::to_string(v->major);
  version += "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  version += " (" + std::string(name_of(dnnl::get_effective_cpu_isa())) + ")";
  return {{"oneDNN", std::move(version)}};
}

void add_library_rows(KernelTable& table, const KernelChoice& choice) {
  add_conv_rows(table, choice.isa);
  add_dense_rows(table, choice);
  add_pool_rows(table, choice.isa);
  add_convert_rows(table);
}

}  // namespace cnn::layers::cpu
