//===- ComputeWindows.cpp - Windows of computed values --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window of a computed value is moved, or computed from windows of what the value is
// computed of:
//
//   reshard(f(x)) to W     f(reshard(x) to W'), which has the windows W
//
// The second sends less where f makes rows wider, as the resize before a convolution does,
// and where windows of several ops are one of their source: the derivative of a reflected
// border adds rows beyond the ends of a grid to those inside, whose number is another, so
// that they are cut elsewhere. Devices compute the borders of their windows as well as
// their neighbors do; that may cost what a device computes while the bytes saved are sent.
// Where all readers of a value have windows of their own, the value itself is not computed.
//
//===----------------------------------------------------------------------===//

#include "ComputeWindows.h"
#include "WindowReshards.h"

#include "tessera/Dialect/Dist/Rules/ShardingRuleInterface.h"
#include "tessera/Dialect/Dist/Rules/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using sharding::TensorSharding;

/// Iterations of loops that a device executes in the time of sending a byte, or more.
static constexpr double kIterationsOfAByte = 16;
/// Values behind each other, and windows in all, that are considered.
static constexpr int kMostDepth = 64;
static constexpr size_t kMostWindows = 4000;
/// Bytes of what cannot be sent.
static constexpr int64_t kNever = int64_t(1) << 60;

namespace {

class WindowComputer : WindowReshards {
public:
  WindowComputer(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings)
      : WindowReshards(meshes, shardings), function(function) {}

  void run() {
    function.walk([&](Operation *op) { numbers.try_emplace(op, numbers.size()); });
    SmallVector<Root> roots;
    function.walk([&](ReshardOp op) {
      if (std::optional<Root> root = rootOf(op))
        roots.push_back(*root);
    });
    // Roots with a value in common are decided together: it is only computed if one moves it, and
    // what they need of one value is moved once.
    SmallVector<bool> isDone(roots.size());
    for (size_t first = 0; first < roots.size(); ++first) {
      if (isDone[first])
        continue;
      Group group;
      for (bool grows = true; grows;) {
        grows = false;
        for (size_t r = first; r < roots.size(); ++r)
          if (!isDone[r] && (r == first || isRelated(roots[r], group))) {
            isDone[r] = grows = true;
            group.roots.push_back(roots[r]);
            add(group.moves, ways.at(roots[r].key));
            for (const Key &key : roots[r].windows) {
              if (group.seen.insert(key).second)
                group.windows.push_back(key);
              group.ops.insert(key.first.getDefiningOp());
            }
          }
      }
      addOtherReaders(group);
      if (isWorthwhile(group))
        compute(group);
    }
    for (auto [op, value] : replaced)
      op->getResult(0).replaceAllUsesWith(value);
    if (!replaced.empty())
      eraseUnused();
    shareRows();
  }

private:
  /// A value and the sharding that it is needed in.
  using Key = std::pair<Value, TensorSharding>;
  struct Less {
    bool operator()(const Key &a, const Key &b) const {
      return a.first != b.first ? a.first.getAsOpaquePointer() < b.first.getAsOpaquePointer()
                                : a.second < b.second;
    }
  };
  /// What is moved for a window: by number its bytes, each once.
  using Moves = std::map<size_t, int64_t>;
  struct Way {
    Moves moves;
    int64_t bytes = kNever;                            ///< of all moves
    std::optional<sharding::OpSharding> computed = {}; ///< else it is moved
    bool isSelected = false; ///< of windows that select nothing along dimensions that are whole
    bool isFill = false;     ///< of windows of a pad or a rearrangement with nothing else
    bool isMoved() const { return !computed && !isSelected && !isFill; }
  };
  struct Root {
    ReshardOp op;
    Key key;                  ///< of its operand and result
    int64_t direct;           ///< bytes if it is moved
    SmallVector<Key> windows; ///< that are computed
  };
  struct Group {
    SmallVector<Root> roots;
    Moves moves;
    std::set<Key, Less> seen;
    SmallVector<Key> windows;
    llvm::SetVector<Operation *> ops;
  };

  std::optional<Root> rootOf(ReshardOp op) {
    if (!isMovable(op))
      return std::nullopt;
    Value source = op.getOperand();
    TensorSharding target = shardingOf(op.getResult());
    mesh = op.getSharding().getMesh();
    int64_t direct = exchangedBytes(source, target, meshes.get(mesh));
    const Way &way = wayTo({source, target}, 0);
    if (way.isMoved() || way.bytes > direct || direct == 0)
      return std::nullopt;
    Root root{op, {source, target}, direct, {}};
    std::set<Key, Less> seen;
    collect({source, target}, seen, root.windows);
    return root;
  }

  /// Windows of values that a group computes which nobody has to send are computed with the others,
  /// so that the values themselves are not.
  void addOtherReaders(Group &group) {
    auto isRoot = [&](ReshardOp op) {
      return replaced.contains(op) ||
             llvm::any_of(group.roots, [&](const Root &root) { return root.op == op; });
    };
    for (Root root : SmallVector<Root>(group.roots)) {
      mesh = root.op.getSharding().getMesh();
      std::set<Key, Less> seen;
      alsoCompute(root.key, group, seen);
    }
    // Readers first: what only feeds ops that are not needed any more is not needed either.
    SmallVector<Operation *> ops(group.ops.begin(), group.ops.end());
    llvm::sort(ops, [&](Operation *a, Operation *b) { return numberOf(a) > numberOf(b); });
    for (Operation *each : ops)
      for (Operation *user : each->getUsers()) {
        auto op = dyn_cast<ReshardOp>(user);
        if (!op || isRoot(op) || op->hasAttr(DistDialect::kMove))
          continue;
        llvm::DenseSet<Operation *> unneeded = unneededIn(group);
        if (llvm::all_of(op->getUsers(), [&](Operation *u) { return unneeded.contains(u); }) ||
            getSharding(op.getOperand()).getMesh() != op.getSharding().getMesh())
          continue;
        mesh = op.getSharding().getMesh();
        Key key{op.getOperand(), shardingOf(op.getResult())};
        std::set<Key, Less> seen;
        alsoCompute(key, group, seen);
        if (!ways.at(key).isMoved())
          group.roots.push_back({op, key, 0, {}});
      }
    group.seen.clear();
    group.windows.clear();
    for (Root &root : group.roots)
      collect(root.key, group.seen, group.windows);
    for (const Key &key : group.windows)
      group.ops.insert(key.first.getDefiningOp());
  }

  /// Lets a window be computed if the group computes others of its value, and that sends no more.
  void alsoCompute(const Key &key, const Group &group, std::set<Key, Less> &seen) {
    Way way = wayTo(key, 0);
    if (!seen.insert(key).second || way.isFill)
      return;
    if (way.isMoved()) {
      if (!key.first.getDefiningOp() || !group.ops.contains(key.first.getDefiningOp()))
        return;
      Key whole{key.first, withoutWhole(key.second)};
      if (whole.second != key.second &&
          (group.seen.contains(whole) || (seen.contains(whole) && !ways.at(whole).isMoved()))) {
        ways[key] = {{}, 0, std::nullopt, true};
        return;
      }
      way.computed = computedAs(key.first, key.second);
      if (!way.computed) {
        if (whole.second == key.second)
          return;
        alsoCompute(whole, group, seen);
        if (!ways.at(whole).isMoved() && ways.at(whole).bytes <= way.bytes)
          ways[key] = {ways.at(whole).moves, ways.at(whole).bytes, std::nullopt, true};
        return;
      }
    } else if (way.isSelected) {
      return alsoCompute({key.first, withoutWhole(key.second)}, group, seen);
    }
    Moves moves;
    bool isPossible = forEachOperand(key, *way.computed, [&](unsigned, const Key &need) {
      alsoCompute(need, group, seen);
      return add(moves, ways.at(need)) <= way.bytes;
    });
    if (isPossible)
      ways[key] = {moves, add(moves, {}), way.computed};
  }

  /// Without selections along dimensions that are not cut.
  static TensorSharding withoutWhole(TensorSharding sharding) {
    llvm::erase_if(sharding.windows, [&](const sharding::Window &window) {
      return sharding.dims[window.dim].empty();
    });
    return sharding;
  }

  void collect(const Key &key, std::set<Key, Less> &seen, SmallVector<Key> &windows) {
    const Way &way = ways.at(key);
    if (way.isMoved() || way.isFill || !seen.insert(key).second)
      return;
    if (way.isSelected)
      return collect({key.first, withoutWhole(key.second)}, seen, windows);
    windows.push_back(key);
    forEachOperand(key, *way.computed, [&](unsigned, const Key &need) {
      collect(need, seen, windows);
      return true;
    });
  }

  /// Calls with each operand that an op which computes a window needs, behind its reshard. False if
  /// a call is, or if an operand is on another mesh.
  bool forEachOperand(const Key &key, const sharding::OpSharding &own,
                      llvm::function_ref<bool(unsigned, const Key &)> visit) {
    Operation *made = key.first.getDefiningOp();
    const sharding::ShardingRule &rule = shardings.of(made).rule;
    unsigned position = 0;
    for (OpOperand &operand : made->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        return false;
      Value source = sourceOf(operand.get(), mesh);
      if (!source ||
          !visit(operand.getOperandNumber(), {source, operandSharding(rule, position++, own)}))
        return false;
    }
    return true;
  }

  /// Adds the moves of a way, and returns the bytes of all.
  static int64_t add(Moves &moves, const Way &way) {
    moves.insert(way.moves.begin(), way.moves.end());
    int64_t bytes = 0;
    for (auto [number, sent] : moves)
      bytes += sent;
    return bytes;
  }

  /// How a value gets to a sharding with the fewest bytes, which must not be partial.
  const Way &wayTo(const Key &key, int depth) {
    if (auto known = ways.find(key); known != ways.end())
      return known->second;
    Way way;
    auto [value, target] = key;
    TensorSharding has = shardingOf(value);
    if (!has.isPartial() && !target.isPartial())
      way.bytes = has == target ? 0 : exchangedBytes(value, target, meshes.get(mesh));
    if (way.bytes > 0)
      way.moves[numMoves++] = way.bytes;
    if (target.windows.size() > 0 && isFill(value, target))
      return ways[key] = {{}, 0, std::nullopt, false, true};
    if (way.bytes > 0 && depth < kMostDepth && ways.size() < kMostWindows) {
      if (std::optional<sharding::OpSharding> own = computedAs(value, target)) {
        Moves moves;
        bool isPossible = forEachOperand(key, *own, [&](unsigned, const Key &need) {
          return add(moves, wayTo(need, depth + 1)) <= way.bytes;
        });
        // A source that is moved in place of what is made of it may be moved for others, too.
        if (isPossible && (add(moves, {}) < way.bytes || moves.size() == 1))
          way = {moves, add(moves, {}), own};
      } else if (Key whole{value, withoutWhole(target)}; whole.second != target) {
        if (const Way &all = wayTo(whole, depth + 1);
            all.bytes < way.bytes ||
            (all.bytes == way.bytes && all.moves.size() == 1 && !all.isMoved()))
          way = {all.moves, all.bytes, std::nullopt, true};
      }
    }
    return ways[key] = way;
  }

  /// Whether windows of a padded or rearranged value have none of its operands' elements.
  bool isFill(Value value, const TensorSharding &target) {
    Operation *made = value.getDefiningOp();
    auto pad = dyn_cast_or_null<tensor::PadOp>(made);
    auto rearrange = dyn_cast_or_null<RearrangeOp>(made);
    if ((!pad && !rearrange) || !movesWindows(made))
      return false;
    return llvm::any_of(target.windows, [&](const sharding::Window &window) {
      if (!window.isSelection() || window.stride != 1)
        return false;
      int64_t begin = window.begin, end = window.begin + window.count;
      if (pad) {
        int64_t low = pad.getStaticLow()[window.dim];
        int64_t high = low + pad.getSourceType().getDimSize(window.dim);
        return !ShapedType::isDynamic(low) && (end <= low || high <= begin);
      }
      if (!rearrange.getFillAttr() || static_cast<int64_t>(rearrange.getDim()) != window.dim)
        return false;
      for (size_t i = 0; i < rearrange.getInputs().size(); ++i) {
        sharding::Segment segment = rearrange.getSegment(i);
        for (int64_t t = 0; t < segment.count; ++t)
          if (int64_t at = segment.to + t * segment.toStep; begin <= at && at < end)
            return false;
      }
      return true;
    });
  }

  /// A splat constant in place of windows of a value that have nothing but its fill.
  Value makeFill(Value value, const TensorSharding &target, Operation *before) {
    Operation *made = value.getDefiningOp();
    Attribute fill = fillOf(value);
    OpBuilder builder(before);
    auto type = cast<RankedTensorType>(value.getType());
    auto constant = arith::ConstantOp::create(
        builder, made->getLoc(), DenseElementsAttr::get(type, ArrayRef<Attribute>(fill)));
    sharding::OpSharding own{target.dims, {}, target.windows};
    setOpSharding(constant, mesh, meshes.get(mesh), own);
    setSharding(constant.getResult(),
                ShardingAttr::get(mesh, meshes.get(mesh), target, builder.getContext()));
    return constant.getResult();
  }

  /// The sharding of the op that makes a value if it can compute windows of it.
  std::optional<sharding::OpSharding> computedAs(Value value, const TensorSharding &target) {
    Operation *made = value.getDefiningOp();
    if (!made || !computesWindows(made) || !getOpSharding(made) ||
        !shardings.of(made).sharding.forwards.empty() || target.windows.empty())
      return std::nullopt;
    auto isWhole = [&](const sharding::Window &window) { return target.dims[window.dim].empty(); };
    if (isa<tensor::PadOp>(made) && llvm::any_of(target.windows, isWhole))
      return std::nullopt; // a slice of the padded value is local
    return opShardingFor(made, meshes.get(mesh), shardings.of(made).rule, target);
  }

  /// Iterations of the loops of an op on a device.
  double iterationsOf(Operation *op, const sharding::OpSharding &own) {
    const sharding::ShardingRule &rule = shardings.of(op).rule;
    double count = isa<linalg::LinalgOp>(op) ? 1 : 0;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      const sharding::Window *window = own.windowOf(static_cast<int64_t>(f));
      int64_t size =
          window ? window->length
                 : sharding::ceilDiv(rule.factors[f].size, sharding::sizeOf(own.factors[f]));
      if (window && window->isSelection())
        size = std::min(size, window->count);
      count *= static_cast<double>(size);
    }
    return count;
  }

  /// The ops of a group that nobody needs any more.
  llvm::DenseSet<Operation *> unneededIn(const Group &group) {
    llvm::DenseSet<Operation *> unneeded;
    auto isRoot = [&](Operation *op) {
      return replaced.contains(op) ||
             llvm::any_of(group.roots, [&](const Root &root) { return root.op == op; });
    };
    std::function<bool(Operation *)> isUnneeded = [&](Operation *user) {
      return unneeded.contains(user) || isRoot(user) ||
             (isa<ReshardOp>(user) && llvm::all_of(user->getUsers(), isUnneeded));
    };
    for (bool grows = true; grows;) {
      grows = false;
      for (Operation *op : group.ops)
        if (!unneeded.contains(op) && llvm::all_of(op->getUsers(), isUnneeded))
          grows = unneeded.insert(op).second;
    }
    return unneeded;
  }

  /// Whether a root computes an op of a group, or moves what the group does.
  bool isRelated(const Root &root, const Group &group) {
    return llvm::any_of(
               root.windows,
               [&](const Key &key) { return group.ops.contains(key.first.getDefiningOp()); }) ||
           llvm::any_of(ways.at(root.key).moves,
                        [&](auto &move) { return group.moves.count(move.first) > 0; });
  }

  bool isWorthwhile(const Group &group) {
    double saved = 0, more = 0;
    Moves moves;
    for (const Root &root : group.roots) {
      saved += static_cast<double>(root.direct);
      add(moves, ways.at(root.key));
    }
    saved -= static_cast<double>(add(moves, {{}, 0}));
    for (const Key &key : group.windows)
      more += iterationsOf(key.first.getDefiningOp(), *ways.at(key).computed);
    llvm::DenseSet<Operation *> unneeded = unneededIn(group);
    llvm::SetVector<Operation *> unread; // reshards
    for (Operation *op : group.ops)
      if (unneeded.contains(op)) {
        more -= iterationsOf(op, shardings.of(op).sharding);
        for (Value operand : op->getOperands())
          if (auto read = operand.getDefiningOp<ReshardOp>();
              read && isMovable(read) && llvm::all_of(read->getUsers(), [&](Operation *user) {
                return unneeded.contains(user);
              }))
            unread.insert(read);
      }
    for (Operation *op : unread) {
      auto read = cast<ReshardOp>(op);
      saved += static_cast<double>(exchangedBytes(read.getOperand(), shardingOf(read.getResult()),
                                                  meshes.get(read.getSharding().getMesh())));
    }
    return saved > 0 && more <= kIterationsOfAByte * saved;
  }

  /// Whether a reshard moves windows, within one mesh and without reductions.
  bool isMovable(ReshardOp op) const {
    Value source = op.getOperand();
    return getSharding(source) && getSharding(op.getResult()) && !op->hasAttr(DistDialect::kMove) &&
           getSharding(source).getMesh() == op.getSharding().getMesh() &&
           !shardingOf(source).isPartial() && !shardingOf(op.getResult()).isPartial() &&
           !shardingOf(op.getResult()).windows.empty();
  }

  void compute(const Group &group) {
    std::map<Key, Value, Less> made;
    for (const Root &root : group.roots) {
      ReshardOp op = root.op;
      mesh = op.getSharding().getMesh();
      Value value = make(root.key, op.getFillAttr(), op, made);
      replaced.insert({op, value});
    }
  }

  /// Windows of one value that differ in what they select along dimensions that are not cut are
  /// moved once, with all of these dimensions, if that sends no more.
  void shareRows() {
    llvm::MapVector<Value, SmallVector<ReshardOp>> reshards;
    function.walk([&](ReshardOp op) {
      if (isMovable(op))
        reshards[op.getOperand()].push_back(op);
    });
    for (auto &[source, all] : reshards) {
      for (ReshardOp &first : all) {
        if (!first)
          continue;
        mesh = first.getSharding().getMesh();
        TensorSharding whole = withoutWhole(shardingOf(first.getResult()));
        std::map<TensorSharding, int64_t> bytes;
        SmallVector<ReshardOp> group;
        for (ReshardOp &op : all)
          if (op && withoutWhole(shardingOf(op.getResult())) == whole &&
              op.getFillAttr() == first.getFillAttr()) {
            TensorSharding target = shardingOf(op.getResult());
            bytes[target] = exchangedBytes(source, target, meshes.get(mesh));
            if (op != first) {
              group.push_back(op);
              op = {};
            }
          }
        int64_t apart = 0;
        for (auto &[target, sent] : bytes)
          apart += sent;
        if (bytes.size() < 2 || whole.windows.empty() ||
            exchangedBytes(source, whole, meshes.get(mesh)) > apart)
          continue;
        group.push_back(first);
        Operation *made = source.getDefiningOp();
        Operation *before = made ? made->getNextNode() : &source.getParentBlock()->front();
        Value moved = reshard(before, first.getLoc(), source, mesh, whole, first.getFillAttr(),
                              first->getDiscardableAttrDictionary());
        for (ReshardOp op : group)
          op.getOperandMutable().assign(moved);
      }
    }
  }

  /// Erases what was replaced, readers first.
  void eraseUnused() {
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != function && !isa<linalg::LinalgOp, tensor::PadOp>(op->getParentOp()))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (isa<ReshardOp>(op) ? op->use_empty() : isOpTriviallyDead(op))
        op->erase();
  }

  /// A value in the sharding that it is needed in, computed or moved.
  Value make(const Key &key, Attribute fill, ReshardOp root, std::map<Key, Value, Less> &known) {
    if (auto it = known.find(key); it != known.end() && (!fill || fillOf(it->second) == fill))
      return it->second;
    auto [value, target] = key;
    const Way &way = ways.at(key);
    Operation *before = value.getDefiningOp() ? value.getDefiningOp()->getNextNode()
                                              : &value.getParentBlock()->front();
    auto fillEnds = [&](Value result) {
      return !fill || target.windows.empty() || fillOf(result) == fill
                 ? result
                 : reshard(before, root.getLoc(), result, mesh, target, fill,
                           root->getDiscardableAttrDictionary())
                       .getResult();
    };
    if (way.isFill)
      return known[key] = fillEnds(makeFill(value, target, before));
    if (way.isSelected) {
      Value whole = make({value, withoutWhole(target)}, fill, root, known);
      return known[key] = reshard(whole.getDefiningOp()->getNextNode(), root.getLoc(), whole, mesh,
                                  target, fill, root->getDiscardableAttrDictionary());
    }
    if (!way.computed) {
      if (target == shardingOf(value) && (!fill || target.windows.empty() || fillOf(value) == fill))
        return value;
      return known[key] = reshard(before, root.getLoc(), value, mesh, target,
                                  target.windows.empty() ? Attribute() : fill,
                                  root->getDiscardableAttrDictionary());
    }
    Operation *made = value.getDefiningOp();
    SmallVector<Value> operands(made->getOperands());
    forEachOperand(key, *way.computed, [&](unsigned index, const Key &need) {
      Attribute own = cast<ShardingRuleOpInterface>(made).getWindowFill(index);
      if (!own && isa<RearrangeOp>(made))
        own = fill; // along dimensions that it does not rearrange
      operands[index] = make(need, need.second.windows.empty() ? Attribute() : own, root, known);
      return true;
    });
    OpBuilder builder(before);
    Operation *copy = builder.clone(*made);
    copy->setOperands(operands);
    setOpSharding(copy, mesh, meshes.get(mesh), *way.computed);
    setSharding(copy->getResult(0),
                ShardingAttr::get(mesh, meshes.get(mesh), target, copy->getContext()));
    return known[key] = fillEnds(copy->getResult(0));
  }

  func::FuncOp function;
  size_t numberOf(Operation *op) const { return numbers.lookup(op); }

  llvm::DenseMap<Operation *, size_t> numbers; ///< in the order of the program
  FlatSymbolRefAttr mesh;                      ///< of the root at hand
  std::map<Key, Way, Less> ways;
  size_t numMoves = 0;
  llvm::MapVector<Operation *, Value> replaced; ///< roots, by what is computed in their place
};

} // namespace

void dist::computeWindows(func::FuncOp function, const MeshTable &meshes, OpShardings &shardings) {
  WindowComputer(function, meshes, shardings).run();
}
