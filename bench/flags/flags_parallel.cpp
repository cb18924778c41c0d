#include "bench/flags/conditions.h"
#include "bench/flags/fault_spec.h"
#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum FlagSupport;
using enum Type;

constexpr std::string_view by_mpirun =
    "mpirun starts the ranks and knows the hosts; the refusal prints the line that does the same";
constexpr NoEffectRule alone{
    exchanges_nothing,
    "nothing is exchanged by one device, with --variable_update=independent, --forward_only or "
    "--eval: the flags of the exchange have no effect"};
constexpr NoEffectRule without_spec{[](const Config& c) { return !c.comm.spec; },
                                    "--agg_small_grads_* act with --all_reduce_spec only"};
constexpr NoEffectRule alone_unchecked{
    [](const Config& c) { return exchanges_nothing(c) && !repeats_on_all_ranks(c); }, alone.line};
constexpr NoEffectRule alone_without_flip{
    [](const Config& c) { return exchanges_nothing(c) && !flips_a_bit(c.comm.fault); }, alone.line};
constexpr auto others_sum = [](const Config& c) {
  return c.comm.backend == CommBackend::mpi || c.comm.backend == CommBackend::nccl;
};
constexpr NoEffectRule by_others{
    +others_sum,
    "--comm_check and --comm_stall_warn_s act on what this program sums "
    "itself (--comm_backend=ring)"};
constexpr NoEffectRule by_others_sums{
    [](const Config& c) { return others_sum(c) && !repeats_on_all_ranks(c); }, by_others.line};
constexpr NoEffectRule by_hand{
    [](const Config& c) { return c.comm.spec.has_value() || others_sum(c); },
    "--comm_topology, --comm_rings, --comm_chunk_kb and --comm_window guide this "
    "program's choice; --all_reduce_spec (ALG#shards@dims%chunks) and "
    "--comm_backend=mpi or nccl leave it none"};
constexpr Flag reduce_rows[] = {
    {.name = "variable_update",
     .help = "how devices share variables and gradients; on one device the first three are equal",
     .member = &at<&Config::variable_update>},
    {.name = "all_reduce_spec",
     .help = "which reduction algorithm serves which size, in elements of a bucket: ALG[#shards]"
             "[@dims][%chunks][:LIMIT:ALG...], ALG being auto, ring, direct, weighted, rd, hd, "
             "tree, shm or one of the original's",
     .member = &at<&Config::comm, &CommFlags::spec>,
     .no_effect = {alone}},
    {.name = "hierarchical_copy",
     .help = "reduce in each half of the devices first, then between the halves",
     .member = &at<&Config::comm, &CommFlags::hierarchical_copy>,
     .no_effect = {{[](const Config& c) { return c.comm.spec.has_value(); },
                    "--hierarchical_copy has no effect: --all_reduce_spec names the algorithm"}}},
    {.name = "network_topology",
     .help = "machine that --hierarchical_copy assumes: which devices lead its halves",
     .member = &at<&Config::comm, &CommFlags::network>,
     .no_effect =
         {{[](const Config&) { return true; },
           "--network_topology has no effect: each device leads for a part of the gradients"}}},
    {.name = "gradient_repacking",
     .help = "exchange all gradients together, after the last one, in this many pieces; 0 = off",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::repacking>,
     .no_effect = {alone}},
    {.name = "compact_gradient_transfer",
     .help = "send gradients in 16 bits between hosts when computing in 16 bits",
     .member = &at<&Config::comm, &CommFlags::compact>,
     .no_effect = {alone,
                   {[](const Config& c) {
                      return c.precision.type != Precision::fp16 &&
                             c.precision.type != Precision::bf16;
                    },
                    "--compact_gradient_transfer acts when computing in 16 bits only"}}},
    {.name = "variable_consistency",
     .help = "relaxed = apply the gradients of the step before, zeros at first",
     .member = &at<&Config::comm, &CommFlags::consistency>,
     .no_effect = {alone,
                   {[](const Config& c) {
                      return c.variable_update == VariableUpdate::parameter_server;
                    },
                    "--variable_consistency=relaxed has no effect with "
                    "--variable_update=parameter_server"}}},
    {"staged_vars", boolean, "False", rejected, "each step uses the newest variables; leave it out",
     "compute with the variables of the step before"},
    {.name = "agg_small_grads_max_bytes",
     .help =
         "with --all_reduce_spec, gradients up to this size travel together, larger ones alone; "
         "0 = off",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::small_bytes>,
     .no_effect = {alone, without_spec}},
    {.name = "agg_small_grads_max_group",
     .help = "how many small gradients may travel together",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::small_group>,
     .no_effect = {alone, without_spec}},
    {"allreduce_merge_scope", integer, "1", accepted,
     "gradients travel in buckets (--comm_bucket_mb)", "gradients of one grouped launch",
     at_least(1)},
};

constexpr Flag dist_rows[] = {
    {"job_name",
     text,
     "",
     rejected,
     by_mpirun,
     "role of this process among several",
     {},
     "ps|worker|controller|"},
    {"ps_hosts", text, "", rejected, by_mpirun, "addresses of the parameter servers"},
    {"worker_hosts", text, "", rejected, by_mpirun, "addresses of the workers"},
    {"controller_host", text, "None", rejected, by_mpirun, "address of the controller"},
    {"task_index", integer, "0", rejected, by_mpirun, "number of this process within its role",
     at_least(0)},
    {"server_protocol", text, "grpc", accepted,
     "ranks reach one another by shared memory within a host, and by MPI or NCCL between hosts",
     "protocol of TensorFlow's servers"},
    {"cross_replica_sync", boolean, "True", rejected,
     "all ranks make each step together, so that runs can be repeated; leave it out",
     "workers wait for each other"},
    {.name = "horovod_device",
     .help = "where Horovod would reduce: for the header; ranks reduce where they compute",
     .choices = "cpu|gpu|",
     .member = &at<&Config::report, &ReportOptions::horovod_device>,
     .no_effect = {{[](const Config& c) { return c.variable_update != VariableUpdate::horovod; },
                    "--horovod_device acts with --variable_update=horovod only"},
                   {[](const Config& c) { return on_cpu(c) != (c.report.horovod_device == "cpu"); },
                    "--horovod_device is for the header only: ranks reduce where they compute, and "
                    "that is elsewhere"}}},
    {.name = "comm_transport",
     .help =
         "how ranks reach one another: auto = by shared memory within a host and by MPI between "
         "hosts; mpi = by MPI everywhere",
     .member = &at<&Config::comm, &CommFlags::transport>},
    {.name = "comm_backend",
     .help =
         "who adds up the gradients: ring = this program, by the algorithm that is the fastest, "
         "those of GPUs on the host; nccl = NCCL, on the GPUs; auto = NCCL for GPUs where it is "
         "installed, else ring; mpi = MPI_Iallreduce, for processes, to compare",
     .member = &at<&Config::comm, &CommFlags::backend>},
};

constexpr Flag ibm_rows[] = {
    {.name = "ddl_options",
     .help = "as IBM's library took them: -mode LETTER:AxBxC, ranks of a host first; p and b = the "
             "fastest, r and n = rings, c = direct exchange; unset = what DDL_OPTIONS says",
     .member = &at<&Config::comm, &CommFlags::ddl_options>,
     .no_effect = {{[](const Config& c) { return c.variable_update != VariableUpdate::ddl; },
                    "--ddl_options act with --variable_update=ddl only"}}},
    {.name = "image_size",
     .help = "side of the square input in pixels; unset = the model's own",
     .range = at_least(1),
     .member = &at<&Config::model, &ModelOptions::image_size>},
};

constexpr Flag comm_rows[] = {
    {.name = "comm_algo",
     .help = "another name of --all_reduce_spec",
     .member = &at<&Config::comm, &CommFlags::algorithm>,
     .no_effect = {alone}},
    {.name = "comm_topology",
     .help = "ranks as a grid, those of a host first, such as 4x8; unset = the fastest one. "
             "Dimensions within a host sum in its memory: of two NUMA nodes with 4 ranks each on 8 "
             "hosts, 4x2x8 sums in each node first",
     .member = &at<&Config::comm, &CommFlags::topology>,
     .no_effect = {alone, by_hand}},
    {.name = "comm_rings",
     .help = "rings side by side; 0 = what is the fastest, rings or not",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::rings>,
     .no_effect = {alone, by_hand}},
    {.name = "comm_chunk_kb",
     .help = "KiB of a bucket that travel on their own; 0 = as many as hide one link under another",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::chunk_kb>,
     .no_effect = {alone, by_hand}},
    {.name = "comm_window",
     .help = "chunks under way at once; 0 = as the number of chunks wants it",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::window>,
     .no_effect = {alone, by_hand}},
    {.name = "comm_check",
     .help = "hash = compare all ranks' sums after every reduction, and end where they differ; "
             "exact = sum each bucket once with numbers whose sums are known before its first use; "
             "majority = with --variable_update=independent, train the same on all ranks, compare "
             "the hashes of all tensors after each step (see --hash_steps), and end with code 4 "
             "where a rank computes differently, naming rank, step and tensor",
     .member = &at<&Config::comm, &CommFlags::check>,
     .no_effect = {alone_unchecked, by_others_sums}},
    {.name = "comm_order",
     .help =
         "order of sums: fast = as the algorithm likes; rank = rank after rank, tree = pairwise: "
         "the same bits whatever the links do, tree in fp32 also for all powers of two; fast goes "
         "by hosts where mpirun has dealt ranks to them one by one, the others by rank",
     .member = &at<&Config::comm, &CommFlags::order>,
     .no_effect = {alone}},
    {.name = "comm_wire",
     .help = "type of what ranks send one another; auto = fp32, see --compact_gradient_transfer; "
             "ranks of one host send nothing but where --all_reduce_spec says so: they sum in fp32",
     .member = &at<&Config::comm, &CommFlags::wire>,
     .no_effect = {alone}},
    {.name = "comm_overlap",
     .help =
         "exchange buckets of gradients while others are still computed; false = all at the end",
     .member = &at<&Config::comm, &CommFlags::overlap>,
     .no_effect = {alone}},
    {.name = "comm_bucket_mb",
     .help = "MiB of gradients that are exchanged together",
     .range = at_least(1),
     .member = &at<&Config::comm, &CommFlags::bucket_mb>,
     .no_effect = {alone}},
    {.name = "comm_first_bucket_kb",
     .help = "KiB of the first bucket, which is small to start early",
     .range = at_least(1),
     .member = &at<&Config::comm, &CommFlags::first_bucket_kb>,
     .no_effect = {alone}},
    {.name = "comm_last_bucket_kb",
     .help = "KiB of the last bucket, whose time nothing hides",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::last_bucket_kb>,
     .no_effect = {alone}},
    {.name = "comm_print_plan",
     .help =
         "print for each bucket the algorithms with the time that the model gives them, and the "
         "lower bound",
     .member = &at<&Config::comm, &CommFlags::print_plan>,
     .no_effect = {alone}},
    {.name = "comm_dump_iter",
     .help = "print every so many timed steps what the exchange took in them: of the slowest rank "
             "beside the hardware's bound, and by rank and by bucket the wait for the latest rank "
             "and the time to move bytes; 0 = off",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::dump_iter>,
     .no_effect = {alone},
     .needs_steps = true},
    {.name = "comm_calibrate",
     .help =
         "measure links and memory before the first step, for the choice of algorithms: auto = "
         "where --comm_calibration_file has nothing yet; off = take usual speeds; force = always",
     .member = &at<&Config::comm, &CommFlags::calibrate>,
     .no_effect = {alone},
     .needs_steps = true},
    {.name = "comm_calibration_file",
     .help = "where measured speeds are kept, for the next run with as many ranks on as many hosts",
     .member = &at<&Config::comm, &CommFlags::calibration_file>,
     .no_effect = {alone}},
    {.name = "comm_host_gbps",
     .help = "10^9 bytes a second of a host's link, instead of what is measured or assumed",
     .range = at_least(1e-6),
     .member = &at<&Config::comm, &CommFlags::host_gbps>,
     .no_effect = {alone}},
    {.name = "comm_rank_gbps",
     .help = "the same of a link inside a host",
     .range = at_least(1e-6),
     .member = &at<&Config::comm, &CommFlags::rank_gbps>,
     .no_effect = {alone}},
    {.name = "comm_numa_gbps",
     .help = "10^9 bytes a second at which a rank reads and writes memory of another NUMA node in "
             "sums, instead of what is measured or assumed",
     .range = at_least(1e-6),
     .member = &at<&Config::comm, &CommFlags::numa_gbps>,
     .no_effect = {alone}},
    {.name = "comm_numa_nodes",
     .help =
         "the NUMA node of each rank of a host, for experiments: a list such as 0,0,1,1 that is "
         "repeated for all ranks; 0 = one node; unset = as the ranks' processors are found",
     .member = &at<&Config::comm, &CommFlags::numa_nodes>,
     .no_effect = {alone}},
    {.name = "comm_latency_us",
     .help = "microseconds of a message, instead of what is measured or assumed",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::latency_us>,
     .no_effect = {alone}},
    {.name = "comm_start_timeout_s",
     .help = "seconds for which a rank waits for the others in MPI_Init, MPI_Comm_dup and "
             "MPI_Finalize; then it says for whom and ends with 75",
     .range = at_least(0.01),
     .member = &at<&Config::comm, &CommFlags::start_timeout_s>,
     .no_effect = {alone}},
    {.name = "comm_peer_timeout_s",
     .help = "seconds of silence after which a rank is lost: of one on another host, or of one "
             "that is stopped; a rank of this host that has ended is noticed at once",
     .range = at_least(0.01),
     .member = &at<&Config::comm, &CommFlags::peer_timeout_s>,
     .no_effect = {alone}},
    {.name = "comm_heartbeat_ms",
     .help = "milliseconds between two heartbeats to ranks of other hosts: a rank sends them to as "
             "many as the number of hosts has bits, and to the one it waits for",
     .range = at_least(1),
     .member = &at<&Config::comm, &CommFlags::heartbeat_ms>,
     .no_effect = {alone}},
    {.name = "comm_stall_warn_s",
     .help = "seconds of waiting for a rank after which a line says so, and again after as many; "
             "0 = never",
     .range = at_least(0),
     .member = &at<&Config::comm, &CommFlags::stall_warn_s>,
     .no_effect = {alone, by_others}},
    {.name = "comm_stall_abort_s",
     .help = "seconds for which ranks wait for one that sends heartbeats but does not come",
     .range = at_least(0.01),
     .member = &at<&Config::comm, &CommFlags::stall_abort_s>,
     .no_effect = {alone}},
    {.name = "comm_fault",
     .help =
         "for tests: the fault to inject into a rank in its reduction of a bucket, after so many "
         "messages "
         "and meetings of it: rank=R,what=exit|kill|stop|corrupt|delay:200ms[,step=S]"
         "[,bucket=B][,after=N]; or a bit that flips in a tensor right after it was computed in "
         "a global step: rank=R,what=flip[,step=S][,tensor=NAME]",
     .member = &at<&Config::comm, &CommFlags::fault>,
     .no_effect = {alone_without_flip,
                   {[](const Config& c) {
                      return c.comm.backend == CommBackend::mpi && !flips_a_bit(c.comm.fault);
                    },
                    "--comm_fault has no effect with --comm_backend=mpi, whose messages are MPI's "
                    "own"}},
     .needs_steps = true},
    {.name = "simulate_ranks",
     .help = "with --simulate, predict the step of so many ranks too; a list",
     .member = &at<&Config::comm, &CommFlags::simulate_ranks>},
    {.name = "simulate_ranks_per_host",
     .help = "ranks that share a host's link there",
     .range = at_least(1),
     .member = &at<&Config::comm, &CommFlags::simulate_ranks_per_host>,
     .no_effect = {{[](const Config& c) { return c.comm.simulate_ranks.empty(); },
                    "--simulate_ranks_per_host acts with --simulate_ranks only"}}},
    {.name = "simulate_ranks_jitter",
     .help = "standard deviation of a rank's step that is assumed there, as a share of the step: "
             "all wait for the slowest of n ranks, which takes sqrt(2 ln n) of these longer",
     .range = between(0, 1),
     .member = &at<&Config::comm, &CommFlags::simulate_ranks_jitter>,
     .no_effect = {{[](const Config& c) { return c.comm.simulate_ranks.empty(); },
                    "--simulate_ranks_jitter acts with --simulate_ranks only"}}},
    {.name = "simulate_ranks_slowdown",
     .help = "share by which computing is assumed to take longer while an exchange runs beside it "
             "and takes processors and memory bandwidth",
     .range = between(0, 1),
     .member = &at<&Config::comm, &CommFlags::simulate_ranks_slowdown>,
     .no_effect = {{[](const Config& c) { return c.comm.simulate_ranks.empty(); },
                    "--simulate_ranks_slowdown acts with --simulate_ranks only"}}},
};

constexpr Flag allreduce_rows[] = {
    {"iters_per_step", integer, "5", rejected, "the program all_reduce_benchmark takes it",
     "reductions per timed step of the all-reduce benchmark", at_least(1)},
};

}  // namespace

std::vector<FlagGroup> parallel_flags() {
  return {{"reduce", "Variables and gradients on several devices", reduce_rows},
          {"comm", "Exchange of gradients", comm_rows},
          {"dist", "Several processes", dist_rows},
          {"ibm", "Of IBM's variant", ibm_rows},
          {"allreduce_bench", "All-reduce benchmark", allreduce_rows}};
}

}  // namespace cnn::bench
