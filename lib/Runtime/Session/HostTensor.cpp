//===- HostTensor.cpp - Global tensors on the host ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/HostTensor.h"

#include "../Execution/Move.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <map>
#include <set>

namespace tessera::runtime {

HostTensor HostTensor::zeros(DType dtype, const Shape &shape) {
  auto bytes = static_cast<size_t>(elementCount(shape).value_or(0) * sizeOf(dtype));
  return {dtype, shape, Bytes(bytes)};
}

template <typename T> static T element(const HostTensor &tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

int64_t HostTensor::integer(int64_t i) const {
  switch (sizeOf(dtype)) {
  case 8:
    return element<int64_t>(*this, i);
  case 4:
    return element<int32_t>(*this, i);
  case 2:
    return element<int16_t>(*this, i);
  default:
    return element<int8_t>(*this, i);
  }
}

double HostTensor::number(int64_t i) const {
  switch (dtype) {
  case DType::f64:
    return element<double>(*this, i);
  case DType::f32:
    return element<float>(*this, i);
  case DType::f16:
    return halfToFloat(element<uint16_t>(*this, i));
  case DType::bf16:
    return bfloatToFloat(element<uint16_t>(*this, i));
  default:
    return static_cast<double>(integer(i));
  }
}

std::string indexText(const Shape &shape, int64_t i) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0; i /= shape[d])
    text = std::to_string(i % shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

/// The host as a mesh of one device outside of all programs.
static const sharding::Mesh &hostMesh() {
  static const sharding::Mesh mesh{"host", {1}, {"host"}, {-1}};
  return mesh;
}

static sharding::Layout wholeLayout(const Shape &shape) {
  return sharding::makeLayout(
      sharding::TensorSharding::replicated(static_cast<int64_t>(shape.size())), shape);
}

struct HostMove::State {
  Home home;
  bool toDevices;
  std::vector<int64_t> positions; ///< in the part's mesh, by position in the layout's
  int64_t bytes;                  ///< of a device's buffer
  bool everywhere;                ///< every device of the program holds the whole value
  Move move;
  sharding::Mesh mesh;          ///< of the layout
  int64_t devices;              ///< of the program
  std::vector<Bytes> kept = {}; ///< by position: results of `make`
  bool ownIsWhole = false;      ///< the devices of each process hold all of it

  bool isBox() const;
  bool isWhole() const { return home.layout == wholeLayout(home.layout.globalShape); }
  std::vector<bool> needed() const;
  Status readOwn(Executor &executor, std::byte *value) const;

  /// Fills the buffers that this process holds.
  using Fill = std::function<void(const MovePiece &piece, std::byte *const *buffers)>;
  Status write(Executor &executor, const Fill &fill) const;
  Status read(Executor &executor, std::byte *value, Executor::Readers readers) const;
};

static Move makeMove(const sharding::Mesh &mesh, const Home &home, DType dtype, bool toDevices) {
  sharding::Layout whole = wholeLayout(home.layout.globalShape);
  Move::Options each{{}, /*separateTargets=*/true, Attribution::direct};
  return toDevices ? Move(dtype, hostMesh(), whole, mesh, home.layout, each)
                   : Move(dtype, mesh, home.layout, hostMesh(), whole, {});
}

HostMove::HostMove(const Program &program, const Home &home, DType dtype, bool toDevices) {
  const sharding::Mesh &mesh = program.meshOf(home);
  const sharding::Mesh &partMesh = program.meshes[program.parts[home.part].mesh];
  std::vector<int64_t> positions;
  for (int64_t device : mesh.processIds)
    positions.push_back(partMesh.positionOf(device));
  state = std::make_unique<State>(
      State{home, toDevices, std::move(positions),
            *elementCount(home.layout.localShape()) * sizeOf(dtype),
            home.layout == wholeLayout(home.layout.globalShape) &&
                static_cast<int64_t>(mesh.processIds.size()) == program.numDevices(),
            makeMove(mesh, home, dtype, toDevices), mesh, program.numDevices()});
}
HostMove::HostMove(HostMove &&) noexcept = default;
HostMove &HostMove::operator=(HostMove &&) noexcept = default;
HostMove::~HostMove() = default;

Status HostMove::write(Executor &executor, const std::byte *value) const {
  assert(state->toDevices && "the move is from the devices");
  const Move &move = state->move;
  return state->write(executor, [&](const MovePiece &piece, std::byte *const *buffers) {
    int64_t elements = piece.strides.elements;
    int64_t each = std::max<int64_t>(Executor::kPartBytes / move.elementBytes(), 1);
    executor.parallelFor((elements + each - 1) / each, [&](int64_t part) {
      int64_t begin = part * each;
      move.run(piece, begin, std::min(begin + each, elements), &value, buffers, nullptr);
    });
  });
}

Status HostMove::read(Executor &executor, std::byte *value, Executor::Readers readers) const {
  assert(!state->toDevices && "the move is to the devices");
  return state->read(executor, value, readers);
}

bool HostMove::isHere(const Executor &executor) const {
  return std::all_of(state->positions.begin(), state->positions.end(),
                     [&](int64_t position) { return executor.holds(state->home.part, position); });
}

Status HostMove::make(Executor &executor, const MakeElements &elements, bool keeps) {
  State &all = *state;
  if (all.kept.empty()) {
    std::vector<Bytes> made(all.positions.size());
    Bytes dense;
    auto fill = [&](const MovePiece &piece, std::byte *const *buffers) {
      MovePiece own = piece;
      if (!piece.isFill()) {
        // The box of the whole value becomes a dense one.
        dense.resize(static_cast<size_t>(piece.strides.elements * all.move.elementBytes()));
        own.strides.source = denseStrides(piece.strides);
        own.sources.front().offset = 0;
        const Strides &strides = piece.strides;
        std::byte *at = dense.data();
        for (int64_t row = 0; row * strides.run < strides.elements; ++row) {
          int64_t begin = piece.sources.front().offset, index = row;
          for (size_t d = strides.extents.size(); d-- > 0; index /= strides.extents[d])
            begin += index % strides.extents[d] * strides.source[d];
          elements(begin, strides.run, at);
          at += strides.run * all.move.elementBytes();
        }
      }
      const std::byte *host = dense.data();
      all.move.run(own, 0, own.strides.elements, &host, buffers, nullptr);
      int64_t to = piece.targets.front().position;
      if (keeps) {
        made[to].resize(static_cast<size_t>(all.bytes));
        std::copy_n(buffers[to], all.bytes, made[to].data());
      }
    };
    TESSERA_RETURN_IF_ERROR(all.write(executor, fill));
    all.kept = keeps ? std::move(made) : std::vector<Bytes>();
    return {};
  }
  for (size_t i = 0; i < all.kept.size(); ++i)
    if (!all.kept[i].empty())
      TESSERA_RETURN_IF_ERROR(executor.writeSlot(all.home.part, all.positions[i], all.home.slot,
                                                 all.kept[i].data(), all.bytes));
  return {};
}

bool HostMove::State::isBox() const {
  const sharding::Layout &layout = home.layout;
  return layout.partial.empty() &&
         std::all_of(layout.dims.begin(), layout.dims.end(), [](const auto &dim) {
           return dim.divisor == 1 && dim.begin == 0 && dim.stride == 1;
         });
}

std::optional<std::vector<sharding::Box>> HostMove::heldBoxes(const Executor &executor) const {
  const sharding::Layout &layout = state->home.layout;
  if (!state->isBox())
    return {};
  std::vector<sharding::Box> boxes;
  for (size_t i = 0; i < state->positions.size(); ++i)
    if (executor.holds(state->home.part, state->positions[i]))
      boxes.push_back(layout.valid(state->mesh, state->mesh.coordinate(static_cast<int64_t>(i))));
  return boxes;
}

/// Calls `copy(inBuffer, inBox, elements)` for each row of a device's valid elements, where offsets
/// are in elements.
template <typename Copy>
static void forEachRow(const sharding::Layout &layout, const sharding::Mesh &mesh, int64_t position,
                       Copy copy) {
  std::vector<int64_t> coordinate = mesh.coordinate(position), shape = layout.localShape();
  sharding::Box span = layout.span(mesh, coordinate), valid = layout.valid(mesh, coordinate);
  if (valid.empty())
    return;
  int64_t run = shape.empty() ? 1 : valid.size.back();
  for (int64_t row = 0; row * run < valid.numElements(); ++row) {
    int64_t at = 0, stride = 1, index = row;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      at += (valid.offset[d] - span.offset[d]) * stride;
      if (d + 1 < shape.size()) {
        at += index % valid.size[d] * stride;
        index /= valid.size[d];
      }
    }
    copy(at, row * run, run);
  }
}

Status HostMove::writeBox(Executor &executor, const std::byte *box) {
  const size_t size = static_cast<size_t>(state->move.elementBytes());
  for (size_t i = 0; i < state->positions.size(); ++i) {
    if (!executor.holds(state->home.part, state->positions[i]))
      continue;
    Bytes buffer(static_cast<size_t>(state->bytes));
    forEachRow(state->home.layout, state->mesh, static_cast<int64_t>(i),
               [&](int64_t at, int64_t from, int64_t elements) {
                 std::memcpy(buffer.data() + static_cast<size_t>(at) * size,
                             box + static_cast<size_t>(from) * size,
                             static_cast<size_t>(elements) * size);
               });
    return executor.writeSlot(state->home.part, state->positions[i], state->home.slot,
                              buffer.data(), state->bytes);
  }
  return {};
}

Status HostMove::readBox(Executor &executor, std::byte *box) {
  const size_t size = static_cast<size_t>(state->move.elementBytes());
  for (size_t i = 0; i < state->positions.size(); ++i) {
    if (!executor.holds(state->home.part, state->positions[i]))
      continue;
    Bytes buffer(static_cast<size_t>(state->bytes));
    TESSERA_RETURN_IF_ERROR(executor.readHeld(state->home.part, state->positions[i],
                                              state->home.slot, buffer.data(), state->bytes));
    forEachRow(state->home.layout, state->mesh, static_cast<int64_t>(i),
               [&](int64_t at, int64_t to, int64_t elements) {
                 std::memcpy(box + static_cast<size_t>(to) * size,
                             buffer.data() + static_cast<size_t>(at) * size,
                             static_cast<size_t>(elements) * size);
               });
    return {};
  }
  return {};
}

void HostMove::preferOwn(int64_t devices) {
  State &all = *state;
  std::map<int64_t, std::set<sharding::Box>> boxes; ///< by process
  for (size_t i = 0; i < all.positions.size(); ++i)
    boxes[all.mesh.processIds[i] / devices].insert(
        all.home.layout.valid(all.mesh, all.mesh.coordinate(static_cast<int64_t>(i))));
  all.ownIsWhole = all.isBox() && static_cast<int64_t>(boxes.size()) * devices == all.devices;
  for (auto &[process, held] : boxes) {
    int64_t elements = 0;
    for (const sharding::Box &box : held)
      elements += box.numElements();
    all.ownIsWhole &= elements == *elementCount(all.home.layout.globalShape);
  }
}

Status HostMove::State::readOwn(Executor &executor, std::byte *value) const {
  const auto size = static_cast<size_t>(move.elementBytes());
  const Shape &shape = home.layout.globalShape;
  Bytes buffer(static_cast<size_t>(bytes));
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!executor.holds(home.part, positions[i]))
      continue;
    TESSERA_RETURN_IF_ERROR(
        executor.readHeld(home.part, positions[i], home.slot, buffer.data(), bytes));
    auto position = static_cast<int64_t>(i);
    sharding::Box valid = home.layout.valid(mesh, mesh.coordinate(position));
    forEachRow(home.layout, mesh, position, [&](int64_t at, int64_t inBox, int64_t elements) {
      int64_t to = 0, stride = 1, index = inBox;
      for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
        to += (valid.offset[d] + index % valid.size[d]) * stride;
        index /= valid.size[d];
      }
      std::memcpy(value + static_cast<size_t>(to) * size,
                  buffer.data() + static_cast<size_t>(at) * size,
                  static_cast<size_t>(elements) * size);
    });
  }
  return {};
}

/// Buffers of devices of other processes are not created here.
Status HostMove::State::write(Executor &executor, const Fill &fill) const {
  std::vector<Bytes> staging; // where the host cannot reach the devices' memory
  std::vector<std::byte *> buffers;
  std::vector<size_t> staged;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!executor.holds(home.part, positions[i])) {
      buffers.push_back(nullptr);
      continue;
    }
    std::byte *data = executor.keepsOnDevices()
                          ? nullptr // copied in the order of the device's work
                          : executor.slotData(home.part, positions[i], home.slot);
    if (!data) {
      data = staging.emplace_back(static_cast<size_t>(bytes)).data();
      staged.push_back(i);
    }
    buffers.push_back(data);
  }
  for (const MovePiece &piece : move.pieces()) // each has one target
    if (buffers[piece.targets.front().position])
      fill(piece, buffers.data());
  for (size_t i : staged)
    TESSERA_RETURN_IF_ERROR(
        executor.writeSlot(home.part, positions[i], home.slot, buffers[i], bytes));
  return {};
}

std::vector<bool> HostMove::State::needed() const {
  std::vector<bool> isNeeded(positions.size());
  for (const MovePiece &piece : move.pieces())
    for (const End &from : piece.sources)
      isNeeded[from.position] = true;
  return isNeeded;
}

/// Reads replicated data from one device; data that all devices hold from one of this process,
/// without the others.
Status HostMove::State::read(Executor &executor, std::byte *value,
                             Executor::Readers readers) const {
  if (everywhere) {
    if (readers == Executor::Readers::reporter && !executor.reportsResults())
      return {};
    for (int64_t position : positions)
      if (executor.holds(home.part, position))
        return executor.readHeld(home.part, position, home.slot, value, bytes);
  }
  if (ownIsWhole) {
    if (readers == Executor::Readers::reporter && !executor.reportsResults())
      return {};
    return readOwn(executor, value);
  }
  std::vector<bool> isNeeded = needed();
  std::vector<int64_t> asked;
  std::vector<size_t> places;
  for (size_t i = 0; i < positions.size(); ++i)
    if (isNeeded[i]) {
      asked.push_back(positions[i]);
      places.push_back(i);
    }
  std::vector<Bytes> staging;
  auto found = executor.readSlots(home.part, asked, home.slot, bytes, readers, staging);
  if (!found)
    return found.status();
  if (readers == Executor::Readers::reporter && !executor.reportsResults())
    return {};
  std::vector<const std::byte *> buffers(positions.size());
  for (size_t i = 0; i < places.size(); ++i)
    buffers[places[i]] = (*found)[i];
  move.runAll(buffers.data(), &value, nullptr);
  return {};
}

bool HostMove::isReadHere(const Executor &executor) const {
  return state->everywhere || state->ownIsWhole || isHere(executor);
}

Expected<HostMove::Buffers> HostMove::keep(Executor &executor) const {
  const State &all = *state;
  if (!executor.keepsOnDevices())
    return Buffers();
  std::vector<bool> isNeeded = all.needed();
  if (all.everywhere) { // any of them serves
    size_t own = 0;
    while (own < all.positions.size() && !executor.holds(all.home.part, all.positions[own]))
      ++own;
    isNeeded.assign(all.positions.size(), false);
    if (own < all.positions.size())
      isNeeded[own] = true;
  }
  for (size_t i = 0; i < isNeeded.size(); ++i)
    if (isNeeded[i] && !executor.holds(all.home.part, all.positions[i]))
      return Buffers();
  // A device of this process may provide its own data again, although no reader requests it.
  Buffers buffers(all.positions.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!executor.holds(all.home.part, all.positions[i]))
      continue;
    auto kept = executor.keepSlot(all.home.part, all.positions[i], all.home.slot, all.bytes);
    if (!kept)
      return kept.status();
    buffers[i] = std::move(*kept);
  }
  return buffers;
}

Status HostMove::read(const Buffers &buffers, std::byte *value) const {
  const State &all = *state;
  if (DeviceBuffer *whole = wholeOf(buffers))
    return whole->read(value);
  std::vector<bool> isNeeded = all.needed();
  std::vector<Bytes> staging(buffers.size());
  std::vector<const std::byte *> sources(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    if (isNeeded[i]) {
      staging[i].resize(static_cast<size_t>(all.bytes));
      TESSERA_RETURN_IF_ERROR(buffers[i]->read(staging[i].data()));
      sources[i] = staging[i].data();
    }
  all.move.runAll(sources.data(), &value, nullptr);
  return {};
}

bool HostMove::takes(const Executor &executor, const HostMove &from, const Buffers &buffers) const {
  const State &to = *state, &of = *from.state;
  if (to.bytes != of.bytes || to.positions.size() != of.positions.size())
    return false;
  bool areSingleShards = to.positions.size() == 1 && to.isWhole() && of.isWhole();
  bool haveEqualShards = to.mesh.processIds == of.mesh.processIds &&
                         to.mesh.shape == of.mesh.shape && to.home.layout == of.home.layout;
  if (!areSingleShards && !haveEqualShards)
    return false;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (executor.holds(to.home.part, to.positions[i]) &&
        (!buffers[i] || !executor.takes(to.home.part, to.positions[i], *buffers[i])))
      return false;
  return true;
}

Status HostMove::fill(Executor &executor, const Buffers &buffers) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (executor.holds(state->home.part, state->positions[i]))
      TESSERA_RETURN_IF_ERROR(
          executor.fillSlot(state->home.part, state->positions[i], state->home.slot, *buffers[i]));
  return {};
}

bool HostMove::takesMemory(const Executor &executor, int64_t ordinal) const {
  return state->isWhole() &&
         std::all_of(state->positions.begin(), state->positions.end(), [&](int64_t position) {
           return executor.takesMemory(state->home.part, position, ordinal);
         });
}

Status HostMove::fillFrom(Executor &executor, const std::byte *data) const {
  for (int64_t position : state->positions)
    TESSERA_RETURN_IF_ERROR(
        executor.fillSlotFrom(state->home.part, position, state->home.slot, data, state->bytes));
  return {};
}

DeviceBuffer *HostMove::wholeOf(const Buffers &buffers) const {
  if (!state->isWhole())
    return nullptr;
  for (const auto &buffer : buffers)
    if (buffer)
      return buffer.get();
  return nullptr;
}

Status scatter(Executor &executor, const Program &program, const Argument &argument,
               const HostTensor &value) {
  for (const Home &home : argument.homes)
    TESSERA_RETURN_IF_ERROR(
        HostMove(program, home, argument.dtype, true).write(executor, value.data.data()));
  return {};
}

Expected<HostTensor> gather(Executor &executor, const Program &program, const Result &result) {
  HostTensor value = HostTensor::zeros(result.dtype, result.globalShape);
  TESSERA_RETURN_IF_ERROR(
      HostMove(program, result.home, result.dtype, false).read(executor, value.data.data()));
  return value;
}

} // namespace tessera::runtime
