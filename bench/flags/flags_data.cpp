#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

// The JPEG pipeline is what most of these flags tune; it comes with the ImageNet records.
constexpr std::string_view no_records =
    "it acts on ImageNet records only, which are not read yet; leave it out";

constexpr Flag input_rows[] = {
    {.name = "batch_group_size",
     .target = reaches<&Config::batch_group_size>,
     .help = "batches that the input stage makes at a time; also rounds the warm-up up",
     .at_least = 1},
};

constexpr Flag data_rows[] = {
    {.name = "data_dir",
     .target = reaches<&Config::data_dir>,
     .help = "folder (or .safetensors file) of the data set; unset = synthetic data"},
    {.name = "data_name",
     .target = reaches<&Config::data_name>,
     .help = "imagenet, cifar10, mnist or tensors; unset = guessed from --data_dir"},
    {.name = "resize_method",
     .target = reaches<&Config::resize_method>,
     .help = "interpolation when images change size",
     .treatment = Treatment::later,
     .note = no_records,
     .choices = "nearest|bilinear|bicubic|area|round_robin"},
    {.name = "distortions",
     .target = reaches<&Config::distortions>,
     .help = "augment training images; CIFAR-10: pad by 4, random crop, random flip"},
    {.name = "use_datasets",
     .target = reaches<&Config::use_datasets>,
     .help = "choose between TensorFlow's two readers",
     .treatment = Treatment::accepted,
     .note = "there is one input pipeline here"},
    {.name = "input_preprocessor",
     .target = reaches<&Config::input_preprocessor>,
     .help = "which preprocessing of the data set to use",
     .treatment = Treatment::later,
     .note = no_records,
     .choices = "default|official_models_imagenet"},
    {.name = "datasets_repeat_cached_sample",
     .target = reaches<&Config::datasets_repeat_cached_sample>,
     .help = "read one record and repeat it for ever",
     .treatment = Treatment::later,
     .note = no_records},
    {.name = "ml_perf",
     .target = reaches<&Config::ml_perf>,
     .help = "preprocess ImageNet as MLPerf does",
     .treatment = Treatment::later,
     .note = no_records},
    {.name = "datasets_use_prefetch",
     .target = reaches<&Config::datasets_use_prefetch>,
     .help = "prefetch batches to each GPU; without it the warm-up is rounded as for staging"},
    {.name = "datasets_prefetch_buffer_size",
     .target = reaches<&Config::datasets_prefetch_buffer_size>,
     .help = "a buffer size that the original never read",
     .treatment = Treatment::accepted,
     .note = "the original never read it either",
     .at_least = 0},
    {.name = "datasets_num_private_threads",
     .target = reaches<&Config::datasets_num_private_threads>,
     .help = "threads of the input pipeline",
     .treatment = Treatment::later,
     .note = no_records,
     .at_least = 0},
    {.name = "datasets_use_caching",
     .target = reaches<&Config::datasets_use_caching>,
     .help = "keep the encoded records in memory",
     .treatment = Treatment::accepted,
     .note = "every data set of this version is held in memory as a whole"},
    {.name = "datasets_parallel_interleave_cycle_length",
     .target = reaches<&Config::datasets_parallel_interleave_cycle_length>,
     .help = "record files that are read side by side",
     .treatment = Treatment::later,
     .note = no_records,
     .at_least = 1},
    {.name = "datasets_sloppy_parallel_interleave",
     .target = reaches<&Config::datasets_sloppy_parallel_interleave>,
     .help = "allow record files to be mixed in any order",
     .treatment = Treatment::later,
     .note = no_records},
    {.name = "datasets_parallel_interleave_prefetch",
     .target = reaches<&Config::datasets_parallel_interleave_prefetch>,
     .help = "records read ahead per file",
     .treatment = Treatment::later,
     .note = no_records,
     .at_least = 0},
    {.name = "multi_device_iterator_max_buffer_size",
     .target = reaches<&Config::multi_device_iterator_max_buffer_size>,
     .help = "batches kept ready per device",
     .treatment = Treatment::later,
     .note = "leave it out; the number of batches kept ready is fixed",
     .at_least = 1},
    {.name = "fuse_decode_and_crop",
     .target = reaches<&Config::fuse_decode_and_crop>,
     .help = "decode only the part of a JPEG that the crop keeps",
     .treatment = Treatment::later,
     .note = no_records},
    {.name = "distort_color_in_yiq",
     .target = reaches<&Config::distort_color_in_yiq>,
     .help = "jitter colours in YIQ space rather than HSV",
     .treatment = Treatment::later,
     .note = no_records},
};

}  // namespace

std::vector<FlagGroup> data_flags() {
  return {{"input", "Input stage", input_rows}, {"data", "Data sets", data_rows}};
}

}  // namespace cnn::bench
