#include "runtime/program.h"

#include <string>
#include <utility>

#include "runtime/error.h"

namespace cnn {
namespace {

Signature signature_of(const Graph& graph, const Node& node) {
  Signature signature;
  for (const TensorId input : node.inputs) {
    signature.in.push_back(graph.info(input).desc);
  }
  for (const TensorId output : node.outputs) {
    signature.out.push_back(graph.info(output).desc);
  }
  return signature;
}

std::string name_of_node(const Graph& graph, std::size_t node) {
  return to_string(graph, Compute{NodeId{static_cast<std::uint32_t>(node)}});
}

}  // namespace

std::vector<KernelSpec> describe(const Graph& graph, const KernelTable& table) {
  std::vector<KernelSpec> specs;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Signature signature = signature_of(graph, graph.nodes()[n]);
    auto spec = table.describe(*graph.nodes()[n].op, signature);
    if (!spec) {
      throw Error("no kernel of this backend runs " + name_of_node(graph, n) + " on " +
                  to_string(signature));
    }
    if (spec->in != signature.in || spec->out != signature.out) {
      throw Error("the kernel of " + name_of_node(graph, n) + " takes " +
                  to_string(Signature{spec->in, spec->out}) + ", but the graph has " +
                  to_string(signature) + ": assign layouts first");
    }
    specs.push_back(std::move(*spec));
  }
  return specs;
}

StepPlan make_plan(std::shared_ptr<const Graph> graph, std::vector<KernelSpec> specs,
                   Schedule schedule, std::size_t enough) {
  check(specs.size() == graph->nodes().size(), "make_plan: one kernel spec for each node, please");
  std::vector<std::size_t> workspace;
  workspace.reserve(specs.size());
  for (const KernelSpec& spec : specs) {
    workspace.push_back(spec.workspace);
  }
  StepPlan plan{.graph = std::move(graph),
                .specs = std::move(specs),
                .schedule = std::move(schedule),
                .memory = {}};
  plan.memory = plan_memory(*plan.graph, plan.schedule, workspace, enough);
  const Schedule given = plan.schedule;
  link(*plan.graph, plan.schedule, plan.memory);
  verify(plan, given);
  return plan;
}

StepPlan make_plan(std::shared_ptr<const Graph> graph, const KernelTable& table) {
  std::vector<KernelSpec> specs = describe(*graph, table);
  Schedule schedule = make_schedule(*graph);
  return make_plan(std::move(graph), std::move(specs), std::move(schedule));
}

Program make_program(StepPlan plan, const KernelTable& table) {
  Program program{.plan = std::move(plan), .kernels = {}};
  const Graph& graph = *program.plan.graph;
  for (const Node& node : graph.nodes()) {
    program.kernels.push_back(table.make(*node.op, signature_of(graph, node)));
  }
  return program;
}

}  // namespace cnn
