//===- MoveBuild.cpp - From boxes to strided runs -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Move.h"
#include "StreamCopy.h"

#include "tessera/Sharding/CollectiveTraits.h"

#include <algorithm>

namespace tessera::runtime {

using sharding::Box;
using sharding::CollectiveKind;
using sharding::Layout;
using sharding::Mesh;
using sharding::Redistribution;

Attribution attributionOf(CollectiveKind kind) {
  return sharding::traitsOf(kind).isRelayed ? Attribution::relayed : Attribution::direct;
}

/// Strides of a dense row-major buffer, in elements.
static Shape rowMajorStrides(const Shape &shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
    strides[d] = stride;
  return strides;
}

/// Drops loops of one trip and joins loops that are contiguous in both buffers.
static Strides stridesOf(const Box &box, const Shape &sourceShape, const Shape &targetShape) {
  Shape source = rowMajorStrides(sourceShape), target = rowMajorStrides(targetShape);
  Strides result;
  result.elements = box.numElements();
  for (size_t d = 0; d < box.size.size(); ++d) {
    if (box.size[d] == 1)
      continue;
    bool continues = !result.extents.empty() && result.source.back() == source[d] * box.size[d] &&
                     result.target.back() == target[d] * box.size[d];
    if (continues) {
      result.extents.back() *= box.size[d];
      result.source.back() = source[d];
      result.target.back() = target[d];
    } else {
      result.extents.push_back(box.size[d]);
      result.source.push_back(source[d]);
      result.target.push_back(target[d]);
    }
  }
  if (!result.extents.empty() && result.source.back() == 1 && result.target.back() == 1) {
    result.run = result.extents.back();
    result.extents.pop_back();
    result.source.pop_back();
    result.target.pop_back();
  }
  return result;
}

static End endOf(const Mesh &mesh, const Layout &layout, int64_t position, const Box &box) {
  Box span = layout.span(mesh, mesh.coordinate(position));
  Shape strides = rowMajorStrides(layout.localShape());
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d)
    offset += (box.offset[d] - span.offset[d]) * strides[d];
  return {position, mesh.processIds[position], offset};
}

Move::Move(DType dtype, const Mesh &sourceMesh, const Layout &source, const Mesh &targetMesh,
           const Layout &target, const Options &options)
    : elementSize(sizeOf(dtype)), attribution(options.attribution) {
  Sides sides{sourceMesh, source, targetMesh, target};
  Redistribution move = sharding::redistribute(sourceMesh, source, targetMesh, target);
  reduce = reduceFunction(dtype, move.kind);
  scale = move.scale;
  kind = move.kind;
  for (const sharding::Piece &piece : move.pieces) {
    if (!options.separateTargets) {
      addPiece(sides, piece.box, piece.sources, piece.targets);
      continue;
    }
    for (int64_t position : piece.targets)
      addPiece(sides, piece.box, piece.sources, {position});
  }
  ElementBytes identity = identityOf(dtype, move.fillKind);
  for (auto &[position, box] : move.fills)
    addFill(sides, position, box, identity);
  if (options.fill) {
    ElementBytes value = elementOf(dtype, *options.fill);
    for (int64_t position = 0; position < targetMesh.numDevices(); ++position) {
      Shape coordinate = targetMesh.coordinate(position);
      for (const Box &box : sharding::subtract(target.span(targetMesh, coordinate),
                                               target.valid(targetMesh, coordinate)))
        addFill(sides, position, box, value);
    }
  }
  safeInPlace = computeInPlaceSafe(sides, move);
  int64_t written = 0;
  for (const MovePiece &piece : list)
    written += piece.strides.elements * static_cast<int64_t>(piece.targets.size()) * elementSize;
  streams = written > kStreamBytes;
}

void Move::addPiece(const Sides &sides, const Box &box, const std::vector<int64_t> &sources,
                    const std::vector<int64_t> &targets) {
  MovePiece piece{stridesOf(box, sides.source.localShape(), sides.target.localShape()), {}, {}, {}};
  for (int64_t position : sources)
    piece.sources.push_back(endOf(sides.sourceMesh, sides.source, position, box));
  for (int64_t position : targets)
    piece.targets.push_back(endOf(sides.targetMesh, sides.target, position, box));
  list.push_back(std::move(piece));
}

void Move::addFill(const Sides &sides, int64_t position, const Box &box, ElementBytes value) {
  MovePiece piece{
      stridesOf(box, sides.target.localShape(), sides.target.localShape()), {}, {}, value};
  piece.targets.push_back(endOf(sides.targetMesh, sides.target, position, box));
  list.push_back(std::move(piece));
}

bool Move::computeInPlaceSafe(const Sides &sides, const Redistribution &move) {
  // With equal dims every index has one address on a device, so boxes can be compared directly;
  // otherwise addresses shift and hardly any move is safe.
  if (sides.sourceMesh != sides.targetMesh || sides.source.dims != sides.target.dims)
    return false;
  auto reads = [](const sharding::Piece &piece, int64_t device) {
    return std::find(piece.sources.begin(), piece.sources.end(), device) != piece.sources.end();
  };
  for (const sharding::Piece &reader : move.pieces) {
    for (const sharding::Piece &writer : move.pieces)
      for (int64_t device : writer.targets)
        if (&reader != &writer && reads(reader, device) &&
            !sharding::intersect(reader.box, writer.box).empty())
          return false;
    for (auto &[device, box] : move.fills)
      if (reads(reader, device) && !sharding::intersect(reader.box, box).empty())
        return false;
  }
  return true;
}

std::vector<int64_t> denseStrides(const Strides &strides) {
  std::vector<int64_t> dense(strides.extents.size());
  int64_t stride = strides.run;
  for (size_t d = dense.size(); d-- > 0; stride *= strides.extents[d])
    dense[d] = stride;
  return dense;
}

} // namespace tessera::runtime
