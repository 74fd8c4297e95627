//===- Milp.cpp - The problem as a mixed-integer program ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Milp.h"
#include "Modes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

namespace tessera::solver {

/// Numbers equal lines of a table, by position in the domain.
static std::vector<int> classesOf(const EdgeTable &table, bool rows, const Domain &own,
                                  const Domain &other) {
  std::map<std::vector<double>, int> known;
  std::vector<int> result;
  std::vector<double> line;
  for (Index a : own) {
    line.clear();
    for (Index b : other)
      line.push_back(rows ? table.at(a, b) : table.at(b, a));
    result.push_back(known.try_emplace(line, static_cast<int>(known.size())).first->second);
  }
  return result;
}

Milp::Milp(const Source &source, const Domains &domains, double budget) {
  struct Entry {
    int row, column;
    double value;
  };
  std::vector<Entry> entries;
  double largest = 0;
  auto addColumn = [&](double price, std::string name) {
    cost.push_back(price);
    columnNames.push_back(std::move(name));
    largest = std::max(largest, std::abs(price));
    return static_cast<int>(cost.size()) - 1;
  };
  auto addRow = [&](double from, double to) {
    lower.push_back(from);
    upper.push_back(to);
    return static_cast<int>(lower.size()) - 1;
  };
  for (Index i = 0; i < source.numNodes(); ++i) {
    int one = addRow(1, 1);
    firstOf.push_back(static_cast<int>(cost.size()));
    for (Index s : domains.at(i)) {
      const Node &node = source.problem.nodes[i];
      int column = addColumn(node.cost[s], "x" + std::to_string(i) + "_" + std::to_string(s));
      entries.push_back({one, column, 1});
    }
  }
  numInteger = static_cast<int>(cost.size());
  for (size_t e = 0; e < source.pairs.size(); ++e) {
    const Source::Pair &pair = source.pairs[e];
    const EdgeTable &table = *source.tables[pair.table];
    const Domain &us = domains.at(pair.u), &vs = domains.at(pair.v);
    std::vector<int> rowClass = classesOf(table, true, us, vs);
    std::vector<int> columnClass = classesOf(table, false, vs, us);
    int numRows = 1 + *std::max_element(rowClass.begin(), rowClass.end());
    int numColumns = 1 + *std::max_element(columnClass.begin(), columnClass.end());
    std::vector<int> rowSum, columnSum;
    for (int p = 0; p < numRows; ++p)
      rowSum.push_back(addRow(0, 0));
    for (int q = 0; q < numColumns; ++q)
      columnSum.push_back(addRow(0, 0));
    for (int p = 0; p < numRows; ++p)
      for (int q = 0; q < numColumns; ++q) {
        auto a = std::find(rowClass.begin(), rowClass.end(), p) - rowClass.begin();
        auto b = std::find(columnClass.begin(), columnClass.end(), q) - columnClass.begin();
        int column =
            addColumn(table.at(us[a], vs[b]),
                      "y" + std::to_string(e) + "_" + std::to_string(p) + "_" + std::to_string(q));
        entries.push_back({rowSum[p], column, 1});
        entries.push_back({columnSum[q], column, 1});
      }
    for (size_t a = 0; a < us.size(); ++a)
      entries.push_back({rowSum[rowClass[a]], firstOf[pair.u] + static_cast<int>(a), -1});
    for (size_t b = 0; b < vs.size(); ++b)
      entries.push_back({columnSum[columnClass[b]], firstOf[pair.v] + static_cast<int>(b), -1});
  }
  if (std::isfinite(budget)) {
    memoryRow = addRow(-std::numeric_limits<double>::infinity(), 1);
    for (Index i = 0; i < source.numNodes(); ++i)
      for (size_t s = 0; s < domains.at(i).size(); ++s)
        if (double bytes = source.problem.nodes[i].memoryOf(domains.at(i)[s]); bytes > 0)
          entries.push_back(
              {memoryRow, firstOf[i] + static_cast<int>(s), bytes / std::max(budget, 1.0)});
  }
  // Solvers have absolute tolerances.
  scale = largest > 0 ? 100 / largest : 1;
  for (double &price : cost)
    price *= scale;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) { return a.column < b.column; });
  start.assign(cost.size() + 1, 0);
  for (const Entry &entry : entries) {
    ++start[entry.column + 1];
    index.push_back(entry.row);
    value.push_back(entry.value);
  }
  for (size_t c = 0; c < cost.size(); ++c)
    start[c + 1] += start[c];
}

std::vector<int64_t> Milp::choiceOf(const Domains &domains,
                                    const std::vector<double> &values) const {
  std::vector<int64_t> choice;
  for (size_t i = 0; i < firstOf.size(); ++i) {
    const Domain &domain = domains.at(static_cast<Index>(i));
    auto first = values.begin() + firstOf[i];
    choice.push_back(domain[std::max_element(first, first + std::ssize(domain)) - first]);
  }
  return choice;
}

bool Milp::write(const std::string &file) const {
  std::ofstream out(file);
  out.precision(17);
  // FREE: fields are separated by spaces; otherwise CBC expects fixed columns.
  out << "* costs are seconds times " << scale << "\nNAME tessera FREE\nROWS\n N cost\n";
  for (size_t r = 0; r < lower.size(); ++r)
    out << (static_cast<int>(r) == memoryRow ? " L r" : " E r") << r << "\n";
  out << "COLUMNS\n MARK0 'MARKER' 'INTORG'\n";
  for (size_t c = 0; c < cost.size(); ++c) {
    if (static_cast<int>(c) == numInteger)
      out << " MARK1 'MARKER' 'INTEND'\n";
    out << " " << columnNames[c] << " cost " << cost[c] << "\n";
    for (int k = start[c]; k < start[c + 1]; ++k)
      out << " " << columnNames[c] << " r" << index[k] << " " << value[k] << "\n";
  }
  if (numInteger == static_cast<int>(cost.size()))
    out << " MARK1 'MARKER' 'INTEND'\n";
  out << "RHS\n";
  for (size_t r = 0; r < upper.size(); ++r)
    if (upper[r] != 0)
      out << " RHS r" << r << " " << upper[r] << "\n";
  out << "BOUNDS\n";
  for (const std::string &name : columnNames)
    out << " UP BND " << name << " 1\n";
  out << "ENDATA\n";
  out.close();
  return static_cast<bool>(out);
}

std::optional<Error> writeMps(const Problem &problem, const Options &options,
                              const std::string &file) {
  if (std::string fault = verify(problem); !fault.empty())
    return Error{fault};
  Source source(problem);
  if (!Milp(source, allStrategies(source), options.memoryBudget).write(file))
    return Error{"cannot write '" + file + "'"};
  return std::nullopt;
}

Expected<Bounded> minimiseByMilp(const Problem &problem, const Options &options,
                                 const Deadline &deadline) {
  Source source(problem);
  Domains domains = allStrategies(source);
  Milp milp(source, domains, options.memoryBudget);
  Bounded best;
  // A solver's tolerance may exceed the budget by a millionth: then repeat with a smaller budget.
  for (int attempt = 0; attempt < 4; ++attempt) {
    Expected<MilpResult> result =
        runMilp(milp, options.solverLibrary, std::max(0.1, deadline.left()));
    if (auto *error = std::get_if<Error>(&result))
      return *error;
    const MilpResult &found = std::get<MilpResult>(result);
    best.stoppedByTime = !found.isDone;
    if (attempt == 0)
      best.bound = found.bound / milp.scale;
    if (found.isInfeasible && attempt == 0)
      return Error{"the solver says that no plan is within the budget"};
    if (found.values.empty())
      break;
    std::vector<int64_t> choice = milp.choiceOf(domains, found.values);
    if (problem.memory(choice) <= options.memoryBudget) {
      best.choice = std::move(choice);
      break;
    }
    milp.upper[milp.memoryRow] -= 2e-6;
  }
  if (best.choice.empty() || best.stoppedByTime) {
    // Return at least the plan and the bound that another mode finds quickly.
    Options other = options;
    other.mode = std::isfinite(options.memoryBudget) ? Mode::dynamic_programming
                                                     : Mode::recursive_programming;
    other.timeLimit = 10;
    Expected<Solution> plan = solve(problem, other);
    if (auto *error = std::get_if<Error>(&plan))
      return *error;
    Solution &quick = std::get<Solution>(plan);
    best.bound = std::max(best.bound, quick.lowerBound);
    if (best.choice.empty() || quick.cost < problem.cost(best.choice))
      best.choice = std::move(quick.choice);
  }
  best.cost = problem.cost(best.choice);
  if (!best.stoppedByTime && best.bound >= best.cost - 1e-6 * std::abs(best.cost))
    best.bound = best.cost;
  return best;
}

} // namespace tessera::solver
