//===- TopologyFile.cpp - Read a topology ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Sharding/Topology.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

using nlohmann::json;

namespace tessera::sharding {

namespace {

/// Reads fields and records the first error.
class Reader {
public:
  Reader(const std::string &text, TopologyError &error) : text(text), error(error) {}

  std::optional<Topology> read() {
    json root;
    try {
      root = json::parse(text, [this](int depth, json::parse_event_t event, json &parsed) {
        return noteKeys(static_cast<size_t>(depth), event, parsed);
      });
    } catch (const json::parse_error &failure) {
      return failAt(failure.byte,
                    text.empty() ? "is empty; a topology is a JSON object" : "not JSON"),
             std::nullopt;
    } catch (const json::out_of_range &failure) {
      // "… number overflow parsing '1e999'"
      std::string what = failure.what();
      std::string number = what.substr(std::min(what.find('\'') + 1, what.size()));
      number = number.substr(0, number.find('\''));
      return failAt(text.find(number) + 1, "the number " + number + " is too large"), std::nullopt;
    }
    if (!error.message.empty())
      return std::nullopt;
    Topology topology;
    if (!root.is_object())
      return fail({}, "is not an object"), std::nullopt;
    onlyKnown(root, {}, {"version", "name", "source", "device", "links", "axes", "algorithms"});
    if (!root.contains("version") || root["version"] != 1)
      fail({"version"}, "must be 1");
    topology.name = textAt(root, {}, "name");
    if (root.contains("source"))
      topology.source = textAt(root, {}, "source");
    readDevice(root, topology.device);
    readLinks(root, topology);
    readAxes(root, topology);
    readAlgorithms(root, topology);
    rejectUnusedCopyRates(topology);
    return error.message.empty() ? std::optional(topology) : std::nullopt;
  }

private:
  using Path = std::vector<std::string>;

  /// Fields are searched in the order of the path; the line of the last one found is reported.
  void fail(const Path &path, const std::string &what) {
    if (!error.message.empty())
      return;
    size_t at = 0;
    std::string name;
    for (const std::string &part : path) {
      bool index = part.front() == '[';
      name += index || name.empty() ? part : "." + part;
      size_t found = at;
      if (index)
        found = objectOf(at, std::stoll(part.substr(1)));
      else
        found = text.find("\"" + part + "\"", at);
      if (found != std::string::npos)
        at = found;
    }
    failAt(at + 1, (name.empty() ? "the topology " : "field '" + name + "' ") + what);
  }

  /// The offset of the n-th object of the list after `at`; nested objects do not count.
  size_t objectOf(size_t at, int64_t n) const {
    int64_t depth = 0;
    for (at = text.find('[', at); at < text.size(); ++at) {
      if (text[at] == '"')
        for (++at; at < text.size() && text[at] != '"'; ++at)
          at += text[at] == '\\';
      else if (text[at] == '{' && depth++ == 0 && n-- == 0)
        return at;
      else if (text[at] == '}')
        --depth;
    }
    return std::string::npos;
  }

  void failAt(size_t byte, const std::string &message) { error = {lineOf(byte), message}; }

  /// Rejects duplicate names in an object: the parser would keep the last one.
  bool noteKeys(size_t depth, json::parse_event_t event, const json &parsed) {
    if (event == json::parse_event_t::object_start)
      keys.resize(depth + 1), keys.back().clear();
    else if (event == json::parse_event_t::key && depth > 0 && depth <= keys.size() &&
             !keys[depth - 1].insert(parsed.get<std::string>()).second)
      fail({parsed.get<std::string>()}, "is given twice");
    return true;
  }

  int64_t lineOf(size_t byte) const {
    auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
    return 1 + std::count(text.begin(), end, '\n');
  }

  static Path join(Path path, const std::string &name) {
    path.push_back(name);
    return path;
  }

  void onlyKnown(const json &object, const Path &path, const std::vector<std::string> &names) {
    for (auto &[name, value] : object.items())
      if (std::find(names.begin(), names.end(), name) == names.end())
        fail(join(path, name), "is not known here");
  }

  std::string textAt(const json &object, const Path &path, const std::string &name) {
    if (!object.contains(name) || !object[name].is_string()) {
      fail(join(path, name), "must be a string");
      return {};
    }
    return object[name];
  }

  /// Reads a rate, a size or a time; values outside of `least` to `most` would lead to infinite
  /// costs.
  double numberAt(const json &object, const Path &path, const std::string &name, double least,
                  double most) {
    if (object.contains(name) && object[name].is_number())
      if (double value = object[name]; value >= least && value <= most)
        return value;
    std::ostringstream rule;
    rule << (object.contains(name) ? "is " + object[name].dump() + "; it" : "is missing; it")
         << " must be a number from " << least << " to " << most;
    fail(join(path, name), rule.str());
    return least;
  }

  void readDevice(const json &root, DeviceKind &device) {
    if (!root.contains("device") || !root["device"].is_object())
      return fail({"device"}, "must be an object");
    const json &object = root["device"];
    Path path{"device"};
    onlyKnown(object, path, {"kind", "flops", "memory_rate", "memory", "shares_cores"});
    device.kind = textAt(object, path, "kind");
    device.memoryRate = numberAt(object, path, "memory_rate", 1, kMostRate);
    device.memory = numberAt(object, path, "memory", 1, kMostRate);
    if (object.contains("shares_cores")) {
      if (!object["shares_cores"].is_boolean())
        return fail(join(path, "shares_cores"), "must be true or false");
      device.sharesCores = object["shares_cores"];
    }
    if (!object.contains("flops") || !object["flops"].is_object() ||
        !object["flops"].contains("f32"))
      return fail(join(path, "flops"), "must be an object with at least \"f32\"");
    device.flops.clear();
    onlyKnown(object["flops"], join(path, "flops"),
              {"f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "i1"});
    for (auto &[dtype, rate] : object["flops"].items())
      device.flops[dtype] = numberAt(object["flops"], join(path, "flops"), dtype, 1, kMostRate);
  }

  void readLinks(const json &root, Topology &topology) {
    if (!root.contains("links") || !root["links"].is_array() || root["links"].empty())
      return fail({"links"}, "must be a list with at least one link");
    topology.links.clear();
    for (size_t i = 0; i < root["links"].size(); ++i) {
      const json &object = root["links"][i];
      Path path{"links", "[" + std::to_string(i) + "]"};
      if (!object.is_object())
        return fail(path, "must be an object");
      onlyKnown(object, path, {"name", "devices", "alpha", "rate", "copies"});
      LinkClass link;
      link.name = textAt(object, path, "name");
      link.link.alpha = numberAt(object, path, "alpha", 1e-15, 1e6);
      link.link.rate = numberAt(object, path, "rate", 1, kMostRate);
      if (object.contains("copies"))
        link.link.copies = copiesAt(object["copies"], join(path, "copies"));
      for (const LinkClass &other : topology.links)
        if (other.name == link.name)
          return fail(join(path, "name"), "is that of another link: '" + link.name + "'");
      double devices = numberAt(object, path, "devices", 1, 1e9);
      if (devices != std::floor(devices))
        return fail(join(path, "devices"),
                    "is " + object["devices"].dump() + "; it must be a whole number");
      link.devices = static_cast<int64_t>(devices);
      if (i > 0 && link.devices % topology.links.back().devices != 0)
        return fail(join(path, "devices"), "must be a multiple of the link before it: " +
                                               std::to_string(topology.links.back().devices));
      topology.links.push_back(link);
    }
  }

  CopyRates copiesAt(const json &object, const Path &path) {
    if (!object.is_object())
      return fail(path, "must be an object of rates"), CopyRates();
    onlyKnown(object, path, {"copy", "strided_copy", "add", "strided_add"});
    auto rateOf = [&](const char *name) { return numberAt(object, path, name, 1, kMostRate); };
    return {rateOf("copy"), rateOf("strided_copy"), rateOf("add"), rateOf("strided_add")};
  }

  /// Rejects rates of copies that no algorithm uses: the mistake would go unnoticed.
  void rejectUnusedCopyRates(const Topology &topology) {
    bool isShared = std::find(topology.algorithms.begin(), topology.algorithms.end(),
                              Algorithm::shared_memory) != topology.algorithms.end();
    for (size_t i = 0; i < topology.links.size() && !isShared; ++i)
      if (topology.links[i].link.copies)
        fail({"links", "[" + std::to_string(i) + "]", "copies"},
             "applies only if 'algorithms' has shared_memory; add it there, or remove this field");
  }

  void readAxes(const json &root, Topology &topology) {
    if (!root.contains("axes"))
      return;
    if (!root["axes"].is_object())
      return fail({"axes"}, "must be an object of mesh axis names");
    for (auto &[axis, name] : root["axes"].items()) {
      std::string link = textAt(root["axes"], {"axes"}, axis);
      if (std::none_of(topology.links.begin(), topology.links.end(),
                       [&](const LinkClass &known) { return known.name == link; }))
        return fail({"axes", axis}, "names no link of this file: '" + link + "'");
      topology.axisLinks[axis] = link;
    }
  }

  void readAlgorithms(const json &root, Topology &topology) {
    if (!root.contains("algorithms"))
      return;
    if (!root["algorithms"].is_array())
      return fail({"algorithms"}, "must be a list of names");
    bool hasFlat = false;
    for (const json &name : root["algorithms"]) {
      std::optional<Algorithm> known =
          name.is_string() ? parseAlgorithm(name.get<std::string>()) : std::nullopt;
      if (!known || *known == Algorithm::direct)
        return fail({"algorithms"},
                    "must name ring, tree, doubling, hierarchical or shared_memory, not " +
                        name.dump());
      hasFlat |= *known != Algorithm::hierarchical && *known != Algorithm::tree;
      topology.algorithms.push_back(*known);
    }
    if (!hasFlat)
      fail({"algorithms"},
           "must have ring, doubling or shared_memory, which apply to every collective");
  }

  static constexpr double kMostRate = 1e30;
  const std::string &text;
  TopologyError &error;
  std::vector<std::set<std::string>> keys; ///< by depth, of the current object
};

} // namespace

std::optional<Topology> parseTopology(const std::string &text, TopologyError &error) {
  error = {};
  return Reader(text, error).read();
}

std::optional<Topology> readTopology(const std::string &path, TopologyError &error) {
  error = {};
  if (path.empty())
    return Topology();
  if (path == "hwloc")
    return readHwlocTopology(error.message);
  errno = 0;
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    error.message = std::string("cannot be read: ") + std::strerror(errno ? errno : EIO) +
                    "; expected a file, 'hwloc', or one of share/topologies: " TESSERA_TOPOLOGIES;
    return std::nullopt;
  }
  return parseTopology(text, error);
}

} // namespace tessera::sharding
