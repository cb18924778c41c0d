#include "bench/flags/conditions.h"
#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr std::string_view by_index =
    "records are read by an index, in an order that the seed decides whatever disk or threads do";

bool reads_no_image_files(const Config& config) {
  return on_synthetic_data(config) || !config.data.row().has_image_files;
}

constexpr NoEffectRule image_files_only{
    reads_no_image_files,
    "--resize_method, --input_preprocessor, --ml_perf, --fuse_decode_and_crop, "
    "--distort_color_in_yiq, --datasets_use_caching, --class_list and --skip_broken_records act on "
    "--data_name=imagenet with --data_dir only"};
constexpr NoEffectRule no_colours{
    [](const Config& c) { return !reads_no_image_files(c) && !c.data.distortions; },
    "--distort_color_in_yiq acts with --distortions only"};
constexpr NoEffectRule official_size{
    [](const Config& c) {
      return !reads_no_image_files(c) && c.data.preprocessor == Preprocessor::official_models;
    },
    "--ml_perf adds nothing but crops without boxes to --input_preprocessor="
    "official_models_imagenet"};

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
     .member = &at<&Config::size, &SizeOptions::batch_group>,
     .no_effect = {{[](const Config& c) { return c.search.any(); },
                    "--batch_group_size groups batches of steps, and a search for the largest size "
                    "runs none"}}},
};

constexpr Flag data_rows[] = {
    {.name = "data_dir",
     .help = "folder (or .safetensors file) of the data set; unset = synthetic data",
     .member = &at<&Config::data, &DataOptions::dir>},
    {.name = "data_name",
     .help = "imagenet, cifar10, mnist or tensors; unset = guessed from --data_dir",
     .member = &at<&Config::data, &DataOptions::set>,
     .known = data_set_names},
    {.name = "resize_method",
     .help = "interpolation when images change size; round_robin: nearest, bilinear, bicubic and "
             "area in turn, by the place in the batch",
     .member = &at<&Config::data, &DataOptions::resize>,
     .no_effect = {image_files_only}},
    {.name = "distortions",
     .help = "augment training images; ImageNet: random colours (random crops and flips happen "
             "without it); CIFAR-10: pad by 4, random crop, random flip",
     .member = &at<&Config::data, &DataOptions::distortions>,
     .no_effect = {{[](const Config& c) { return !c.data.row().has_distortions; },
                    "--distortions acts on ImageNet and CIFAR-10 only"},
                   {[](const Config& c) {
                      return c.data.row().has_distortions && on_synthetic_data(c);
                    },
                    "--distortions does not act on synthetic data"}}},
    {"use_datasets", boolean, "True", accepted,
     "both values read the data by this program's one input pipeline",
     "choose between TensorFlow's two readers"},
    {.name = "input_preprocessor",
     .help = "which preprocessing of ImageNet to use: upstream's own or that of TensorFlow's "
             "official models (shorter side 256 in evaluation, channel means subtracted)",
     .member = &at<&Config::data, &DataOptions::preprocessor>,
     .no_effect = {image_files_only}},
    {.name = "datasets_repeat_cached_sample",
     .help = "read the first example once and repeat it for ever: takes the disk out of a "
             "measurement; ImageNet's is decoded and preprocessed anew each time",
     .member = &at<&Config::data, &DataOptions::repeat_first>,
     .no_effect = {{on_synthetic_data,
                    "--datasets_repeat_cached_sample acts with --data_dir only"}}},
    {.name = "ml_perf",
     .help = "preprocess ImageNet as MLPerf does: crops ignore boxes, channel means are subtracted "
             "instead of scaling to [-1, 1]",
     .member = &at<&Config::data, &DataOptions::ml_perf>,
     .no_effect = {image_files_only, official_size}},
    {.name = "class_list",
     .help = "for image files in folders of classes: file with the name of a class's folder in "
             "each line, the first of label 1; unset = the folders' names, sorted",
     .member = &at<&Config::data, &DataOptions::class_list>,
     .no_effect = {image_files_only}},
    {.name = "input_only",
     .help =
         "read and preprocess the batches of the run but compute nothing, and say how fast that "
         "is, also for each core, and what takes the time",
     .member = &at<&Config::data, &DataOptions::input_only>},
    {.name = "skip_broken_records",
     .help = "leave out records and images that are damaged, take the next one instead, and say "
             "how many there were; else the first one ends the run",
     .member = &at<&Config::data, &DataOptions::skip_broken>,
     .no_effect = {image_files_only}},
    {.name = "datasets_use_prefetch",
     .help = "prefetch batches to each GPU; without it the warm-up is rounded as for staging",
     .member = &at<&Config::data, &DataOptions::use_prefetch>,
     .no_effect = {{on_synthetic_data,
                    "--nodatasets_use_prefetch does not act on synthetic data"}}},
    {"datasets_prefetch_buffer_size", integer, "1", accepted,
     "the original never read it either; --multi_device_iterator_max_buffer_size says how many "
     "batches are kept ready",
     "a buffer size that the original never read", at_least(0)},
    {.name = "datasets_num_private_threads",
     .help = "threads that read and preprocess examples, for each device; unset or 0 = as many as "
             "the step leaves",
     .range = between(0, 1024),
     .member = &at<&Config::data, &DataOptions::threads>,
     .no_effect = {{on_synthetic_data,
                    "--datasets_num_private_threads acts with --data_dir only"}}},
    {.name = "datasets_use_caching",
     .help = "keep the encoded images in memory once they were read",
     .member = &at<&Config::data, &DataOptions::cache>,
     .no_effect = {image_files_only}},
    {"datasets_parallel_interleave_cycle_length", integer, "None", accepted, by_index,
     "record files that are read side by side", at_least(1)},
    {"datasets_sloppy_parallel_interleave", boolean, "False", accepted, by_index,
     "allow record files to be mixed in any order"},
    {"datasets_parallel_interleave_prefetch", integer, "None", accepted, by_index,
     "records read ahead per file", at_least(0)},
    {.name = "multi_device_iterator_max_buffer_size",
     .help = "batches kept ready for each device, beside the one that is being filled",
     .range = between(1, 1e6),
     .member = &at<&Config::data, &DataOptions::ready_batches>,
     .no_effect = {{on_synthetic_data,
                    "--multi_device_iterator_max_buffer_size acts with --data_dir only"}}},
    {.name = "fuse_decode_and_crop",
     .help = "decode only the part of a JPEG that the crop keeps; the whole one gives other values "
             "at the edges of the crop",
     .member = &at<&Config::data, &DataOptions::decode_crop_only>,
     .no_effect = {image_files_only}},
    {.name = "distort_color_in_yiq",
     .help = "with --distortions, change colours in YIQ space rather than HSV",
     .member = &at<&Config::data, &DataOptions::colours_in_yiq>,
     .no_effect = {image_files_only, no_colours}},
};

}  // namespace

std::vector<FlagGroup> data_flags() {
  return {{"input", "Input stage", input_rows}, {"data", "Data sets", data_rows}};
}

}  // namespace cnn::bench
