"""The faults that run.py plants in the CUDA backend: each row has a fault, its place and the tests that must find it.

To add a fault, add a row. `find` is a text that occurs once in the file; `put` replaces it and must compile without a
warning. The tests run in their order, the fastest first, until one fails.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Tests:
    target: str
    filter: str  # in the syntax of --gtest_filter


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    file: str
    find: str
    put: str
    tests: tuple


def runtime(names="*"):
    """Tests of the CUDA runtime layer on the emulated GPU."""
    return Tests("cnn_emulated_runtime_tests", names)


def kernels(cases):
    """Tests of the backend's kernels against the reference loops of their ops, on the emulated GPU."""
    return Tests("cnn_emulated_layers_tests", ":".join(f"Cuda/OnDevice.*/{case}" for case in cases.split(":")))


def training(names):
    """Tests of the whole program on the emulated GPU."""
    return Tests("cnn_emulated_program_tests", f"EmulatedGpuTraining.{names}")


def executor(names):
    return Tests("cnn_runtime_tests", names)


def grid(names):
    return Tests("cnn_layers_cuda_grid_tests", names)


def exchange(names):
    """Tests of the exchange through the host and by NCCL, on the emulated GPU."""
    return Tests("cnn_emulated_allreduce_tests", names)


STAGED = Tests("cnn_allreduce_tests", "Staged.*")
STREAM_EXCHANGE = Tests("cnn_layers_tests", "StreamExchange*")
NCCL = Tests("cnn_allreduce_tests", "Nccl.*")

STREAM = "runtime/cuda/stream.cpp"
DEVICE = "runtime/cuda/device.cpp"
RECORDING = "runtime/cuda/recording.cpp"
EXECUTOR = "runtime/executor.cpp"
GRAPH = "layers/cuda/cudnn/native_graph.cpp"
PLAN = "layers/cuda/cudnn/plan.cpp"
PRODUCT = "layers/cuda/cudnn/cublas.cpp"
DENSE = "layers/cuda/cudnn/dense.cpp"
LIBRARIES = "layers/cuda/cudnn/libraries.cpp"
EXCHANGE = "allreduce/staged.cpp"
COMMUNICATOR = "allreduce/nccl/communicator.cpp"
OPTIMIZER = "layers/cuda/optimizer.cu"

FAULTS = (
    # Faults in streams, events and recordings.
    Fault("wait for an event dropped", STREAM,
          "check(cudaStreamWaitEvent(stream_.get(), as_cuda<CudaEvent>(event).native(), 0));",
          "static_cast<void>(as_cuda<CudaEvent>(event));",
          (runtime(),)),
    Fault("error code of a call ignored", "runtime/cuda/error.cpp",
          "if (status != cudaSuccess) [[unlikely]] {",
          "if (status != cudaSuccess && status != cudaErrorLaunchFailure) [[unlikely]] {",
          (runtime(),)),
    Fault("device not selected before a stream is made", DEVICE,
          "std::unique_ptr<Stream> CudaDevice::make_stream(Lane lane) {\n  select();",
          "std::unique_ptr<Stream> CudaDevice::make_stream(Lane lane) {",
          (runtime(),)),
    Fault("device not selected before memory is taken", DEVICE,
          "Buffer CudaDevice::allocate(std::size_t bytes) {\n  select();",
          "Buffer CudaDevice::allocate(std::size_t bytes) {",
          (runtime(),)),
    Fault("device not selected before an event is made", DEVICE,
          "std::unique_ptr<Event> CudaDevice::make_event() {\n  select();",
          "std::unique_ptr<Event> CudaDevice::make_event() {",
          (runtime(),)),
    Fault("device not selected before its memory is counted", DEVICE,
          "std::size_t CudaDevice::memory_bytes() const {\n  select();",
          "std::size_t CudaDevice::memory_bytes() const {",
          (runtime(),)),
    Fault("device not selected before a step is recorded", DEVICE,
          "  select();\n  return capture(streams, enqueue);",
          "  return capture(streams, enqueue);",
          (runtime(),)),
    Fault("all memory taken for free memory", DEVICE, "return available;", "return total;", (runtime(),)),
    Fault("priority of copies is the lowest", DEVICE,
          "    case Lane::communicate:\n      return first;",
          "    case Lane::communicate:\n      return last;",
          (runtime(),)),
    Fault("error of host work forgotten", STREAM,
          "  check(status);\n  failure_.rethrow();",
          "  check(status);",
          (runtime(),)),
    Fault("host work goes on after a failure", STREAM,
          "  if (task.failure->any()) {\n    return;\n  }\n", "",
          (runtime(),)),
    Fault("slot of host work reused while it is queued", STREAM,
          "  if (!is_free()) {\n", "  if (false) {\n",
          (runtime(),)),
    Fault("stream destroyed before its work has ended", STREAM,
          "  static_cast<void>(cudaStreamSynchronize(stream_.get()));\n  clock_->release(stamped_);",
          "  clock_->release(stamped_);",
          (runtime(),)),
    Fault("stamps settled before they are reached", STREAM,
          "  cudaError_t status = cudaSuccess;\n  try {\n    status = wait_for_all();",
          "  cudaError_t status = cudaSuccess;\n  try {\n    resolve_stamps(true);\n    status = wait_for_all();",
          (runtime(),)),
    Fault("a lane does not join the end of a recording", RECORDING,
          "      streams_.front()->wait(*events_[s]);\n", "",
          (runtime(),)),
    Fault("a lane takes no part in a recording", RECORDING,
          "  void fork() {\n    keep_host_work_in(&tasks_);\n    streams_.front()->record(*events_.front());\n"
          "    for (std::size_t s = 1;",
          "  void fork() {\n    keep_host_work_in(&tasks_);\n    streams_.front()->record(*events_.front());\n"
          "    for (std::size_t s = 2;",
          (runtime(),)),
    Fault("host work of a recording freed before it is replayed", RECORDING,
          "std::deque<HostTask> take_tasks() { return std::move(tasks_); }",
          "std::deque<HostTask> take_tasks() { return {}; }",
          (runtime(),)),
    Fault("capture left open after an error", RECORDING,
          "    if (open_) {\n      cudaGraph_t unfinished = nullptr;",
          "    if (open_ && events_.empty()) {\n      cudaGraph_t unfinished = nullptr;",
          (runtime(),)),
    Fault("event recorded before the work that it stands for", EXECUTOR,
          "    enqueue_named(s, inputs, stamps == nullptr ? nullptr : stamps + s);\n"
          "    if (issue.done != nullptr) {\n      issue.stream->record(*issue.done);\n    }\n",
          "    if (issue.done != nullptr) {\n      issue.stream->record(*issue.done);\n    }\n"
          "    enqueue_named(s, inputs, stamps == nullptr ? nullptr : stamps + s);\n",
          (executor("Executor.*"), training("HasTheLossesOfTheCpuWhereTensorsAreSwapped"))),
    Fault("wait of a copy to the host dropped", EXECUTOR,
          "  for (Event* wait : issue.waits) {\n    issue.stream->wait(*wait);",
          "  for (Event* wait : issue.waits) {\n    if (issue.lane == Lane::copy_out) {\n      continue;\n    }\n"
          "    issue.stream->wait(*wait);",
          (executor("Executor.*"), training("HasTheLossesOfTheCpuWhereTensorsAreSwapped"))),
    Fault("wait of a copy from the host dropped", EXECUTOR,
          "  for (Event* wait : issue.waits) {\n    issue.stream->wait(*wait);",
          "  for (Event* wait : issue.waits) {\n    if (issue.lane == Lane::copy_in) {\n      continue;\n    }\n"
          "    issue.stream->wait(*wait);",
          (executor("Executor.*"), training("HasTheLossesOfTheCpuWhereTensorsAreSwapped"))),
    Fault("wait on the wrong lane", EXECUTOR,
          "    issue.stream->wait(*wait);",
          "    used_streams_.front()->wait(*wait);",
          (executor("Executor.*"), training("HasTheLossesOfTheCpuWhereTensorsAreSwapped"))),
    Fault("wait for the exchange dropped", EXECUTOR,
          "    issue.stream->wait(*exchange);",
          "    static_cast<void>(exchange);",
          (executor("Recording.*:Executor.*:Exposed*"), grid("CudaExchangeStep.*"),
           training("MatchesTheLossesOfTwoCpuRanksOnTwoDevices"))),
    Fault("workspace of another lane reused while it is in use", "runtime/block_lifetimes.cpp",
          "static_cast<std::uint32_t>(end(index_of(step), touched))",
          "static_cast<std::uint32_t>(end(index_of(step), no_steps))",
          (executor("BlockLifetimes*:MemoryPlan*:Executor*"),)),
    Fault("swapped-out tensor not copied", EXECUTOR,
          "      issue.to = host_home(offload->tensor, id);  // null for an input: the host has it",
          "      issue.to = result_of_[index_of(offload->tensor)];",
          (executor("Executor.*"),)),
    Fault("recording replayed with the inputs of another", EXECUTOR,
          "    if (std::ranges::equal(known.inputs, inputs, {}, {}, &TensorView::data)) {",
          "    if (known.inputs.size() == inputs.size()) {",
          (executor("Recording.*"),)),

    # Faults in descriptors for cuDNN.
    Fault("strides of rows and columns swapped", GRAPH,
          "strides{pitch * s[2] * s[3], 1, pitch * s[3], pitch};",
          "strides{pitch * s[2] * s[3], 1, pitch, pitch * s[2]};",
          (kernels("conv_1x7*_fp16:conv_7x7*:fused_conv_8_5x9*"),)),
    Fault("padding before and after swapped", GRAPH,
          "CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.pad_top, w.pad_left}",
          "CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.pad_bottom, w.pad_right}",
          (kernels("conv_3x3*:conv_7x7*"),)),
    Fault("stride of a filter left out", GRAPH,
          "CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.stride_h, w.stride_w}",
          "CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.stride_h, 1}",
          (kernels("conv_1x1*stride_2*"),)),
    Fault("beta of a convolution is 1, not 0", GRAPH,
          "operation.set(names.beta, 0.0F);", "operation.set(names.beta, 1.0F);",
          (kernels("conv_1x1*"),)),
    Fault("tensors promised to be aligned to 128 bytes", GRAPH,
          "descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});",
          "descriptor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{128});",
          (kernels("conv_*"),)),
    Fault("weights and image of a convolution swapped", "layers/cuda/cudnn/conv.cpp",
          "const std::array<void*, 3> without{o.x, o.w, o.y};",
          "const std::array<void*, 3> without{o.w, o.x, o.y};",
          (kernels("conv_3x3*"),)),
    Fault("operands of an earlier run kept", PLAN,
          "if (!list_ || workspace != bound_workspace_ || !std::ranges::equal(pointers, bound_)) {",
          "if (!list_ || workspace != bound_workspace_) {",
          (Tests("cnn_emulated_layers_tests", "EmulatedPlan.*"),)),
    Fault("workspace of an earlier run kept", PLAN,
          "if (!list_ || workspace != bound_workspace_ || !std::ranges::equal(pointers, bound_)) {",
          "if (!list_ || !std::ranges::equal(pointers, bound_)) {",
          (Tests("cnn_emulated_layers_tests", "EmulatedPlan.*"),)),
    Fault("workspace smaller than the engine's", "layers/cuda/conv_steps.cu",
          "s.engine_bytes = *engine;", "s.engine_bytes = *engine / 2;",
          (kernels("conv_*"),)),
    Fault("cuDNN given the stream of an earlier call", LIBRARIES,
          '  check_cudnn(cudnnSetStream(cudnn_.get(), cnn::cuda::native(stream)), "change its stream");\n'
          "  return cudnn_.get();",
          "  static_cast<void>(stream);\n  return cudnn_.get();",
          (kernels("conv_1x1*"),)),
    Fault("scale and shift of a fused norm swapped", "layers/cuda/fused_graph.cpp",
          "    const Id scaled = inner(Function::multiply, x_, scale);\n"
          "    const Id shifted = inner(Function::add, scaled, shift);",
          "    const Id scaled = inner(Function::multiply, x_, shift);\n"
          "    const Id shifted = inner(Function::add, scaled, scale);",
          (kernels("fused_conv_8_5x7*_fp16"),)),
    Fault("statistics of a convolution written to scratch", "layers/cuda/fused_steps.cpp",
          "  if (a.statistics) {\n    s.spec.out.insert(s.spec.out.end(), 2, vector_like(y[1]));\n"
          "    s.tensors.insert(s.tensors.end(), {out(1), out(2)});",
          "  if (a.statistics) {\n    s.spec.out.insert(s.spec.out.end(), 2, vector_like(y[1]));\n"
          "    s.tensors.insert(s.tensors.end(), {out(2), out(1)});",
          (kernels("fused_conv_8_5x7*_fp16"),)),

    # Faults in descriptors for cuBLASLt.
    Fault("pitch 0 of a bias gradient", DENSE,
          ".pitch = dy.desc.shape[1],", ".pitch = 0,",
          (kernels("dense_5*"),)),
    Fault("workspace without the sums of a bias gradient", DENSE,
          "    plan.spec.workspace += sum_rows_workspace(dy[0], static_cast<int>(dy[1]));\n", "",
          (kernels("dense_5*"),)),
    Fault("beta of a product is 1, not 0", PRODUCT,
          "const float zero = 0;", "const float zero = 1;",
          (kernels("dense_5*"),)),
    Fault("epilogue of a product without its ReLU", PRODUCT,
          "return shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;",
          "return CUBLASLT_EPILOGUE_BIAS;",
          (kernels("dense_fused_relu*"),)),
    Fault("bias of a product at its planning address", PRODUCT,
          "  if (has_bias_) {\n    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);\n  }\n", "",
          (kernels("dense_5*"),)),
    Fault("transposition of an operand left out", PRODUCT,
          "set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, transposition(s.b_transposed));",
          "set(operation_.get(), CUBLASLT_MATMUL_DESC_TRANSA, transposition(false));",
          (kernels("dense_5*"),)),
    Fault("strict f32 computed in TF32", PRODUCT,
          "const bool tf32 = shape.in == DataType::f32 && !shape.strict_f32;",
          "const bool tf32 = shape.in == DataType::f32;",
          (kernels("dense_*_fp32_strict"),)),

    # Faults in our own kernels.
    Fault("padding channels of an image not zero", "layers/cuda/conv_parts.cu",
          "out.element[c] = c < channels ? from[row * channels + c] : std::uint16_t{0};",
          "out.element[c] = from[row * channels + c % channels];",
          (kernels("conv_*_3_to_*_fp16"),)),
    Fault("barrier between threads that sum left out", "layers/cuda/conv_parts.cu",
          "  __syncthreads();\n  if (!active || line > 0) {", "  if (!active || line > 0) {",
          (grid("ConvParts.*"),)),
    Fault("operands of 16 bits counted as 8 bits", "layers/cuda/conv_steps.cu",
          "return shape.elements() * static_cast<std::int64_t>(size_of(type));",
          "return shape.elements() * static_cast<std::int64_t>(std::min<std::size_t>(size_of(type), 1));",
          (kernels("conv_*_3_to_*_fp16"),)),
    Fault("epilogue ignores the pitch of its image", "layers/cuda/conv_steps.cu",
          ".pitch = pitch_of(operands.out[0].desc)});", ".pitch = g.y[1]});",
          (kernels("conv_fused_*"),)),
    Fault("loss scale multiplied, not divided", OPTIMIZER,
          "unscale(1 / (scalars.loss_scale != nullptr ? *scalars.loss_scale : f.loss_scale)) {",
          "unscale(scalars.loss_scale != nullptr ? *scalars.loss_scale : f.loss_scale) {",
          (kernels("update_*_scale_fp16"),)),
    Fault("automatic loss scale ignored", OPTIMIZER,
          "scalars.loss_scale != nullptr ? *scalars.loss_scale : f.loss_scale",
          "f.loss_scale",
          (kernels("update_*_scale_fp16"),)),
    Fault("parameters updated although a gradient is not finite", OPTIMIZER,
          "const bool skip = scalars.found_inf != nullptr && *scalars.found_inf != 0;",
          "const bool skip = false;",
          (grid("OptimizerKernels.*:GridCopies.*"),)),
    Fault("slots of Adam swapped", OPTIMIZER,
          "      return w - rate * a / (sqrtf(b) + f.epsilon);",
          "      return w - rate * b / (sqrtf(a) + f.epsilon);",
          (kernels("update_adam*_fp16"),)),
    Fault("slot of another parameter written", OPTIMIZER,
          "store<width>(t.data[slot_array + s] + at, slot[s]);",
          "store<width>(t.data[slot_array] + at, slot[s]);",
          (kernels("update_rmsprop*_fp16:update_adam*_fp16"),)),
    Fault("16-bit copy of a parameter not written", OPTIMIZER,
          "store<width>(t.copy + at, w);", "static_cast<void>(at);",
          (kernels("update_*copies_fp16"),)),
    Fault("NaN passes the check for finite gradients", "layers/cuda/found_inf.cu",
          "any |= fabsf(value) <= largest ? 0 : 1;", "any |= fabsf(value) > largest ? 1 : 0;",
          (grid("OptimizerKernels.FindInfinityAndNanInAnyTensor"),)),
    Fault("dropout draws the same mask in every step", "layers/cuda/dropout.cu",
          "stream_of_step(mask.seed, mask.step);", "mask.seed;",
          (kernels("dropout*_fp16"),)),
    Fault("synthetic labels of another step", "layers/cuda/random.cuh",
          "static_cast<std::uint32_t>(*step)", "static_cast<std::uint32_t>(*step + 1)",
          (kernels("dropout*_fp16:synthetic*"),)),
    Fault("running variance without its correction", "layers/cuda/moving_average.cu",
          "weight_of_batch * layer.unbiased * layer.variance[channel]", "weight_of_batch * layer.variance[channel]",
          (kernels("moving*_fp16"),)),
    Fault("decay of a stale gradient subtracted", "layers/cuda/stale_gradient.cu",
          "kept[i] = static_cast<float>(today + decayed);", "kept[i] = static_cast<float>(today - decayed);",
          (kernels("stale_gradients_fp16"),)),

    # Faults in the gradient exchange.
    Fault("flag of the host not taken back", "layers/cuda/host_flag.cu",
          "  *done = 0;\n", "",
          (grid("CudaExchange.*"), exchange("StagedOnDevice.*"))),
    Fault("device waits although the exchange has failed", "layers/cuda/host_flag.cu",
          "while (*done == 0 && *failed == 0) {", "while (*done == 0 && (*failed == 0 || *done == 0)) {",
          (exchange("StagedOnDevice.*"),)),
    Fault("flags of later buckets not set after a sum has failed", EXCHANGE,
          "    if (bucket != nullptr) {\n      word_of(*bucket, staging_failed).store(1, std::memory_order_release);\n"
          "    }",
          "    if (bucket != nullptr && bucket->on_host) {\n"
          "      word_of(*bucket, staging_failed).store(1, std::memory_order_release);\n    }",
          (exchange("StagedOnDevice.*"),)),
    Fault("device waits for a bucket that host work keeps back", EXCHANGE,
          "  if (now - *overdue_since_ > functions_.handover_timeout) {",
          "  if (now < *overdue_since_) {",
          (exchange("StagedOnDevice.*"),)),
    Fault("device does not wait for the host's sum", EXCHANGE,
          "  functions_.wait_for(stream, flag_of(bucket));\n", "",
          (STAGED, training("MatchesTheLossesOfTwoCpuRanksOnTwoDevices"))),
    Fault("host buffer summed before the copies have arrived", EXCHANGE,
          "  Bucket& bucket = *buckets_.at(number);\n  bucket.factor = factor;\n",
          "  Bucket& bucket = *buckets_.at(number);\n  bucket.factor = factor;\n  on_arrival(bucket);\n",
          (STAGED, training("MatchesTheLossesOfTwoCpuRanksOnTwoDevices"))),
    Fault("factor of a mean ignored", EXCHANGE,
          "bucket.factor = factor;", "bucket.factor = factor > 0 ? 1 : factor;",
          (STAGED,)),
    Fault("failed sum not reported to the stream", EXCHANGE,
          "  stream.host([this] { rethrow(); });\n", "",
          (STAGED,)),
    Fault("pieces of a bucket all from its start", EXCHANGE,
          "    stream.copy(std::as_writable_bytes(piece).data(), host_bytes.data() + at, piece.size_bytes());",
          "    stream.copy(std::as_writable_bytes(piece).data(), host_bytes.data(), piece.size_bytes());",
          (STAGED,)),
    Fault("gradient not copied into the bucket", "layers/stream_exchange.cpp",
          "if (out.data != in.data) {", "if (out.data == nullptr) {",
          (STREAM_EXCHANGE, grid("CudaExchangeStep.*"), training("MatchesTheLossesOfTwoCpuRanksOnTwoDevices"))),
    Fault("another bucket reduced", "layers/stream_exchange.cpp",
          "communicator_->all_reduce(stream, op_.bucket, pieces_, op_.factor);",
          "communicator_->all_reduce(stream, op_.bucket / 2, pieces_, op_.factor);",
          (STREAM_EXCHANGE, grid("CudaExchangeStep.*"))),
    Fault("mean of NCCL is a sum", COMMUNICATOR,
          "  if (factor == 1) {\n    return sum;", "  if (factor <= 1) {\n    return sum;",
          (NCCL,)),
    Fault("abort of NCCL waits for the recordings that use it", COMMUNICATOR,
          "  abort_ = std::make_unique<Abort>(library_, std::exchange(comm_, nullptr), std::move(used));",
          "  static_cast<void>(library_.abort(std::exchange(comm_, nullptr)));",
          (exchange("NcclOnDevices.*"),)),
    Fault("stream destroyed while NCCL may launch on it", COMMUNICATOR,
          "    keep_in_abort(owner->shared_handle());\n", "    static_cast<void>(owner);\n",
          (exchange("NcclOnDevices.*"),)),
    Fault("memory of NCCL freed before its abort has ended", COMMUNICATOR,
          "  share(memory);\n", "",
          (exchange("NcclOnDevices.*"),)),
    Fault("error of NCCL on a running step not asked for", COMMUNICATOR,
          "  if (query != success || (status != success && status != in_progress)) {",
          "  if (query != success) {",
          (NCCL, exchange("NcclOnDevices.*"))),
    Fault("NCCL given a stream of another lane", COMMUNICATOR,
          "library_.all_reduce(row.data(), row.data(), row.size(), float32, operation, comm_, native);",
          "library_.all_reduce(row.data(), row.data(), row.size(), float32, operation, comm_,\n"
          "                            row.empty() ? native : nullptr);",
          (NCCL, exchange("NcclOnDevices.*"))),
    Fault("group of NCCL left open after a refusal", COMMUNICATOR,
          "      static_cast<void>(library_.group_end());\n", "",
          (NCCL,)),
    Fault("NCCL not aborted when a rank is lost", COMMUNICATOR,
          "  } catch (const std::exception& error) {\n    abort(error.what());\n    throw;\n  }",
          "  } catch (const std::exception& /*error*/) {\n    throw;\n  }",
          (NCCL,)),
    Fault("distant pieces joined for NCCL", COMMUNICATOR,
          "begin - end < alignment", "begin - end < 4 * alignment",
          (NCCL,)),

    Fault("f32 counted for f16", "bench/machine/ceilings.cpp",
          "    return static_cast<double>(operands_.in[input].desc.bytes());",
          "    return static_cast<double>(operands_.in[input].desc.shape.elements() * 4);",
          (Tests("cnn_bench_tests", "Ceilings.CountWeights*"),)),
    Fault("a rank with another plan taken for the same", "bench/ranks/rank_consistency.cpp",
          "      if (at(first) != at(other)) {", "      if (at(first).empty() != at(other).empty()) {",
          (Tests("cnn_bench_tests", "Alike.*"),)),

    # Faults in the program's CUDA module.
    Fault("every rank on the first device", "bench/cuda/backend.cpp",
          "  auto device = std::make_unique<cuda::CudaDevice>(ordinal_of(config));",
          "  auto device = std::make_unique<cuda::CudaDevice>(0 * ordinal_of(config));",
          (Tests("cnn_emulated_program_tests", "GpuExchange.MatchesTheLosses*"),)),
    Fault("host memory of the exchange not pinned", "bench/cuda/backend.cpp",
          "  cuda::pin(memory);\n  return {memory.data(), [](void* pinned) { cuda::unpin(pinned); }};",
          "  return {memory.data(), [](void*) {}};",
          (training("*OnTwoDevices"),)),
    Fault("no memory kept back for the libraries", "bench/cuda/backend.cpp",
          "available - std::min(available, kept_back);", "available - std::min(available, kept_back / kept_back);",
          (Tests("cnn_emulated_program_tests", "EmulatedGpuMemory.*"),)),
    Fault("fraction of the memory that is asked for ignored", "bench/cuda/backend.cpp",
          "return std::min(ours, static_cast<std::size_t>(part));", "return std::max(ours, static_cast<std::size_t>(part));",
          (Tests("cnn_emulated_program_tests", "EmulatedGpuMemory.*"),)),
)
