//===- Problem.h - The problem of a strategy search -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each node has a list of strategies, of which one is chosen; the cost of the plan is
//
//   sum over nodes of cost[choice] + sum over edges of table[choice of from][choice of to]
//
// and its memory is the sum of memory[choice]. The solvers know nothing else: the
// builder of a problem defines the meaning of the numbers. docs/search.md describes the
// file format and contains the proofs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SOLVER_PROBLEM_H
#define TESSERA_SOLVER_PROBLEM_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::solver {

/// An error in an input, in one line, or the reason why no plan exists.
struct Error {
  std::string message;
};

/// A value, or the reason why it could not be computed.
template <typename T> using Expected = std::variant<T, Error>;

/// Each strategy's point in a grid of independent decisions, coarsest first (only equality of the
/// numbers matters). Copies and equal nodes share their data. The JSON form calls them "axes".
class Coordinates {
public:
  using List = std::vector<std::vector<int64_t>>;
  Coordinates() = default;
  Coordinates(List list) : list(std::make_shared<const List>(std::move(list))) {}

  bool empty() const { return !list || list->empty(); }
  size_t size() const { return list ? list->size() : 0; }
  const std::vector<int64_t> &front() const { return list->front(); }
  const std::vector<int64_t> &operator[](size_t strategy) const { return (*list)[strategy]; }
  auto begin() const { return list ? list->data() : nullptr; }
  auto end() const { return begin() + size(); }

private:
  std::shared_ptr<const List> list;
};

/// The choices of a node. Finite costs (seconds), finite non-negative memory (bytes).
struct Node {
  std::string name;
  int64_t layer = -1;         ///< for readers; the solvers find repetition without it
  std::vector<double> cost;   ///< by strategy
  std::vector<double> memory; ///< by strategy; empty: all zero
  Coordinates coordinates;    ///< empty if unknown: then only costs distinguish strategies
  /// The choice of `Mode::completion` for nodes that are not connected to a pinned or annotated
  /// node.
  int64_t standard = 0;
  bool isAnnotated = false; ///< the user annotated it; its strategies respect the annotation

  int64_t numStrategies() const { return static_cast<int64_t>(cost.size()); }
  double memoryOf(int64_t strategy) const { return memory.empty() ? 0 : memory[strategy]; }
};

/// Finite costs of an edge, row-major: rows are strategies of `from`, columns of `to`. Equal tables
/// are stored once.
struct EdgeTable {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> cost;

  double at(int64_t row, int64_t column) const { return cost[row * columns + column]; }
};

/// A cost that depends on the strategies of two nodes: tables[table], whose rows are those of
/// `from`.
struct Edge {
  int64_t from = 0;
  int64_t to = 0; ///< another node
  int64_t table = 0;
};

/// A decision of the user, which every mode respects.
struct Pin {
  int64_t node = 0;
  int64_t strategy = 0;
};

/// Choose one strategy per node so that the sum of all node and edge costs is minimal, within the
/// pins and a limit on the sum of the nodes' memory (docs/search.md).
struct Problem {
  std::vector<Node> nodes;
  std::vector<EdgeTable> tables;
  std::vector<Edge> edges; ///< costs of several edges between two nodes are added
  std::vector<Pin> pins;

  /// Cost of a choice of one strategy per node.
  double cost(const std::vector<int64_t> &choice) const;
  /// Bytes of a choice, added over the nodes.
  double memory(const std::vector<int64_t> &choice) const;
  /// The least memory of a node that its pins allow.
  double leastMemory(int64_t node) const;
  /// By node, the strategy that it is pinned to, or -1.
  std::vector<int64_t> pinned() const;
};

/// The first error of a problem as "FIELD: error; rule", or an empty string. Solvers require a
/// problem without errors.
std::string verify(const Problem &problem);

/// Reads the JSON form. The error is "FILE:LINE: FIELD: error; rule".
Expected<Problem> parseProblem(const std::string &text, const std::string &file);
/// Reads a file, "-" for standard input.
Expected<Problem> readProblem(const std::string &file);

} // namespace tessera::solver

#endif // TESSERA_SOLVER_PROBLEM_H
