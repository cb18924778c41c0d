#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace cnn::data {

// Checkpoints are <train_dir>/model.ckpt-<global_step>.safetensors with upstream's variable names,
// and the text file `checkpoint` that names the newest. Values are plain row-major f32, independent
// of a device's layout.

struct NamedTensor {
  std::string name;      // "v/cg/conv0/conv2d/kernel", "v/cg/conv0/conv2d/kernel/Momentum"
  Shape shape;           // as upstream's: HWIO kernels, [in, out] matrices
  bool required = true;  // a loaded checkpoint must contain it; false for slots and the loss scale
};

// Returns the values of tensor number `index`, which must stay unchanged until the next call.
using ValueSource = std::function<std::span<const float>(std::size_t index)>;

struct SaveOptions {
  std::filesystem::path train_dir;  // created if missing
  std::int64_t global_step = 0;     // stored as the scalar `global_step` too
  int max_to_keep = 5;              // 0: keep all
  int ranks = 1;                    // that trained
};

// Saves a checkpoint and returns its path once it is complete and on disk. Only then deletes the
// checkpoints that were saved first, beyond max_to_keep; a failure, or a kill at any time, leaves
// the earlier ones unchanged. The newest checkpoint whose values are all finite is never deleted,
// so that a training that diverges can go back to it. One process at a time may save in a folder.
std::filesystem::path save(const SaveOptions& options, std::span<const NamedTensor> tensors,
                           const ValueSource& source);

// Returns the newest checkpoint of a folder: the file that its index `checkpoint` names, or without
// an index the one with the highest step. If the index names a missing file, or nothing, adds a
// line to `notices` that says so and names the checkpoint taken. For a path of a checkpoint, with
// or without .safetensors, returns that file. Returns nothing if there is none. Throws Error if it
// would miss existing training: the index is a dangling link, the index or the only checkpoint has
// a step of more than 63 bits, or the folder has only TensorFlow checkpoints.
std::optional<std::filesystem::path> find_newest(const std::filesystem::path& folder_or_path,
                                                 std::vector<std::string>* notices = nullptr);

// Returns the newest complete checkpoint of the same folder with a lower step.
std::optional<std::filesystem::path> find_whole_before(const std::filesystem::path& checkpoint);

// Returns the digits after the last '-' of the file's name; 0 if there are none.
std::int64_t step_of(const std::filesystem::path& path);

// Receives the values of tensor number `index`, valid during the call.
using ValueSink = std::function<void(std::size_t index, std::span<const float> values)>;

struct Loaded {
  std::int64_t global_step = 0;
  int ranks = 1;                     // that trained
  std::vector<std::size_t> missing;  // optional and absent: they keep their initial values
  std::vector<std::string> notices;  // for the user, one line each
};

enum class Purpose : std::uint8_t { training, evaluation };  // evaluation: no notices about slots

// Reads every wanted tensor that the file has. Names match regardless of a leading v/ or v0/.
// Checks everything before it passes on the first value: throws Error with the name of a required
// tensor that is missing, one of another shape, or an unknown one.
Loaded load(const std::filesystem::path& path, std::span<const NamedTensor> wanted,
            const ValueSink& sink, Purpose purpose = Purpose::training);

}  // namespace cnn::data
