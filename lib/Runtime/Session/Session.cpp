//===- Session.cpp - A program opened, fed and stepped --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/Session/Session.h"

#include "../Artifact/Steps.h"
#include "tessera/Runtime/Execution/GemmTable.h"
#include "tessera/Runtime/Session/RandomInput.h"

#include <algorithm>
#include <set>

namespace tessera::runtime {

/// The slots that steps write.
static std::set<int64_t> writtenBy(const StepList &steps) {
  std::set<int64_t> written;
  forEachStep(steps, [&](const Step &step) {
    for (int64_t slot : writtenSlots(step))
      written.insert(slot);
  });
  return written;
}

/// Whether some of the slots `others` are in the memory of a slot.
static bool sharesMemory(const Part &part, int64_t slot, const std::set<int64_t> &others) {
  const Slot &mine = part.slots[slot];
  return std::any_of(others.begin(), others.end(), [&](int64_t other) {
    const Slot &theirs = part.slots[other];
    return theirs.space == Slot::Space::arena && mine.offset < theirs.offset + theirs.bytes &&
           theirs.offset < mine.offset + mine.bytes;
  });
}

Status checkDevices(const Program &program, int64_t devices) {
  if (devices == 0 || devices >= program.numDevices())
    return {};
  for (const sharding::Mesh &mesh : program.meshes)
    for (int64_t id : mesh.processIds)
      if (id + 1 == program.numDevices())
        return Status::error("mesh '" + mesh.name + "' has process id " + std::to_string(id) +
                             " and needs " + std::to_string(id + 1) + " devices, --devices is " +
                             std::to_string(devices));
  return {};
}

Expected<std::unique_ptr<Session>> Session::open(std::shared_ptr<const Artifact> artifact,
                                                 const SessionOptions &options) {
  const std::string &precision = options.devices.precision;
  if (!precision.empty() && precision != "highest" && precision != "high")
    return Status::error("precision '" + precision +
                         "' is not valid: expected highest (f32) or high (TF32)");
  TESSERA_RETURN_IF_ERROR(checkGemmChoice());
  auto found = findBackend(options.backend);
  if (!found)
    return found.status();
  if (found->name != "tcp") // whose processes may have several devices each
    TESSERA_RETURN_IF_ERROR(checkDevices(artifact->program, options.devices.devices));
  auto executor = found->open(artifact, options.devices, found->userData);
  if (!executor)
    return executor.status().in("backend " + found->name);
  return std::unique_ptr<Session>(
      new Session(std::move(artifact), std::move(*executor), options.seed));
}

Session::Session(std::shared_ptr<const Artifact> loaded, std::unique_ptr<Executor> executor,
                 uint64_t seed)
    : artifact(std::move(loaded)), backend(std::move(executor)), seed(seed),
      arguments(artifact->program.arguments.size()) {
  const Program &program = artifact->program;
  std::vector<std::set<int64_t>> written, results(program.parts.size());
  for (const Part &part : program.parts)
    written.push_back(writtenBy(part.steps));
  for (const Result &result : program.results)
    results[result.home.part].insert(result.home.slot);
  for (size_t i = 0; i < arguments.size(); ++i)
    for (const Home &home : program.arguments[i].homes) {
      arguments[i].moves.emplace_back(program, home, program.arguments[i].dtype, true);
      const Part &part = program.parts[home.part];
      arguments[i].overwritten |= sharesMemory(part, home.slot, written[home.part]);
      arguments[i].sharesResults |= sharesMemory(part, home.slot, results[home.part]);
    }
  std::set<int64_t> here;
  for (size_t part = 0; part < program.parts.size(); ++part) {
    const sharding::Mesh &mesh = program.meshes[program.parts[part].mesh];
    for (size_t position = 0; position < mesh.processIds.size(); ++position) {
      bool isHere = backend->holds(static_cast<int64_t>(part), static_cast<int64_t>(position));
      isAlone &= isHere;
      if (isHere)
        here.insert(mesh.processIds[position]);
    }
  }
  for (const Result &result : program.results) {
    if (result.feeds)
      arguments[*result.feeds].fed = true;
    resultMoves.push_back(std::make_shared<HostMove>(program, result.home, result.dtype, false));
    if (!isAlone && here.size() > 1)
      resultMoves.back()->preferOwn(static_cast<int64_t>(here.size()));
  }
}

Session::~Session() = default;

Expected<HostTensor> KeptValue::read() const {
  HostTensor value = HostTensor::zeros(type, extents);
  TESSERA_RETURN_IF_ERROR(move->read(buffers, value.data.data()));
  return value;
}

Expected<std::shared_ptr<KeptValue>> Session::keepResult(int64_t index) {
  auto buffers = resultMoves[index]->keep(*backend);
  if (!buffers)
    return buffers.status();
  if (buffers->empty())
    return std::shared_ptr<KeptValue>();
  auto made = std::make_shared<KeptValue>();
  made->move = resultMoves[index];
  made->buffers = std::move(*buffers);
  made->type = artifact->program.results[index].dtype;
  made->extents = artifact->program.results[index].globalShape;
  return made;
}

void Session::ArgumentState::clear() {
  value.reset();
  box.reset();
  kept.reset();
  foreign = nullptr;
  changed = true;
}

bool Session::setArgument(int64_t index, std::shared_ptr<KeptValue> value) {
  const Argument &argument = artifact->program.arguments[index];
  ArgumentState &state = arguments[index];
  bool taken = value->type == argument.dtype && value->extents == argument.globalShape &&
               std::all_of(state.moves.begin(), state.moves.end(), [&](const HostMove &move) {
                 return move.takes(*backend, *value->move, value->buffers);
               });
  if (!taken)
    return false;
  state.clear();
  state.kept = std::move(value);
  return true;
}

bool Session::setArgument(int64_t index, const std::byte *data, int64_t ordinal) {
  ArgumentState &state = arguments[index];
  bool everyStep = !state.fed && state.overwritten; // it would have to be kept
  bool taken =
      !everyStep && std::all_of(state.moves.begin(), state.moves.end(), [&](const HostMove &move) {
        return move.takesMemory(*backend, ordinal);
      });
  if (!taken)
    return false;
  state.clear();
  state.foreign = data;
  return true;
}

Status Session::setArgument(int64_t index, HostTensor value) {
  const Argument &argument = artifact->program.arguments[index];
  if (value.dtype != argument.dtype || value.shape != argument.globalShape)
    return Status::error("argument '" + argument.name + "' is " +
                         typeText(argument.dtype, argument.globalShape) + ", not " +
                         typeText(value.dtype, value.shape));
  arguments[index].clear();
  arguments[index].value = std::move(value);
  // Before the first step no results share memory with arguments: the value is placed immediately,
  // and a process keeps only the part of its devices.
  return steps == 0 ? placeArgument(index) : Status();
}

Status Session::setArgument(int64_t index, const std::byte *value) {
  const Argument &argument = artifact->program.arguments[index];
  ArgumentState &state = arguments[index];
  bool everyStep = !state.fed && state.overwritten; // it has to be kept
  if (!everyStep && (steps == 0 || !state.sharesResults)) {
    state.clear();
    for (const HostMove &move : state.moves)
      TESSERA_RETURN_IF_ERROR(move.write(*backend, value));
    state.changed = false;
    return {};
  }
  HostTensor copy = state.value ? std::move(*state.value)
                                : HostTensor::zeros(argument.dtype, argument.globalShape);
  std::copy_n(value, copy.data.size(), copy.data.data());
  return setArgument(index, std::move(copy));
}

static Session::Held atMostOne(Session::Held held) {
  return held && held->size() <= 1 ? held : Session::Held();
}

Session::Held Session::heldOfArgument(int64_t index) const {
  const std::vector<HostMove> &moves = arguments[index].moves;
  return isAlone || moves.size() != 1 ? Held() : atMostOne(moves.front().heldBoxes(*backend));
}

Session::Held Session::heldOfResult(int64_t index) const {
  return isAlone ? Held() : atMostOne(resultMoves[index]->heldBoxes(*backend));
}

Status Session::setArgumentBox(int64_t index, Bytes box) {
  ArgumentState &state = arguments[index];
  state.clear();
  state.box = std::move(box);
  return steps == 0 ? placeArgument(index) : Status();
}

Status Session::readResultBox(int64_t index, std::byte *box) {
  return resultMoves[index]->readBox(*backend, box);
}

Status Session::placeArgument(int64_t index) {
  ArgumentState &state = arguments[index];
  if (!state.changed && (state.fed || !state.overwritten))
    return {};
  if (state.box) {
    TESSERA_RETURN_IF_ERROR(state.moves.front().writeBox(*backend, state.box->data()));
    state.changed = false;
    if (state.fed || !state.overwritten)
      state.box.reset();
    return {};
  }
  if (state.kept || state.foreign) {
    for (HostMove &move : state.moves)
      TESSERA_RETURN_IF_ERROR(state.kept ? move.fill(*backend, state.kept->buffers)
                                         : move.fillFrom(*backend, state.foreign));
    state.changed = false;
    state.foreign = nullptr;
    if (state.fed || !state.overwritten)
      state.kept.reset();
    return {};
  }
  const Argument &argument = artifact->program.arguments[index];
  bool isElsewhere = std::any_of(state.moves.begin(), state.moves.end(),
                                 [&](const HostMove &move) { return !move.isHere(*backend); });
  if (!state.value && isElsewhere) {
    auto elements = [&](int64_t begin, int64_t count, std::byte *at) {
      randomElements(argument, index, seed, begin, count, at);
    };
    for (HostMove &move : state.moves)
      TESSERA_RETURN_IF_ERROR(move.make(*backend, elements, !state.fed && state.overwritten));
    state.changed = false;
    return {};
  }
  if (!state.value)
    state.value = randomInput(argument, index, seed);
  for (const HostMove &move : state.moves)
    TESSERA_RETURN_IF_ERROR(move.write(*backend, state.value->data.data()));
  state.changed = false;
  if (state.fed || !state.overwritten)
    state.value.reset(); // the devices have it
  return {};
}

Status Session::placeArguments() {
  for (size_t i = 0; i < arguments.size(); ++i)
    TESSERA_RETURN_IF_ERROR(placeArgument(static_cast<int64_t>(i)));
  return {};
}

Status Session::step() {
  TESSERA_RETURN_IF_ERROR(placeArguments());
  TESSERA_RETURN_IF_ERROR(backend->run().in("step " + std::to_string(steps + 1)));
  ++steps;
  return {};
}

Expected<HostTensor> Session::result(int64_t index, Executor::Readers readers) {
  const Result &result = artifact->program.results[index];
  bool reads = readers == Executor::Readers::all || backend->reportsResults();
  HostTensor value = reads ? HostTensor::zeros(result.dtype, result.globalShape)
                           : HostTensor{result.dtype, {}, {}};
  TESSERA_RETURN_IF_ERROR(readResult(index, value.data.data(), readers));
  return value;
}

Status Session::readResult(int64_t index, std::byte *value, Executor::Readers readers) {
  return resultMoves[index]->read(*backend, value, readers);
}

} // namespace tessera::runtime
