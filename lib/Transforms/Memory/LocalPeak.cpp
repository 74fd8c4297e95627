//===- LocalPeak.cpp - What takes most of a device's memory ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Transforms/LocalPeak.h"

#include "ValueLives.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;

static std::string nameOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto name =
              function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), DistDialect::kName))
        return ("'" + name.getValue() + "'").str();
  std::string text;
  llvm::raw_string_ostream(text) << "a value of type '" << value.getType() << "'";
  return text;
}

LocalPeak dist::localPeakOf(func::FuncOp function) {
  LocalPeak peak;
  if (function.isExternal())
    return peak;
  ValueLives lives(function);
  std::vector<double> bytes(lives.end() + 2, 0.0);
  SmallVector<std::pair<Value, double>> values;
  forEachOwn(function, lives, [&](Value value, ValueLives::Life life, double its) {
    values.push_back({value, its});
    for (int64_t time = life.from; time <= life.to; ++time)
      bytes[time] += its;
  });
  int64_t worst = llvm::max_element(bytes) - bytes.begin();
  peak.bytes = bytes[worst];
  double most = 0;
  for (auto [value, its] : values)
    if (ValueLives::Life life = lives.of(value);
        life.from <= worst && worst <= life.to && its > most) {
      most = its;
      peak.largest = value;
    }
  if (peak.largest)
    peak.name = nameOf(peak.largest);
  return peak;
}
