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
// and the text file `checkpoint` that names the newest. Values are plain row-major f32, whatever a
// device's layout.

struct NamedTensor {
  std::string name;      // "v/cg/conv0/conv2d/kernel", "v/cg/conv0/conv2d/kernel/Momentum"
  Shape shape;           // as upstream's: HWIO kernels, [in, out] matrices
  bool required = true;  // in a checkpoint that is loaded; slots and the loss scale are not
};

// The values of tensor number `index`, which must stay as they are until the next call.
using ValueSource = std::function<std::span<const float>(std::size_t index)>;

struct SaveOptions {
  std::filesystem::path train_dir;  // made if it does not exist
  std::int64_t global_step = 0;     // stored as the scalar `global_step` too
  int max_to_keep = 5;              // 0: keep all
  int ranks = 1;                    // that have trained it
};

// Returns the path of the new checkpoint, complete and on the disk. Only then the ones with the
// lowest numbers are deleted, beyond max_to_keep; a failure, or a kill at any time, leaves the
// earlier ones as they were. One process at a time may save in a folder.
std::filesystem::path save(const SaveOptions& options, std::span<const NamedTensor> tensors,
                           const ValueSource& source);

// Returns the newest checkpoint of a folder: the file that its index `checkpoint` names, or without
// an index the one with the highest step. Where the index names a file that is gone, or nothing, a
// line that says so and what was taken is added to `notices`. A path of a checkpoint, with or
// without .safetensors, returns that file. Nothing if there is none. Throws Error where training
// that exists would be missed: the index is a link that leads nowhere, the index or the only
// checkpoint has a step of more than 63 bits, or there are only checkpoints of TensorFlow.
std::optional<std::filesystem::path> find_newest(const std::filesystem::path& folder_or_path,
                                                 std::vector<std::string>* notices = nullptr);

// The newest checkpoint of the same folder with a lower number whose file is complete.
std::optional<std::filesystem::path> find_whole_before(const std::filesystem::path& checkpoint);

// The digits after the last '-' of the file's name; 0 if there are none.
std::int64_t step_of(const std::filesystem::path& path);

// Takes the values of tensor number `index`, valid during the call.
using ValueSink = std::function<void(std::size_t index, std::span<const float> values)>;

struct Loaded {
  std::int64_t global_step = 0;
  int ranks = 1;                     // that have trained it
  std::vector<std::size_t> missing;  // not required and not there: keep their initial values
  std::vector<std::string> notices;  // for the user, one line each
};

enum class Purpose : std::uint8_t { training, evaluation };  // evaluation: no notice about slots

// Reads every wanted tensor that the file has. Names match whether either side starts with v/ or
// v0/. Everything is checked before the first value is handed over: throws Error naming a required
// tensor that is missing, one of another shape, or one that nobody knows.
Loaded load(const std::filesystem::path& path, std::span<const NamedTensor> wanted,
            const ValueSink& sink, Purpose purpose = Purpose::training);

}  // namespace cnn::data
