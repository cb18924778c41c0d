#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum Treatment;
using enum Type;

// The JPEG pipeline is what most of these flags tune; it comes with the ImageNet records.
constexpr std::string_view no_records =
    "it acts on ImageNet records only, which are not read yet; leave it out";

std::vector<std::string> data_set_names() {
  std::vector<std::string> names;
  for (const data::Row& row : data::catalog()) {
    if (data::can_run(row)) {
      names.emplace_back(row.name);
    }
  }
  return names;
}

constexpr Flag input_rows[] = {
    {.name = "batch_group_size",
     .help = "batches that the input stage makes at a time; also rounds the warm-up up",
     .range = at_least(1),
     .member = &at<&Config::size, &SizeOptions::batch_group>},
};

constexpr Flag data_rows[] = {
    {.name = "data_dir",
     .help = "folder (or .safetensors file) of the data set; unset = synthetic data",
     .member = &at<&Config::data, &DataOptions::dir>},
    {.name = "data_name",
     .help = "imagenet, cifar10, mnist or tensors; unset = guessed from --data_dir",
     .member = &at<&Config::data, &DataOptions::set>,
     .known = data_set_names},
    {"resize_method",
     text,
     "bilinear",
     later,
     no_records,
     "interpolation when images change size",
     {},
     "nearest|bilinear|bicubic|area|round_robin"},
    {.name = "distortions",
     .help = "augment training images; CIFAR-10: pad by 4, random crop, random flip",
     .member = &at<&Config::data, &DataOptions::distortions>,
     .idle = {{[](const Config& c) { return !c.data.row().has_distortions; },
               "--distortions acts on CIFAR-10 only"},
              {[](const Config& c) { return c.data.row().has_distortions && on_synthetic_data(c); },
               "--distortions does not act on synthetic data"}}},
    {"use_datasets", boolean, "True", accepted, "there is one input pipeline here",
     "choose between TensorFlow's two readers"},
    {"input_preprocessor",
     text,
     "default",
     later,
     no_records,
     "which preprocessing of the data set to use",
     {},
     "default|official_models_imagenet"},
    {"datasets_repeat_cached_sample", boolean, "False", later, no_records,
     "read one record and repeat it for ever"},
    {"ml_perf", boolean, "False", later, no_records, "preprocess ImageNet as MLPerf does"},
    {.name = "datasets_use_prefetch",
     .help = "prefetch batches to each GPU; without it the warm-up is rounded as for staging",
     .member = &at<&Config::data, &DataOptions::use_prefetch>,
     .idle = {{on_synthetic_data, "--nodatasets_use_prefetch does not act on synthetic data"}}},
    {"datasets_prefetch_buffer_size", integer, "1", accepted, "the original never read it either",
     "a buffer size that the original never read", at_least(0)},
    {"datasets_num_private_threads", integer, "None", later, no_records,
     "threads of the input pipeline", at_least(0)},
    {"datasets_use_caching", boolean, "False", accepted,
     "every data set of this version is held in memory as a whole",
     "keep the encoded records in memory"},
    {"datasets_parallel_interleave_cycle_length", integer, "None", later, no_records,
     "record files that are read side by side", at_least(1)},
    {"datasets_sloppy_parallel_interleave", boolean, "False", later, no_records,
     "allow record files to be mixed in any order"},
    {"datasets_parallel_interleave_prefetch", integer, "None", later, no_records,
     "records read ahead per file", at_least(0)},
    {"multi_device_iterator_max_buffer_size", integer, "1", later,
     "leave it out; the number of batches kept ready is fixed", "batches kept ready per device",
     at_least(1)},
    {"fuse_decode_and_crop", boolean, "True", later, no_records,
     "decode only the part of a JPEG that the crop keeps"},
    {"distort_color_in_yiq", boolean, "True", later, no_records,
     "jitter colours in YIQ space rather than HSV"},
};

}  // namespace

std::vector<FlagGroup> data_flags() {
  return {{"input", "Input stage", input_rows}, {"data", "Data sets", data_rows}};
}

}  // namespace cnn::bench
