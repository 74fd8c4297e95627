//===- Mutation.cpp - Text with mistakes in it ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Fuzz/Mutation.h"

#include "Random.h"

#include "llvm/ADT/StringExtras.h"

using namespace tessera::fuzz;
using llvm::StringRef;

namespace {

/// Words, numbers, and single characters; blanks belong to the preceding token.
class Tokens {
public:
  explicit Tokens(StringRef text) {
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; };
    while (!text.empty()) {
      size_t size = 1;
      if (isWord(text[0]))
        size = text.take_while(isWord).size();
      else if (StringRef("%@#!^").contains(text[0]))
        size += text.drop_front().take_while(isWord).size();
      size_t blanks = text.drop_front(size).take_while([](char c) { return c == ' '; }).size();
      tokens.push_back(text.take_front(size + blanks).str());
      text = text.drop_front(size + blanks);
    }
  }

  std::vector<std::string> tokens;

  std::string join() const {
    std::string text;
    for (const std::string &token : tokens)
      text += token;
    return text;
  }
};

} // namespace

static const std::vector<std::string> kNumbers = {"0",
                                                  "1",
                                                  "2",
                                                  "3",
                                                  "7",
                                                  "-1",
                                                  "-2",
                                                  "64",
                                                  "4096",
                                                  "4097",
                                                  "65536",
                                                  "1048576",
                                                  "2147483647",
                                                  "2147483648",
                                                  "-2147483648",
                                                  "4294967296",
                                                  "1099511627776",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551615",
                                                  "0.0",
                                                  "1e30",
                                                  "nan"};
static const std::vector<std::string> kTypes = {
    "f32",   "f64", "f16",  "bf16", "i64",  "i32",          "i16",      "i8", "i1",
    "index", "i4",  "i128", "none", "tf32", "complex<f32>", "f8E4M3FN", "si8"};
static const std::vector<std::string> kWords = {
    "replicate", "shard(0)", "shard(-1)", "partial(sum)", "partial(avg)", "?",   "\"\"", "unit",
    "dense<0>",  "[]",       "{}",        "<>",           "()",           "-> ", "?x",   "true",
    "@main",     "%0",       "null",      "array<i64>",   "linalg.yield"};

static bool isNumber(StringRef token) {
  token = token.rtrim(' ');
  return !token.empty() && llvm::all_of(token, [](char c) { return llvm::isDigit(c) || c == '.'; });
}

static void mutateToken(std::vector<std::string> &tokens, Random &random) {
  auto place = [&] { return random.between(0, static_cast<int64_t>(tokens.size()) - 1); };
  std::vector<size_t> fitting;
  auto pickWhere = [&](auto wanted) {
    fitting.clear();
    for (size_t i = 0; i < tokens.size(); ++i)
      if (wanted(tokens[i]))
        fitting.push_back(i);
    return fitting.empty() ? place() : static_cast<int64_t>(random.pick(fitting));
  };
  auto replace = [&](int64_t at, const std::string &with) {
    bool hasBlank = StringRef(tokens[at]).ends_with(" ");
    tokens[at] = with + (hasBlank ? " " : "");
  };
  switch (random.between(0, 9)) {
  case 0:
  case 1:
  case 2:
    return replace(pickWhere(isNumber), random.pick(kNumbers));
  case 3:
    tokens.erase(tokens.begin() + place());
    return;
  case 4: {
    int64_t at = place();
    std::string copy = tokens[at];
    tokens.insert(tokens.begin() + at, copy);
    return;
  }
  case 5:
    return std::swap(tokens[place()], tokens[place()]);
  case 6:
    return replace(pickWhere([](StringRef token) {
                     return llvm::is_contained(kTypes, token.rtrim(' ').str());
                   }),
                   random.pick(kTypes));
  case 7:
    return replace(place(), random.pick(kWords));
  default: { // another token of the same kind
    int64_t at = place();
    char first = tokens[at][0];
    bool number = isNumber(tokens[at]);
    int64_t from = pickWhere([&](StringRef token) {
      return number ? isNumber(token)
                    : token[0] == first || (llvm::isAlpha(first) && llvm::isAlpha(token[0]));
    });
    tokens[at] = std::string(tokens[from]);
    return;
  }
  }
}

static void mutateLine(std::string &text, Random &random) {
  llvm::SmallVector<StringRef> pieces;
  StringRef(text).split(pieces, '\n');
  std::vector<std::string> lines;
  for (StringRef piece : pieces)
    lines.push_back(piece.str());
  auto place = [&] { return random.between(0, static_cast<int64_t>(lines.size()) - 1); };
  int64_t at = place();
  switch (random.between(0, 3)) {
  case 0:
    lines.erase(lines.begin() + at);
    break;
  case 1: {
    std::string copy = lines[at];
    lines.insert(lines.begin() + at, copy);
    break;
  }
  case 2:
    std::swap(lines[at], lines[place()]);
    break;
  default: {
    std::string copy = lines[at];
    lines.insert(lines.begin() + place(), copy);
  }
  }
  text = llvm::join(lines, "\n");
}

std::string tessera::fuzz::mutateText(std::string_view original, uint64_t seed) {
  Random random(seed);
  std::string text(original);
  for (int64_t times = random.between(1, 3); times > 0 && !text.empty(); --times) {
    int64_t kind = random.between(1, 100);
    if (kind <= 80) {
      Tokens tokens(text);
      mutateToken(tokens.tokens, random);
      text = tokens.join();
    } else if (kind <= 97) {
      mutateLine(text, random);
    } else {
      text.resize(random.between(0, static_cast<int64_t>(text.size()) - 1));
    }
  }
  return text;
}

std::string tessera::fuzz::mutateBytes(std::string_view original, uint64_t seed) {
  Random random(seed);
  std::string bytes(original);
  for (int64_t times = random.between(1, 4); times > 0 && !bytes.empty(); --times) {
    int64_t at = random.between(0, static_cast<int64_t>(bytes.size()) - 1);
    int64_t kind = random.between(1, 100);
    if (kind <= 40)
      bytes[at] = static_cast<char>(random.next());
    else if (kind <= 60)
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.between(0, 7)));
    else if (kind <= 75)
      bytes.erase(at, random.between(1, 8));
    else if (kind <= 95)
      bytes.insert(at, bytes.substr(at, random.between(1, 8)));
    else
      bytes.resize(at);
  }
  return bytes;
}
