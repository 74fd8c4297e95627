//===- LocalPeak.cpp - Peak memory of the local view ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Planning/LocalPeak.h"

#include "tessera/Planning/Liveness.h"
#include "tessera/Planning/Rematerialize.h"

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
  Liveness lives(function);
  Rematerializer buffers(lives.end());
  SmallVector<Value> values;
  forEachOwn(function, lives, [&](Value value, Liveness::LiveRange life, double bytes) {
    buffers.add({{std::ssize(values), life.from, life.to, bytes}});
    values.push_back(value);
  });
  peak.bytes = buffers.peak();
  if (int64_t largest = buffers.largestOwner(); largest >= 0)
    peak.largest = values[largest];
  if (peak.largest)
    peak.name = nameOf(peak.largest);
  return peak;
}
