//===- Nesting.cpp - Reject text that is nested too deeply for the parser -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Driver/Load.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tessera;

static constexpr int64_t kMaxNesting = 1000;

namespace {

/// A single scan over the characters, without the grammar.
class NestingScan {
public:
  explicit NestingScan(llvm::MemoryBufferRef text)
      : text(text.getBuffer()), file(text.getBufferIdentifier()) {}

  std::optional<std::string> run() {
    while (at < text.size() && problem.empty())
      step();
    if (problem.empty())
      return std::nullopt;
    auto [line, column] = place();
    return (file + ":" + Twine(line) + ":" + Twine(column) + ": error: " + problem).str();
  }

private:
  /// Line and column of the last character that was read.
  std::pair<size_t, size_t> place() const {
    StringRef before = text.take_front(at ? at - 1 : 0);
    size_t newline = before.rfind('\n');
    size_t column = newline == StringRef::npos ? before.size() : before.size() - newline - 1;
    return {before.count('\n') + 1, column + 1};
  }

  void step() {
    char c = text[at++];
    switch (c) {
    case '"':
      skipString();
      return;
    case '/':
      if (at < text.size() && text[at] == '/')
        at = std::min(text.find('\n', at), text.size());
      return;
    case '\n':
      lineStarts = true;
      return;
    case '(':
    case '[':
    case '{':
    case '<':
      chains.push_back(0);
      return deepen(0);
    case '>':
      if (at >= 2 && text[at - 2] == '-') { // an arrow
        chains.back() = 0;
        return;
      }
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      if (chains.size() > 1)
        chains.pop_back();
      return;
    case ',':
    case ':':
    case ';':
    case '=':
      chains.back() = 0;
      return;
    case '+':
    case '-':
    case '*':
      return lengthen();
    case '#':
    case '!':
      return readAlias();
    default:
      if (llvm::isAlpha(c) || c == '_' || c == '%' || c == '@' || c == '^')
        readWord();
    }
    if (!llvm::isSpace(c))
      lineStarts = false;
  }

  void skipString() {
    while (at < text.size() && text[at] != '"' && text[at] != '\n')
      at += text[at] == '\\' ? 2 : 1;
    if (at < text.size() && text[at] == '"')
      ++at;
    lineStarts = false;
  }

  StringRef takeName() {
    size_t begin = at;
    while (at < text.size() &&
           (llvm::isAlnum(text[at]) || text[at] == '_' || text[at] == '.' || text[at] == '$'))
      ++at;
    return text.slice(begin, at);
  }

  void readWord() {
    size_t begin = at - 1;
    bool topLevel = lineStarts && depth() == 0 && definedSomething;
    takeName();
    StringRef word = text.slice(begin, at);
    if (topLevel)
      defined = nullptr; // an op behind the aliases
    if (word == "mod" || word == "floordiv" || word == "ceildiv")
      lengthen();
    definedSomething = true;
  }

  /// The definition of an alias, at the start of a line, or a use of one.
  void readAlias() {
    StringRef name = takeName();
    StringRef rest = text.drop_front(at).ltrim(" \t");
    bool defines = lineStarts && depth() == 0 && rest.starts_with("=") && !rest.starts_with("==");
    lineStarts = false;
    if (defines) {
      defined = &aliases[name];
      *defined = 0;
      definedSomething = false;
      return;
    }
    definedSomething = true;
    if (auto it = aliases.find(name); it != aliases.end())
      deepen(it->second + 1);
  }

  int64_t depth() const { return static_cast<int64_t>(chains.size()) - 1; }

  /// The value here nests `inner` levels itself.
  void deepen(int64_t inner) {
    lineStarts = false;
    int64_t total = depth() + inner;
    if (total > kMaxNesting)
      problem = (inner ? "aliases" : "brackets") + std::string(" nest deeper than ") +
                std::to_string(kMaxNesting);
    if (defined)
      *defined = std::max(*defined, total);
  }

  void lengthen() {
    lineStarts = false;
    if (++chains.back() > kMaxNesting)
      problem = "an expression has more than " + std::to_string(kMaxNesting) + " operators";
  }

  StringRef text, file;
  size_t at = 0;
  std::string problem;
  bool lineStarts = true;           ///< only blanks since the last line break
  std::vector<int64_t> chains{0};   ///< operators since the last separator, by open bracket
  llvm::StringMap<int64_t> aliases; ///< nesting depth of the value of each
  int64_t *defined = nullptr;       ///< that of the alias being defined
  bool definedSomething = false;    ///< its definition has begun
};

} // namespace

std::optional<std::string> tessera::checkNesting(llvm::MemoryBufferRef text) {
  return NestingScan(text).run();
}
