//===- Generator.cpp - A random program, from meshes to results -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::fuzz;

std::vector<Kind> fuzz::allKinds() {
  std::vector<Kind> kinds;
  addElementwiseKinds(kinds);
  addContractionKinds(kinds);
  addReductionKinds(kinds);
  addShapeKinds(kinds);
  addWindowKinds(kinds);
  addIndexKinds(kinds);
  addLineKinds(kinds);
  addRecurrenceKinds(kinds);
  addAttentionKinds(kinds);
  addMoveKinds(kinds);
  addBodyKinds(kinds);
  addPartialWriteKinds(kinds);
  addPartKinds(kinds);
  addBatchKinds(kinds);
  addFlatIndexKinds(kinds);
  kinds.push_back({"for", 5, [](ProgramBuilder &p) { return p.loop(); }});
  kinds.push_back({"if", 2, [](ProgramBuilder &p) { return p.branch(); }});
  kinds.push_back({"while", 2, [](ProgramBuilder &p) { return p.repeatUntil(); }});
  kinds.push_back({"while-small", 2, [](ProgramBuilder &p) { return p.repeatWhileSmall(); }});
  addDerivativeKinds(kinds);
  return kinds;
}

std::vector<std::string> fuzz::kindNames() {
  std::vector<std::string> names;
  for (const Kind &kind : allKinds())
    names.push_back(kind.name);
  return names;
}

void ProgramBuilder::declareMeshes() {
  meshes.push_back(annotations.mesh("m", "a"));
  if (options.twoMeshes && random.percent(15))
    meshes.push_back(annotations.meshBeside(meshes[0], "n"));
  for (const sharding::Mesh &declared : meshes) {
    SmallVector<StringRef> names(declared.axisNames.begin(), declared.axisNames.end());
    DenseI64ArrayAttr ids;
    for (size_t i = 0; i < declared.processIds.size(); ++i)
      if (declared.processIds[i] != static_cast<int64_t>(i))
        ids = b.getDenseI64ArrayAttr(declared.processIds.vec());
    dist::ProcessMeshOp::create(b, loc, b.getStringAttr(declared.name),
                                b.getDenseI64ArrayAttr(declared.shape), b.getStrArrayAttr(names),
                                ids);
  }
}

bool ProgramBuilder::addOp() {
  static const std::vector<Kind> kinds = allKinds();
  std::vector<const Kind *> chosen;
  // A cast to f32 leaves too few digits to compare with differences; the others have no derivative.
  static constexpr StringRef kNotDifferentiated[] = {
      "cast",          "while",          "while-small", "branch-body",        "pad-body",
      "write-strided", "write-diagonal", "write-row",   "write-antidiagonals"};
  auto allowed = [&](StringRef name) {
    return options.differentiable ? !llvm::is_contained(kNotDifferentiated, name)
                                  : name != "random-generic";
  };
  for (const Kind &kind : kinds)
    if (allowed(kind.name) && (options.only.empty() || llvm::is_contained(options.only, kind.name)))
      chosen.insert(chosen.end(), kind.weight, &kind);
  for (int attempt = 0; attempt < 20 && !chosen.empty(); ++attempt)
    if (random.pick(chosen)->add(*this))
      return true;
  return false;
}

void ProgramBuilder::annotateValue() {
  Entry entry = any(0, 4);
  if (!entry.value)
    return;
  PartialChoice partial = partialChoice(entry.element(), 10);
  auto attr = annotations.sharding(b.getContext(), meshes[mesh], entry.rank(), partial);
  Value value =
      random.percent(80)
          ? dist::ShardTensorOp::create(b, loc, entry.value, attr).getResult()
          : dist::ReshardOp::create(b, loc, entry.value.getType(), entry.value, attr).getResult();
  entry.exact &= !partial.avg;
  pushLike(value, entry);
}

void ProgramBuilder::switchMesh() {
  // Moves a few values to the other mesh; the following ops are on that mesh.
  int next = 1 - mesh;
  int64_t count = random.between(1, 2);
  std::vector<Entry> moved;
  for (int64_t i = 0; i < count; ++i) {
    Entry entry = any(0, 4);
    if (!entry.value)
      continue;
    PartialChoice partial = partialChoice(entry.element(), 10);
    auto attr = annotations.sharding(b.getContext(), meshes[next], entry.rank(), partial);
    entry.value = dist::ReshardOp::create(b, loc, entry.value.getType(), entry.value, attr);
    entry.exact &= !partial.avg;
    entry.mesh = next;
    moved.push_back(entry);
  }
  pool.insert(pool.end(), moved.begin(), moved.end());
  mesh = next;
}

GeneratedProgram ProgramBuilder::run() {
  comparesFloats = random.percent(50);
  b.setInsertionPointToEnd(module->getBody());
  declareMeshes();
  function = func::FuncOp::create(b, loc, "main", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());

  int64_t ops = random.between(1, options.maxOps);
  for (int64_t i = 0; i < ops; ++i) {
    if (meshes.size() > 1 && random.percent(100 / static_cast<int64_t>(ops + 1)))
      switchMesh();
    if (!addOp())
      break;
    if (random.percent(15))
      annotateValue();
  }
  GeneratedProgram program;
  finish(program);
  return program;
}

std::vector<int64_t> ProgramBuilder::addFeeds(std::vector<Entry> &returned) {
  std::vector<int64_t> feeds(returned.size(), -1);
  if (options.differentiable || !random.percent(updates.empty() ? 25 : 75))
    return feeds;
  bool exact = true;
  for (auto [entry, fed] : llvm::zip_equal(returned, feeds))
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      auto sharding =
          function.getArgAttrOfType<dist::ShardingAttr>(number, dist::DistDialect::kSharding);
      bool sameMesh =
          meshes.size() == 1 ||
          (sharding && entry.mesh >= 0 && sharding.getMesh().getValue() == meshes[entry.mesh].name);
      // Other ranges are those of indices. A program that compares floats needs exact arguments.
      auto range = function.getArgAttrOfType<ArrayAttr>(number, dist::DistDialect::kRange);
      bool anyValue = !range || cast<IntegerAttr>(range[0]).getInt() == kLowest;
      if (fed >= 0 || !sameMesh || !anyValue || argument.getType() != entry.value.getType() ||
          llvm::is_contained(feeds, number) || (comparesFloats && !entry.exact) ||
          !random.percent(70))
        continue;
      fed = number;
      if (!llvm::is_contained(updates, std::pair(entry.value, argument)))
        entry = within(entry, 1);
      exact &= entry.exact;
    }
  for (Entry &entry : returned)
    entry.exact &= exact || !entry.isFloat();
  return feeds;
}

void ProgramBuilder::finish(GeneratedProgram &program) {
  if (pool.empty())
    (void)fresh(anyShape(2), anyElement());
  // Returns values without a reader first, so that they are not dead, the latest before the others.
  std::vector<Entry> returned, others;
  for (const Entry &entry : llvm::reverse(pool))
    (entry.value.use_empty() ? returned : others).push_back(entry);
  int64_t count = random.between(1, 4);
  if (returned.size() > static_cast<size_t>(count))
    returned.resize(count);
  if (!others.empty() && (returned.empty() || random.percent(20)))
    returned.push_back(random.pick(others));
  std::vector<int64_t> feeds = addFeeds(returned);
  program.runs =
      llvm::all_of(feeds, [](int64_t fed) { return fed < 0; }) ? 1 : random.between(2, 3);
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (auto [entry, fed] : llvm::zip_equal(returned, feeds)) {
    values.push_back(entry.value);
    SmallVector<NamedAttribute> named;
    if (fed >= 0)
      named.push_back(b.getNamedAttr(dist::DistDialect::kFeeds, b.getI64IntegerAttr(fed)));
    // A value without a mesh may be annotated for the first one.
    if (random.percent(50) || (meshes.size() > 1 && entry.mesh < 0)) {
      const sharding::Mesh &on = meshes[entry.mesh < 0 ? mesh : entry.mesh];
      PartialChoice partial = partialChoice(entry.element(), 10);
      named.push_back(
          b.getNamedAttr(dist::DistDialect::kSharding,
                         annotations.sharding(b.getContext(), on, entry.rank(), partial)));
      program.results.push_back({entry.exact && !partial.avg, entry.magnitude()});
    } else {
      program.results.push_back({entry.exact, entry.magnitude()});
    }
    attributes.push_back(b.getDictionaryAttr(named));
    program.steps = std::max(program.steps, entry.steps);
  }
  func::ReturnOp::create(b, loc, values);
  function.setType(b.getFunctionType(function.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [index, dictionary] : llvm::enumerate(attributes))
    function.setResultAttrs(index, dictionary);
  program.module = std::move(module);
  assert(succeeded(verify(*program.module)) && "generated programs are valid");
}

GeneratedProgram fuzz::generate(MLIRContext *context, uint64_t seed,
                                const GeneratorOptions &options) {
  return ProgramBuilder(context, seed, options).run();
}
