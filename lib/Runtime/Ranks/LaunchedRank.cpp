//===- LaunchedRank.cpp - The rank of this process in its job -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchedRank.h"

#include "tessera/Runtime/Execution/Executor.h"

#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

namespace tessera::runtime {

namespace {

constexpr int64_t kMostRanks = 1 << 20;
const std::string kLoopback = "127.0.0.1";
constexpr int64_t kDefaultPort = 29500;

enum Field { rankField, sizeField, localField, localSizeField, numFields };

/// Variables of each field; messages name the first of several.
struct Names {
  const char *set;
  std::array<std::vector<const char *>, numFields> fields;
};

const std::vector<Names> &namesOfSets() {
  static const std::vector<Names> sets = {
      {"TESSERA_*",
       {{{"TESSERA_RANK"},
         {"TESSERA_WORLD_SIZE", "TESSERA_SIZE"},
         {"TESSERA_LOCAL_RANK"},
         {"TESSERA_LOCAL_WORLD_SIZE"}}}},
      {"RANK", {{{"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}}}},
      {"OMPI_*",
       {{{"OMPI_COMM_WORLD_RANK"},
         {"OMPI_COMM_WORLD_SIZE"},
         {"OMPI_COMM_WORLD_LOCAL_RANK"},
         {"OMPI_COMM_WORLD_LOCAL_SIZE"}}}},
      {"PMI_*",
       {{{"PMI_RANK", "PMIX_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID"}, {"MPI_LOCALNRANKS"}}}},
      {"SLURM_*",
       {{{"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, {"SLURM_LOCALID"}, {}}}},
  };
  return sets;
}

struct Value {
  std::string name;
  int64_t value = 0;
};
using Values = std::array<std::optional<Value>, numFields>;

bool isComplete(const Values &values) {
  return values[rankField] && values[sizeField];
}

Expected<int64_t> number(const std::string &name, const std::string &text) {
  bool digits = !text.empty() && text.size() <= 7;
  for (char c : text)
    digits &= std::isdigit(static_cast<unsigned char>(c)) != 0;
  int64_t value = digits ? std::atoll(text.c_str()) : 0;
  if (digits && value <= kMostRanks)
    return value;
  return Status::error(name + " is '" + text + "'; expected an integer from 0 to " +
                       std::to_string(kMostRanks));
}

Status agree(const Value &one, const Value &other) {
  if (one.value == other.value)
    return {};
  return Status::error(one.name + " is " + std::to_string(one.value) + " and " + other.name +
                       " is " + std::to_string(other.value) +
                       "; unset the one that this job's launcher did not set");
}

Expected<Values> valuesOf(const Names &names, Environment get) {
  Values found;
  for (int field = 0; field < numFields; ++field)
    for (const char *name : names.fields[field])
      if (const char *text = get(name)) {
        auto value = number(name, text);
        if (!value)
          return value.status();
        Value here{name, *value};
        if (!found[field])
          found[field] = here;
        TESSERA_RETURN_IF_ERROR(agree(*found[field], here));
      }
  if (!found[rankField] && found[sizeField] && found[sizeField]->value == 1)
    found[rankField] = Value{found[sizeField]->name, 0};
  return found;
}

/// Slurm's `2(x3),1`: 2, 2, 2, 1.
Expected<std::vector<int64_t>> tasksPerNode(const std::string &name, const std::string &text) {
  auto wrong =
      Status::error(name + " is '" + text + "'; expected processes per node, such as 2(x3),1");
  std::vector<int64_t> counts;
  auto digits = [&](size_t &at) -> int64_t {
    int64_t value = 0;
    size_t begin = at;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at)
      if (at - begin < 7)
        value = value * 10 + (text[at] - '0');
    return at > begin && at - begin <= 7 ? value : -1;
  };
  for (size_t at = 0;; ++at) { // after a comma
    int64_t tasks = digits(at), nodes = 1;
    if (at + 1 < text.size() && text[at] == '(' && text[at + 1] == 'x') {
      at += 2;
      nodes = digits(at);
      if (at >= text.size() || text[at++] != ')')
        return wrong;
    }
    if (tasks < 1 || nodes < 0 || static_cast<int64_t>(counts.size()) + nodes > kMostRanks)
      return wrong;
    counts.insert(counts.end(), static_cast<size_t>(std::max<int64_t>(nodes, 1)), tasks);
    if (at == text.size())
      return counts;
    if (text[at] != ',')
      return wrong;
  }
}

/// SLURM_*, in a process that srun started; in a batch script they describe the whole job.
Expected<Values> slurmValues(Environment get) {
  if (get("SLURM_JOB_ID") && !get("SLURM_STEP_ID") && !get("SLURM_STEPID"))
    return Values();
  Names names = namesOfSets().back();
  if (get("SLURM_STEP_NUM_TASKS")) // SLURM_NTASKS may be the allocation's
    names.fields[sizeField].resize(1);
  auto found = valuesOf(names, get);
  if (!found)
    return found;
  bool any = false;
  for (auto &each : *found)
    any |= each.has_value();
  for (const char *name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const char *text = get(name);
    if (!any || !text)
      continue;
    auto counts = tasksPerNode(name, text);
    if (!counts)
      return counts.status();
    const char *nodeText = get("SLURM_NODEID");
    auto node = number("SLURM_NODEID", nodeText ? nodeText : "0");
    if (!node)
      return node.status();
    if (*node >= static_cast<int64_t>(counts->size()))
      return Status::error("SLURM_NODEID is " + std::to_string(*node) + " and " + name + " '" +
                           text + "' lists " + std::to_string(counts->size()) + " nodes");
    (*found)[localSizeField] = Value{name, (*counts)[static_cast<size_t>(*node)]};
    break;
  }
  return found;
}

/// A rank without a size, or a size without a rank, if no set is complete.
Status refusePartial(const std::vector<Values> &sets) {
  for (size_t i = 0; i < sets.size(); ++i)
    for (auto [field, missing] :
         {std::pair(rankField, sizeField), std::pair(sizeField, rankField)}) {
      const auto &given = sets[i][field];
      if (given && given->name != "PMIX_RANK") // PMIx gives no size
        return Status::error(given->name + " is " + std::to_string(given->value) + " and " +
                             namesOfSets()[i].fields[missing].front() +
                             " is not set; a process needs both");
    }
  return {};
}

Status checkBelow(const Values &values, Field rank, Field size, const char *rankName,
                  const char *sizeName) {
  if (!values[rank] || !values[size] || values[rank]->value < values[size]->value)
    return {};
  auto name = [](const Value &value, const char *otherwise) {
    return value.name.empty() ? std::string(otherwise) : value.name;
  };
  return Status::error(name(*values[rank], rankName) + " is " +
                       std::to_string(values[rank]->value) + " and " +
                       name(*values[size], sizeName) + " is " +
                       std::to_string(values[size]->value) + "; ranks are counted from 0");
}

} // namespace

Expected<LaunchedProcess> launchedProcess(Environment get) {
  const std::vector<Names> &names = namesOfSets();
  std::vector<Values> found;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    auto values = valuesOf(names[i], get);
    if (!values)
      return values.status();
    found.push_back(*values);
  }
  size_t winner = 0;
  while (winner < found.size() && !isComplete(found[winner]))
    ++winner;
  if (winner < found.size()) {
    for (const Values &values : found)
      for (int field = 0; field < numFields; ++field)
        if (values[field] && found[winner][field])
          TESSERA_RETURN_IF_ERROR(agree(*found[winner][field], *values[field]));
  } else {
    auto slurm = slurmValues(get);
    if (!slurm)
      return slurm.status();
    found.push_back(*slurm);
    if (!isComplete(found[winner])) {
      TESSERA_RETURN_IF_ERROR(refusePartial(found));
      return LaunchedProcess();
    }
  }
  Values values = found[winner];
  for (Field field : {localField, localSizeField}) // missing in the winner and given by another
    for (const Values &other : found)
      if (!values[field] && other[field])
        values[field] = Value{"", other[field]->value};
  // A local size without a local rank: nodes are equal, with consecutive ranks.
  if (int64_t local = values[localSizeField] ? values[localSizeField]->value : 0;
      !values[localField] && local > 0 && values[sizeField]->value % local == 0 &&
      winner + 1 < names.size())
    values[localField] = Value{"", values[rankField]->value % local};
  TESSERA_RETURN_IF_ERROR(checkBelow(values, rankField, sizeField, "rank", "size"));
  TESSERA_RETURN_IF_ERROR(
      checkBelow(values, localField, localSizeField, "local_rank", "local_size"));
  LaunchedProcess result{{values[rankField]->value, values[sizeField]->value, 0},
                         values[localField].has_value(),
                         values[localSizeField] ? values[localSizeField]->value : 0,
                         names[winner].set};
  result.rank.local = result.saysLocal ? values[localField]->value : result.rank.rank;
  if (result.localSize > result.rank.size)
    return Status::error("the host has " + std::to_string(result.localSize) +
                         " processes, but the job only " + std::to_string(result.rank.size));
  return result;
}

static const char *fromProcess(const char *name) {
  return std::getenv(name);
}

Expected<LaunchedRank> launchedRank() {
  auto process = launchedProcess(fromProcess);
  if (!process)
    return process.status();
  return process->rank;
}

/// A host's name or address; brackets around an IPv6 address are removed.
static Expected<std::string> hostIn(const std::string &name, const std::string &text) {
  bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  std::string bare = bracketed ? text.substr(1, text.size() - 2) : text;
  if (!bare.empty() && bare.find_first_of(" \t\r\n[]/") == std::string::npos)
    return bare;
  return Status::error(name + " is '" + text +
                       "'; expected a host name, an IPv4 address, or an IPv6 address, "
                       "optionally in brackets");
}

static Expected<int64_t> portIn(const std::string &name, const std::string &text) {
  bool digits = !text.empty() && text.size() <= 5;
  for (char c : text)
    digits &= std::isdigit(static_cast<unsigned char>(c)) != 0;
  int64_t port = digits ? std::atoll(text.c_str()) : 0;
  if (port >= 1 && port <= 65535)
    return port;
  return Status::error(name + " is '" + text + "'; expected a port from 1 to 65535");
}

/// The first of Slurm's list of hosts: `gpu[03-07,9],login` is gpu03.
static std::string firstHost(const std::string &nodes) {
  size_t end = nodes.find_first_of("[,");
  std::string host = nodes.substr(0, end);
  if (end == std::string::npos || nodes[end] == ',')
    return host;
  size_t close = nodes.find(']', end), digit = end + 1;
  while (digit < nodes.size() && std::isdigit(static_cast<unsigned char>(nodes[digit])))
    host += nodes[digit++];
  if (close != std::string::npos)
    host += nodes.substr(close + 1, nodes.find(',', close) - close - 1);
  return host;
}

Expected<std::string> jobAddress(Environment get) {
  if (const char *text = get("TESSERA_RENDEZVOUS")) {
    if (std::strncmp(text, "file:", 5) == 0 && text[5])
      return std::string(text);
    return Status::error("TESSERA_RENDEZVOUS is '" + std::string(text) + "'; expected file:PATH");
  }
  std::string host;
  int64_t port = 0;
  for (const std::string prefix : {"TESSERA_", ""}) {
    std::string name = prefix + "MASTER_ADDR";
    if (const char *text = get(name.c_str()); text && host.empty()) {
      auto found = hostIn(name, text);
      if (!found)
        return found;
      host = *found;
    }
    name = prefix + "MASTER_PORT";
    if (const char *text = get(name.c_str()); text && port == 0) {
      auto found = portIn(name, text);
      if (!found)
        return found.status();
      port = *found;
      const char *agent = get("TORCHELASTIC_USE_AGENT_STORE");
      if (prefix.empty() && agent && std::strcmp(agent, "True") == 0)
        port += port < 65535 ? 1 : -1;
    }
  }
  for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const char *text = get(name); text && host.empty())
      if (auto process = launchedProcess(get); process && process->source == "SLURM_*")
        host = firstHost(text);
  return (host.empty() ? kLoopback : host) + " " + std::to_string(port ? port : kDefaultPort);
}

Expected<std::string> jobAddress() {
  return jobAddress(fromProcess);
}

Expected<double> timeoutOf(const BackendOptions &options) {
  if (options.timeoutSeconds > 0)
    return options.timeoutSeconds;
  const char *text = std::getenv("TESSERA_TIMEOUT");
  if (!text)
    return kDefaultTimeout;
  char *end = nullptr;
  double seconds = std::strtod(text, &end);
  if (end != text && !*end && seconds > 0 && seconds <= 1e6)
    return seconds;
  return Status::error("TESSERA_TIMEOUT is '" + std::string(text) +
                       "'; expected a number of seconds above 0");
}

} // namespace tessera::runtime
