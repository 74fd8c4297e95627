//===- ProblemJson.cpp - Reading a problem from JSON ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parser for large tables of numbers: one pass, no tree. Every message has the line
// and the field.
//
//===----------------------------------------------------------------------===//

#include "tessera/Solver/Problem.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>

namespace tessera::solver {
namespace {

/// Problem files have no values nested deeper than this.
constexpr int maxDepth = 64;
/// Larger costs and bytes could add up to infinity.
constexpr double largestNumber = 1e100;

class Reader {
public:
  Reader(const std::string &text, const std::string &file) : text(text), file(file) {}

  Expected<Problem> read();

private:
  /// Records the first fault; every reading function returns false after one.
  bool fail(const std::string &what);
  void skipSpace();
  bool expect(char c, const char *what);
  bool literal(const char *word);
  bool string(std::string &value);
  bool number(double &value);
  bool integer(int64_t &value);
  bool numbers(std::vector<double> &values);
  bool integers(std::vector<int64_t> &values);
  bool skipValue(int depth = 0);
  /// Reads items separated by commas until `close`; `item` may add to the path.
  bool sequence(char close, const char *expected, const std::function<bool(int64_t)> &item);
  /// Calls `item` for each element, with its index in the path.
  bool array(const std::function<bool(int64_t)> &item);
  bool object(const std::function<bool(const std::string &)> &member);

  bool problemField(const std::string &name);
  bool node();
  bool table();

  const std::string &text, &file;
  size_t at = 0;
  std::string path, message;
  Problem problem;
  bool hasVersion = false, hasNodes = false;
};

bool Reader::fail(const std::string &what) {
  if (message.empty()) {
    auto line = 1 + std::count(text.begin(), text.begin() + std::min(at, text.size()), '\n');
    message = file + ":" + std::to_string(line) + ": " + (path.empty() ? "" : path + ": ") + what;
  }
  return false;
}

void Reader::skipSpace() {
  while (at < text.size() && std::strchr(" \t\r\n", text[at]) && text[at])
    ++at;
}

bool Reader::expect(char c, const char *what) {
  skipSpace();
  if (at >= text.size() || text[at] != c)
    return fail(std::string("expected ") + what +
                (at >= text.size() ? " at the end of the file" : ""));
  ++at;
  return true;
}

bool Reader::literal(const char *word) {
  if (text.compare(at, std::strlen(word), word) != 0)
    return fail("expected a value");
  at += std::strlen(word);
  return true;
}

bool Reader::string(std::string &value) {
  if (!expect('"', "a string"))
    return false;
  value.clear();
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] != '\\') {
      value += text[at];
      continue;
    }
    // Names are only displayed: other escapes stay as written.
    if (++at >= text.size())
      break;
    char c = text[at];
    value += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
  return expect('"', "the end of a string");
}

bool Reader::number(double &value) {
  skipSpace();
  auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return fail("the number is out of range; expected a double");
  // from_chars accepts "inf" and "nan" too, which JSON does not have.
  if (error != std::errc() || !std::isfinite(value))
    return fail("expected a finite number");
  if (std::abs(value) > largestNumber)
    return fail("the number is out of range; sums of costs and bytes must be finite, so that each "
                "is at most 1e100");
  at = end - text.data();
  return true;
}

bool Reader::integer(int64_t &value) {
  double read;
  if (!number(read))
    return false;
  if (read != std::floor(read) || std::abs(read) > 9e15)
    return fail("expected a whole number");
  value = static_cast<int64_t>(read);
  return true;
}

bool Reader::sequence(char close, const char *expected, const std::function<bool(int64_t)> &item) {
  skipSpace();
  if (at < text.size() && text[at] == close)
    return ++at, true;
  size_t length = path.size();
  for (int64_t i = 0;; ++i) {
    if (!item(i))
      return false;
    path.resize(length);
    skipSpace();
    if (at >= text.size() || text[at] != ',')
      return expect(close, expected);
    ++at;
  }
}

bool Reader::array(const std::function<bool(int64_t)> &item) {
  return expect('[', "a list") && sequence(']', "',' or ']'", [&](int64_t i) {
           path += '[' + std::to_string(i) + ']';
           return item(i);
         });
}

bool Reader::object(const std::function<bool(const std::string &)> &member) {
  std::string name;
  std::set<std::string> seen;
  return expect('{', "an object") && sequence('}', "',' or '}'", [&](int64_t) {
           if (!string(name) || !expect(':', "':'"))
             return false;
           path += (path.empty() ? "" : ".") + name;
           if (!seen.insert(name).second)
             return fail("is given twice");
           return member(name);
         });
}

bool Reader::numbers(std::vector<double> &values) {
  return array([&](int64_t) { return number(values.emplace_back()); });
}

bool Reader::integers(std::vector<int64_t> &values) {
  return array([&](int64_t) { return integer(values.emplace_back()); });
}

bool Reader::skipValue(int depth) {
  if (depth > maxDepth)
    return fail("is nested deeper than " + std::to_string(maxDepth));
  skipSpace();
  char c = at < text.size() ? text[at] : '\0';
  std::string ignored;
  double value;
  if (c == '{')
    return object([&](const std::string &) { return skipValue(depth + 1); });
  if (c == '[')
    return array([&](int64_t) { return skipValue(depth + 1); });
  if (c == '"')
    return string(ignored);
  if (c == 't' || c == 'f' || c == 'n')
    return literal(c == 't' ? "true" : c == 'f' ? "false" : "null");
  return number(value);
}

bool Reader::node() {
  Node &node = problem.nodes.emplace_back();
  bool good = object([&](const std::string &name) {
    if (name == "name")
      return string(node.name);
    if (name == "layer")
      return integer(node.layer);
    if (name == "cost")
      return numbers(node.cost);
    if (name == "memory")
      return numbers(node.memory);
    if (name == "axes") {
      Coordinates::List axes;
      bool isRead = array([&](int64_t) { return integers(axes.emplace_back()); });
      node.coordinates = std::move(axes);
      return isRead;
    }
    if (name == "default")
      return integer(node.standard);
    return skipValue();
  });
  return good && (!node.cost.empty() || fail("has no 'cost'; a node has one cost a strategy"));
}

bool Reader::table() {
  EdgeTable &table = problem.tables.emplace_back();
  return array([&](int64_t row) {
    size_t before = table.cost.size();
    if (!numbers(table.cost))
      return false;
    auto columns = static_cast<int64_t>(table.cost.size() - before);
    if (row == 0)
      table.columns = columns;
    table.rows = row + 1;
    return columns == table.columns ||
           fail("has " + std::to_string(columns) + " numbers, row 0 " +
                std::to_string(table.columns) + "; a table is a rectangle");
  });
}

bool Reader::problemField(const std::string &name) {
  if (name == "version") {
    int64_t version;
    hasVersion = true;
    return integer(version) &&
           (version == 1 || fail(std::to_string(version) + " is not known; this reads version 1"));
  }
  if (name == "nodes") {
    hasNodes = true;
    return array([&](int64_t) { return node(); });
  }
  if (name == "tables")
    return array([&](int64_t) { return table(); });
  std::vector<int64_t> list;
  if (name == "edges")
    return array([&](int64_t) {
      list.clear();
      if (!integers(list))
        return false;
      if (list.size() != 3)
        return fail("has " + std::to_string(list.size()) +
                    " numbers; an edge is [node, node, table]");
      problem.edges.push_back({list[0], list[1], list[2]});
      return true;
    });
  if (name == "pins")
    return array([&](int64_t) {
      list.clear();
      if (!integers(list))
        return false;
      if (list.size() != 2)
        return fail("has " + std::to_string(list.size()) + " numbers; a pin is [node, strategy]");
      problem.pins.push_back({list[0], list[1]});
      return true;
    });
  return skipValue();
}

Expected<Problem> Reader::read() {
  bool good = object([&](const std::string &name) { return problemField(name); });
  skipSpace();
  if (good && at < text.size())
    good = fail("text follows the problem");
  if (good && !hasVersion)
    good = fail("'version' is missing; this reads version 1");
  if (good && !hasNodes)
    good = fail("'nodes' is missing; a problem has nodes");
  if (!good)
    return Error{message};
  if (std::string fault = verify(problem); !fault.empty())
    return Error{file + ": " + fault};
  return std::move(problem);
}

} // namespace

Expected<Problem> parseProblem(const std::string &text, const std::string &file) {
  return Reader(text, file).read();
}

Expected<Problem> readProblem(const std::string &file) {
  std::ifstream stream;
  if (file != "-")
    stream.open(file, std::ios::binary);
  std::istream &in = file == "-" ? std::cin : stream;
  std::ostringstream content;
  if (in && in.peek() != std::char_traits<char>::eof())
    content << in.rdbuf();
  if (!in)
    return Error{"cannot read '" + file +
                 "'; expected a file with a problem, or - for standard input"};
  return parseProblem(content.str(), file == "-" ? "<stdin>" : file);
}

} // namespace tessera::solver
