#pragma once

#include <cstddef>
#include <cstdint>

#include "allreduce/simd/table.h"

// The loops of the table, as templates of the vector type V.
namespace cnn::allreduce::simd {

template <class V>
struct SumLoops {
  using Float = typename V::Float;
  // Pairwise sums of many operands process pieces that stay in the first-level cache.
  static constexpr std::size_t piece = 512;
  static constexpr std::size_t max_depth = 24;  // levels of the pairwise tree

  static Float load(const Operand& operand, std::size_t i) {
    if (operand.type == Type::f32) {
      return V::load(static_cast<const float*>(operand.data) + i);
    }
    const std::uint16_t* const words = static_cast<const std::uint16_t*>(operand.data) + i;
    return operand.type == Type::bf16 ? V::from_bf16(words) : V::from_f16(words);
  }

  // The last operations of a sum. A local copy: the compiler must assume that vector stores alias
  // memory.
  struct Finish {
    float factor;
    Type round_to;

    Float operator()(Float sum) const {
      // A factor of one changes nothing, not even a NaN's bits.
      const Float scaled = factor == 1 ? sum : V::set(factor) * sum;
      return round_to == Type::f32    ? scaled
             : round_to == Type::bf16 ? V::rounded_to_bf16(scaled)
                                      : V::rounded_to_f16(scaled);
    }
  };

  // Stores the finished sum at(i) of each element i. Most sums have one or two outputs.
  template <class At>
  static void each(const Sum& request, const At& at) {
    const Finish finish{request.factor, request.round_to};
    const std::size_t n = request.n, outputs = request.outputs;
    float* const first = request.to[0];
    float* const second = request.to[outputs - 1];
    if (outputs <= 2) {
      for (std::size_t i = 0; i + V::width <= n; i += V::width) {
        const Float result = finish(at(i));
        V::store(first + i, result);
        V::store(second + i, result);
      }
      return;
    }
    float* const* const to = request.to;
    for (std::size_t i = 0; i + V::width <= n; i += V::width) {
      const Float result = finish(at(i));
      for (std::size_t k = 0; k < outputs; ++k) {
        V::store(to[k] + i, result);
      }
    }
  }

  // Sums a known number of f32 operands: the case that must reach memory bandwidth.
  template <std::size_t count>
  static void few(const Sum& request) {
    const float* x[count];
    for (std::size_t k = 0; k < count; ++k) {
      x[k] = static_cast<const float*>(request.operands[k].data);
    }
    const bool pairwise = request.pairwise;
    each(request, [x, pairwise](std::size_t i) {
      if constexpr (count == 4) {
        if (pairwise) {
          return (V::load(x[0] + i) + V::load(x[1] + i)) + (V::load(x[2] + i) + V::load(x[3] + i));
        }
      }
      Float sum = V::load(x[0] + i);
      for (std::size_t k = 1; k < count; ++k) {
        sum = sum + V::load(x[k] + i);
      }
      return sum;
    });
  }

  static void sum_sequentially(const Sum& request) {
    each(request, [&](std::size_t i) {
      Float sum = load(request.operands[0], i);
      for (std::size_t k = 1; k < request.count; ++k) {
        sum = sum + load(request.operands[k], i);
      }
      return sum;
    });
  }

  struct Tree {
    const Sum& request;
    std::size_t first, n;          // elements
    float (*partial_sums)[piece];  // by depth
  };
  // Writes the pairwise sum of `count` operands to the buffer of this depth.
  static void branch(const Tree& tree, std::size_t operand, std::size_t count, std::size_t depth) {
    float* const to = tree.partial_sums[depth];
    const std::size_t left = count / 2;
    if (count == 1) {
      for (std::size_t i = 0; i < tree.n; i += V::width) {
        V::store(to + i, load(tree.request.operands[operand], tree.first + i));
      }
      return;
    }
    branch(tree, operand, left, depth);
    branch(tree, operand + left, count - left, depth + 1);
    for (std::size_t i = 0; i < tree.n; i += V::width) {
      V::store(to + i, V::load(to + i) + V::load(tree.partial_sums[depth + 1] + i));
    }
  }

  static void sum_pairwise(const Sum& request) {
    alignas(64) float partial_sums[max_depth][piece];
    float* to[1];
    for (std::size_t first = 0; first < request.n; first += piece) {
      const std::size_t n = request.n - first < piece ? request.n - first : piece;
      branch({request, first, n, partial_sums}, 0, request.count, 0);
      for (std::size_t k = 0; k < request.outputs; ++k) {
        to[0] = request.to[k] + first;
        Sum last = request;
        last.to = to;
        last.outputs = 1;
        last.n = n;
        each(last, [&](std::size_t i) { return V::load(partial_sums[0] + i); });
      }
    }
  }

  // Requires that n is a multiple of the width.
  static void whole_vectors(const Sum& request) {
    bool wide = true;
    for (std::size_t k = 0; k < request.count; ++k) {
      wide = wide && request.operands[k].type == Type::f32;
    }
    const bool row = !request.pairwise || request.count == 2;
    if (wide && request.count == 2) {
      few<2>(request);
    } else if (wide && request.count == 3 && row) {
      few<3>(request);
    } else if (wide && request.count == 4) {
      few<4>(request);
    } else if (row) {
      sum_sequentially(request);
    } else {
      sum_pairwise(request);
    }
  }
};

// Complete loops: whole vectors by V, the remaining elements by S, whose vectors have one element.
template <class V, class S>
struct AllLoops {
  static void sum(const Sum& request) {
    const std::size_t whole = request.n / V::width * V::width;
    Sum vectors = request;
    vectors.n = whole;
    SumLoops<V>::whole_vectors(vectors);
    if (whole < request.n) {
      rest(request, whole);
    }
  }

  static void rest(const Sum& request, std::size_t first) {
    for (std::size_t i = first; i < request.n; ++i) {
      const float result = typename SumLoops<S>::Finish{
          request.factor, request.round_to}(one(request, i, 0, request.count));
      for (std::size_t k = 0; k < request.outputs; ++k) {
        request.to[k][i] = result;
      }
    }
  }
  // Returns the sum of `count` operands from `operand` on.
  static float one(const Sum& request, std::size_t i, std::size_t operand, std::size_t count) {
    if (count == 1) {
      return SumLoops<S>::load(request.operands[operand], i);
    }
    if (request.pairwise) {
      const std::size_t left = count / 2;
      const float low = one(request, i, operand, left);
      return low + one(request, i, operand + left, count - left);
    }
    float sum = SumLoops<S>::load(request.operands[operand], i);
    for (std::size_t k = 1; k < count; ++k) {
      sum = sum + SumLoops<S>::load(request.operands[operand + k], i);
    }
    return sum;
  }

  static void narrow(const float* from, std::uint16_t* to, std::size_t n, Type type) {
    std::size_t i = 0;
    for (; i + V::width <= n; i += V::width) {
      narrow_at<V>(from + i, to + i, type);
    }
    for (; i < n; ++i) {
      narrow_at<S>(from + i, to + i, type);
    }
  }
  template <class W>
  static void narrow_at(const float* from, std::uint16_t* to, Type type) {
    if (type == Type::bf16) {
      W::to_bf16(W::load(from), to);
    } else {
      W::to_f16(W::load(from), to);
    }
  }

  static void widen(const std::uint16_t* from, float* to, std::size_t n, Type type) {
    const Operand operand{from, type};
    std::size_t i = 0;
    for (; i + V::width <= n; i += V::width) {
      V::store(to + i, SumLoops<V>::load(operand, i));
    }
    for (; i < n; ++i) {
      to[i] = SumLoops<S>::load(operand, i);
    }
  }

  static constexpr Loops table(const char* name) { return {name, &sum, &narrow, &widen}; }
};

}  // namespace cnn::allreduce::simd
