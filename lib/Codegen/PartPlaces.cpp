//===- PartPlaces.cpp - Assign values to buffers --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PartEmitter.h"

#include "tessera/Dialect/Dist/IR/ValueShardings.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::codegen;

int64_t PartEmitter::bytesOf(Type tensor) {
  return rt::SlotType::get(cast<RankedTensorType>(tensor)).getNumBytes();
}

Storage *PartEmitter::newStorage(Type type, const Twine &name) {
  Storage &storage = storages.emplace_back();
  storage.bytes = bytesOf(type);
  storage.name = name.str();
  return &storage;
}

Storage *PartEmitter::constantStorage(ElementsAttr value) {
  Storage *&storage = constants[value];
  if (!storage) {
    storage = newStorage(value.getType(), "c" + Twine(constants.size() - 1));
    storage->constant = value;
    storage->writable = false;
  }
  return storage;
}

void PartEmitter::assignStorage(Value root, Storage *storage, int64_t time) {
  places[root] = {storage, root, 0};
  storage->occupant = root;
  storage->live(time, std::max(time, lives.lastUse(root)));
}

PartEmitter::Place PartEmitter::placeOf(Value value) const {
  auto it = places.find(value);
  assert(it != places.end() && "a value is placed before it is used");
  return it->second;
}

/// The elements of a constant from byte `offset` on, as a tensor of another type.
static DenseElementsAttr partOf(DenseElementsAttr whole, int64_t offset, RankedTensorType type) {
  if (whole.isSplat())
    return whole.resizeSplat(type);
  if (whole.getNumElements() == type.getNumElements())
    return whole.reshape(type);
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(
        type, whole.getRawData().slice(offset, type.getNumElements() *
                                                   dist::bytesPerElement(type.getElementType())));
  auto bits = llvm::to_vector(llvm::drop_begin(whole.getValues<bool>(), offset));
  return DenseElementsAttr::get(type, ArrayRef(bits).take_front(type.getNumElements()));
}

Value PartEmitter::slotOf(Storage *storage, int64_t offset, Type tensor) {
  Value &slot = slotValues[{storage, offset, tensor}];
  if (slot)
    return slot;
  auto type = rt::SlotType::get(cast<RankedTensorType>(tensor));
  Location loc = part.getLoc();
  if (storage->constant && offset == 0 && storage->constant.getType() == tensor)
    return slot = rt::ConstantOp::create(slots, loc, type, storage->name, storage->constant);
  if (storage->constant) { // a view of a constant is another constant
    auto view =
        partOf(cast<DenseElementsAttr>(storage->constant), offset, cast<RankedTensorType>(tensor));
    return slotValues[{storage, offset, tensor}] = slotOf(constantStorage(view), 0, tensor);
  }
  std::string name = storage->name;
  if (offset)
    name += "." + std::to_string(offset);
  auto op = rt::SlotOp::create(slots, loc, type, name, 0);
  storage->slots.push_back({op, offset});
  return slot = op;
}

Value PartEmitter::slotOf(Value value) {
  Place place = placeOf(value);
  return slotOf(place.storage, place.offset, value.getType());
}

FailureOr<Value> PartEmitter::slotOfScalar(Value scalar) {
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant))) {
    auto type = RankedTensorType::get({}, scalar.getType());
    auto elements = DenseElementsAttr::get(type, constant);
    return slotOf(constantStorage(elements), 0, type);
  }
  auto extract = scalar.getDefiningOp<tensor::ExtractOp>();
  if (!extract || extract.getTensor().getType().getRank() != 0)
    return emitError(scalar.getLoc()) << "a step needs this scalar, which is not in a rank-0 "
                                         "tensor; run codegen-prepare first";
  return slotOf(extract.getTensor());
}

bool PartEmitter::isDead(Value value, int64_t time) {
  Place place = placeOf(value);
  return reuse && place.storage->writable && place.storage->occupant == place.root &&
         lives.lastUse(place.root) <= time;
}

void PartEmitter::preferStorage(Value value, Storage *storage) {
  // Through reshapes: the same bytes.
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  if (!preferences.try_emplace(value, storage).second)
    return;
  // Its in-place operand should be in that buffer, too.
  auto made = dyn_cast<OpResult>(value);
  if (!made)
    return;
  if (Operation *call = made.getOwner(); isa<func::CallOp, rt::CallBlocksOp>(call))
    preferStorage(
        call->getOperand(call->getNumOperands() - call->getNumResults() + made.getResultNumber()),
        storage);
  else if (auto loop = dyn_cast<scf::ForOp>(made.getOwner()))
    preferStorage(loop.getInitArgs()[made.getResultNumber()], storage);
  else if (auto op = dyn_cast<DestinationStyleOpInterface>(made.getOwner());
           op && isa<linalg::LinalgOp, rt::ProductOp, rt::ContractionOp>(made.getOwner()))
    preferStorage(op.getDpsInits()[made.getResultNumber()], storage);
}

Storage *PartEmitter::preferredStorage(Value root, int64_t time) {
  Storage *storage = reuse ? preferences.lookup(root) : nullptr;
  if (!storage || storage->bytes != bytesOf(root.getType()))
    return nullptr;
  if (storage->occupant && lives.lastUse(storage->occupant) >= time)
    return nullptr;
  return storage;
}

void PartEmitter::emitCopy(Location loc, Value source, Storage *target) {
  Place place = placeOf(source);
  if (place.storage == target && place.offset == 0)
    return;
  Value from = slotOf(source);
  rt::CopyOp::create(steps, loc, from, slotOf(target, 0, source.getType()));
}

void PartEmitter::assignResult(Value result, Operation *op, const Twine &name) {
  int64_t time = lives.start(op);
  Storage *storage = preferredStorage(result, time);
  assignStorage(result, storage ? storage : newStorage(result.getType(), name), time);
}

void PartEmitter::assignTied(Value result, Value carried, Operation *op, bool exclusive) {
  int64_t time = lives.start(op);
  Place place = placeOf(carried);
  if (exclusive && place.offset == 0 && place.storage->bytes == bytesOf(result.getType()) &&
      isDead(carried, time)) {
    assignStorage(result, place.storage, time);
    return;
  }
  Storage *storage = preferredStorage(result, time);
  if (!storage)
    storage = newStorage(result.getType(), place.storage->name);
  emitCopy(op->getLoc(), carried, storage);
  assignStorage(result, storage, time);
}
