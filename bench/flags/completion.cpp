#include "bench/flags/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

#include "bench/flags/flag_table.h"
#include "bench/flags/help_parts.h"

namespace cnn::bench {
namespace {

// The function takes the word to complete from the whole line, because bash splits words at '='.
constexpr std::string_view completion_script = R"bash(# bash completion for cnn_benchmarks
_cnn_benchmarks() {{
  local line=${{COMP_LINE:0:COMP_POINT}} prefix= values=
  local word=${{line##*[[:space:]]}}
  local flag=${{word%%=*}} value=${{word#*=}}
  COMPREPLY=()
  case $word in
    --*=*)
      case $flag in
{}      esac
      [[ $COMP_WORDBREAKS == *=* ]] || prefix=$flag=
      if [[ -n $values ]]; then
        mapfile -t COMPREPLY < <(compgen -P "$prefix" -S ' ' -W "$values" -- "$value")
      else
        mapfile -t COMPREPLY < <(compgen -P "$prefix" -f -- "$value")
      fi
      ;;
    -*)
      mapfile -t COMPREPLY < <(compgen -W "{}" -- "$word"; compgen -S ' ' -W "{}" -- "$word")
      ;;
  esac
}}
complete -o nospace -F _cnn_benchmarks cnn_benchmarks
)bash";

std::vector<std::string> values_of(const Flag& flag) {
  std::vector<std::string> values;
  for (std::string& word : flag.known != nullptr ? flag.known() : choices_of(flag)) {
    if (!word.empty()) {
      values.push_back(std::move(word));
    }
  }
  return values;
}

std::string switch_for(const Flag& flag) {
  return fmt::format("--{}{}", default_value(flag) == Plain(true) ? "no" : "", flag.name);
}

}  // namespace

std::string bash_completion() {
  std::vector<std::string> with_value;
  std::vector<std::string> switches;
  std::string cases;
  for (const FlagGroup& group : flag_groups()) {
    for (const Flag& flag : group.flags) {
      if (!acts(flag) || !flag.renamed_to.empty()) {
        continue;
      }
      if (type_name(flag) == "bool") {
        switches.push_back(switch_for(flag));
        continue;
      }
      with_value.push_back(fmt::format("--{}=", flag.name));
      if (const std::vector<std::string> values = values_of(flag); !values.empty()) {
        cases += fmt::format("        --{}) values='{}' ;;\n", flag.name, fmt::join(values, " "));
      }
    }
  }
  return fmt::format(completion_script, cases, fmt::join(with_value, " "),
                     fmt::join(switches, " "));
}

}  // namespace cnn::bench
