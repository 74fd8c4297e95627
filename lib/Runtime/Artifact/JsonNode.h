//===- JsonNode.h - JSON values with their paths ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_ARTIFACT_JSONNODE_H
#define TESSERA_LIB_RUNTIME_ARTIFACT_JSONNODE_H

#include "tessera/Runtime/Artifact/Program.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace tessera::runtime {

/// Thrown and caught within one file: nothing throws across a public header.
struct ParseError {
  std::string message;
};

/// A JSON value and its path, for messages.
class Node {
public:
  Node(const nlohmann::json &value, std::string path) : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &message) const {
    throw ParseError{path + ": " + message};
  }

  bool has(const char *key) const { return value.is_object() && value.contains(key); }
  Node operator[](const char *key) const {
    if (!value.is_object())
      fail("expected an object");
    auto it = value.find(key);
    if (it == value.end())
      fail(std::string("the field '") + key + "' is missing");
    return {*it, path + "." + key};
  }
  std::vector<Node> list() const {
    if (!value.is_array())
      fail("expected a list");
    std::vector<Node> nodes;
    nodes.reserve(value.size());
    for (size_t i = 0; i < value.size(); ++i)
      nodes.emplace_back(value[i], path + "[" + std::to_string(i) + "]");
    return nodes;
  }
  int64_t integer() const {
    bool fits = value.is_number_integer() &&
                (!value.is_number_unsigned() ||
                 value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()));
    if (!fits)
      fail("expected an integer");
    return value.get<int64_t>();
  }
  bool boolean() const {
    if (!value.is_boolean())
      fail("expected true or false");
    return value.get<bool>();
  }
  std::string text() const {
    if (!value.is_string())
      fail("expected a string");
    return value.get<std::string>();
  }
  double number() const {
    if (value.is_number())
      return value.get<double>();
    std::string spelled = value.is_string() ? value.get<std::string>() : "";
    if (spelled == "inf" || spelled == "-inf")
      return (spelled[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    if (spelled == "nan")
      return std::numeric_limits<double>::quiet_NaN();
    fail("expected a number");
  }
  std::vector<int64_t> integers() const {
    std::vector<int64_t> result;
    for (const Node &node : list())
      result.push_back(node.integer());
    return result;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const Node &node : list())
      result.push_back(node.text());
    return result;
  }
  DType dtype() const {
    auto dtype = parseDType(text());
    if (!dtype)
      fail("'" + text() + "' is not a valid element type");
    return *dtype;
  }
  sharding::AxisRef axis() const {
    std::vector<int64_t> parts = integers();
    if (parts.size() != 3)
      fail("an axis is written [axis, pre, size]");
    return {parts[0], parts[1], parts[2]};
  }
  sharding::AxisList axes() const {
    sharding::AxisList result;
    for (const Node &node : list())
      result.push_back(node.axis());
    return result;
  }
  sharding::ReduceKind reduceKind() const {
    auto kind = sharding::parseReduceKind(text());
    if (!kind)
      fail("'" + text() + "' is not a valid reduction");
    return *kind;
  }
  int64_t integerOr(const char *key, int64_t otherwise) const {
    return has(key) ? (*this)[key].integer() : otherwise;
  }
  bool booleanOr(const char *key, bool otherwise) const {
    return has(key) ? (*this)[key].boolean() : otherwise;
  }
  std::string textOr(const char *key) const { return has(key) ? (*this)[key].text() : ""; }
  bool isObject() const { return value.is_object(); }

private:
  const nlohmann::json &value;
  std::string path;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_ARTIFACT_JSONNODE_H
