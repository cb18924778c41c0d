#include "bench/flags/flag_table.h"

namespace cnn::bench {

namespace {

using enum Treatment;
using enum Type;

constexpr std::string_view one_device =
    "one device computes, so nothing is exchanged; leave it out";
constexpr std::string_view by_mpirun =
    "mpirun starts the processes and knows the hosts: mpirun -np N -H host1:n,host2:n "
    "cnn_benchmarks --variable_update=distributed_replicated";
constexpr Flag reduce_rows[] = {
    {.name = "variable_update",
     .help = "how devices share variables and gradients; on one device the first three are equal",
     .member = &at<&Config::variable_update>},
    {"all_reduce_spec", text, "None", later, one_device,
     "which reduction algorithm serves which gradient size"},
    {"hierarchical_copy", boolean, "False", later, one_device,
     "reduce over two halves of the devices first"},
    {"network_topology",
     text,
     "dgx1",
     later,
     one_device,
     "machine that --hierarchical_copy assumes",
     {},
     "dgx1|gcp_v100"},
    {"gradient_repacking", integer, "0", later, one_device,
     "join all gradients and cut them into this many pieces; 0 = off", at_least(0)},
    {"compact_gradient_transfer", boolean, "True", later, one_device,
     "send gradients in 16 bits when computing in 16 bits"},
    {"variable_consistency",
     text,
     "strong",
     later,
     one_device,
     "relaxed applies the gradients of the step before",
     {},
     "strong|relaxed"},
    {"staged_vars", boolean, "False", rejected, "each step uses the newest variables; leave it out",
     "compute with the variables of the step before"},
    {"agg_small_grads_max_bytes", integer, "0", later, one_device,
     "gradients up to this size travel together; 0 = off", at_least(0)},
    {"agg_small_grads_max_group", integer, "10", later, one_device,
     "how many gradients may travel together", at_least(0)},
    {"allreduce_merge_scope", integer, "1", later, one_device, "gradients of one grouped launch",
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
    {"server_protocol", text, "grpc", accepted, "there are no TensorFlow servers here",
     "protocol of TensorFlow's servers"},
    {"cross_replica_sync", boolean, "True", rejected,
     "all ranks make each step together, so that runs can be repeated; leave it out",
     "workers wait for each other"},
    {.name = "horovod_device",
     .help = "where Horovod would reduce: for the header; ranks reduce where they compute",
     .choices = "cpu|gpu|",
     .member = &at<&Config::report, &ReportOptions::horovod_device>},
    {.name = "comm_transport",
     .help =
         "how ranks reach one another: auto = by shared memory within a host and by MPI between "
         "hosts; mpi = by MPI everywhere",
     .member = &at<&Config::comm, &CommFlags::transport>},
    {.name = "comm_backend",
     .help =
         "who adds up the gradients of several processes: ring = this program, by the algorithm "
         "that is the fastest; mpi = MPI_Iallreduce, to compare",
     .member = &at<&Config::comm, &CommFlags::backend>},
};

constexpr Flag ibm_rows[] = {
    {"ddl_options", text, "", accepted, "IBM's distributed library is not used here",
     "topology of IBM's distributed library"},
    {.name = "image_size",
     .help = "side of the square input in pixels; unset = the model's own",
     .range = at_least(1),
     .member = &at<&Config::model, &ModelOptions::image_size>},
};

constexpr Flag allreduce_rows[] = {
    {"iters_per_step", integer, "5", later, "this program trains networks; leave it out",
     "reductions per timed step of the all-reduce benchmark", at_least(1)},
};

}  // namespace

std::vector<FlagGroup> parallel_flags() {
  return {{"reduce", "Variables and gradients on several devices", reduce_rows},
          {"dist", "Several processes", dist_rows},
          {"ibm", "Of IBM's variant", ibm_rows},
          {"allreduce_bench", "All-reduce benchmark", allreduce_rows}};
}

}  // namespace cnn::bench
