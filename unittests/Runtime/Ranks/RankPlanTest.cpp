//===- RankPlanTest.cpp - Plans of ranks, executed without devices --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "Execution/MoveJob.h"
#include "Ranks/HostCalls.h"
#include "Ranks/RankPlan.h"

#include <deque>
#include <map>
#include <set>

using namespace tessera::runtime;

namespace {

/// A part of one collective, with the memory of its devices.
class Ranks {
public:
  Ranks(const Mesh &mesh, CollectiveKind kind, DType dtype, const Layout &source,
        const Layout &target)
      : mesh(mesh) {
    int64_t m = b.mesh(mesh);
    part = b.part(m);
    from = b.slot(part, dtype, source), to = b.slot(part, dtype, target);
    step = b.collective(kind, m, from, to, dtype, source, target);
  }

  RankPlan plan(ReducesExactly reducesExactly) const {
    return planRanks(b.program, b.program.parts[part], step, reducesExactly);
  }

  /// Executes a plan like an engine without an order of its own: any rank that can proceed does.
  void run(const RankPlan &plan) {
    auto count = static_cast<size_t>(mesh.numDevices());
    std::vector<size_t> next(count);
    for (bool went = true; went;) {
      went = false;
      for (size_t place = 0; place < count; ++place)
        while (next[place] < plan.actions[place].size() &&
               perform(plan, place, plan.actions[place][next[place]], next)) {
          ++next[place];
          went = true;
        }
    }
    for (size_t place = 0; place < count; ++place)
      EXPECT_EQ(next[place], plan.actions[place].size()) << "device " << place << " waits";
    for (auto &[route, queue] : sent)
      EXPECT_TRUE(queue.empty()) << "a message is left over";
  }

  void allocate(const RankPlan &plan) {
    auto size = static_cast<size_t>(b.program.parts[part].arenaBytes);
    arenas.assign(static_cast<size_t>(mesh.numDevices()), Bytes(size, std::byte(0xab)));
    staging.assign(arenas.size(), Bytes(static_cast<size_t>(plan.stagingBytes)));
    arrived.clear();
  }
  std::byte *slot(size_t place, int64_t index) {
    return at(place, addressOf(b.program.parts[part].slots[index]));
  }

  int64_t from, to;

private:
  std::byte *at(size_t place, int64_t address) {
    int64_t space = spaceOf(address);
    return (space == kStaging ? staging : arenas)[place].data() + (address - space);
  }

  /// False if others have not arrived yet.
  bool perform(const RankPlan &plan, size_t place, const RankAction &action,
               const std::vector<size_t> &next) {
    if (action.kind == RankAction::Kind::move) {
      MoveJob job{&action.strides, action.dtype, action.reduction,
                  action.scale,    {},           {at(place, action.target)},
                  action.value};
      for (int64_t source : action.sources)
        job.sources.push_back(at(place, source));
      runMoveJob(job);
      return true;
    }
    const std::vector<int64_t> &group = plan.groups[plan.groupOf[place]];
    if (action.kind == RankAction::Kind::exchange)
      return exchange(place, group, action);
    // The last rank to arrive executes the call for all; the others find it done on their next
    // attempt.
    auto &calls = arrived[plan.groupOf[place]];
    auto &mine = calls[{place, next[place]}];
    if (mine)
      return true;
    std::vector<const std::byte *> send;
    std::vector<std::byte *> receive;
    for (int64_t device : group) {
      auto other = static_cast<size_t>(mesh.positionOf(device));
      if (next[other] >= plan.actions[other].size() ||
          plan.actions[other][next[other]].kind != RankAction::Kind::call)
        return false;
      const RankAction &theirs = plan.actions[other][next[other]];
      if (calls[{other, next[other]}])
        return false; // it has not left the previous call
      EXPECT_EQ(theirs.call.kind, action.call.kind);
      EXPECT_EQ(theirs.call.count, action.call.count);
      auto ranks = static_cast<int64_t>(group.size());
      auto rank = static_cast<int64_t>(send.size());
      send.push_back(at(other, theirs.send));
      receive.push_back(at(other, theirs.receive));
      Status sound = checkInPlace(theirs.call, rank, ranks, send.back(), receive.back());
      EXPECT_TRUE(sound.ok()) << sound.message();
    }
    performCall(action.call, send, receive);
    for (int64_t device : group) {
      auto other = static_cast<size_t>(mesh.positionOf(device));
      calls[{other, next[other]}] = true;
    }
    return true;
  }

  /// Sends immediately, and receives once all of its messages have been sent.
  bool exchange(size_t place, const std::vector<int64_t> &group, const RankAction &action) {
    auto peerOf = [&](const RankAction::Message &message) {
      return static_cast<size_t>(mesh.positionOf(group[static_cast<size_t>(message.peer)]));
    };
    if (sending.insert({place, &action}).second)
      for (const RankAction::Message &message : action.messages)
        if (message.send) {
          const std::byte *data = at(place, message.address);
          sent[{place, peerOf(message)}].emplace_back(data, data + message.bytes);
        }
    std::map<size_t, size_t> needed;
    for (const RankAction::Message &message : action.messages)
      if (!message.send && sent[{peerOf(message), place}].size() < ++needed[peerOf(message)])
        return false;
    for (const RankAction::Message &message : action.messages)
      if (!message.send) {
        auto &queue = sent[{peerOf(message), place}];
        EXPECT_EQ(static_cast<int64_t>(queue.front().size()), message.bytes);
        std::copy(queue.front().begin(), queue.front().end(), at(place, message.address));
        queue.pop_front();
      }
    return true;
  }

  const Mesh mesh;
  ProgramBuilder b;
  int64_t part;
  CollectiveStep step;
  std::vector<Bytes> arenas, staging;
  std::map<std::pair<size_t, size_t>, std::deque<Bytes>> sent; ///< by sender and receiver
  std::set<std::pair<size_t, const RankAction *>> sending;
  /// Completed calls, by group, then by place and action.
  std::map<int64_t, std::map<std::pair<size_t, size_t>, bool>> arrived;
};

bool none(DType, ReduceKind) {
  return false;
}

/// Checks that the plan moves the data of the collective; returns the actions that it used.
std::set<std::string> check(const Mesh &mesh, CollectiveKind kind, DType dtype,
                            const Layout &source, const Layout &target,
                            ReducesExactly reducesExactly = librariesReduceExactly) {
  Ranks ranks(mesh, kind, dtype, source, target);
  RankPlan plan = ranks.plan(reducesExactly);
  ranks.allocate(plan);
  for (int64_t place = 0; place < mesh.numDevices(); ++place)
    fillSource(dtype, mesh, source, place, ranks.slot(static_cast<size_t>(place), ranks.from));
  ranks.run(plan);
  for (int64_t place = 0; place < mesh.numDevices(); ++place)
    checkTarget(dtype, mesh, source, target, place,
                ranks.slot(static_cast<size_t>(place), ranks.to), {}, std::string(toString(kind)));
  std::set<std::string> actions;
  for (const auto &list : plan.actions)
    for (const RankAction &action : list)
      if (action.kind != RankAction::Kind::move)
        actions.insert(action.what);
  return actions;
}

using Actions = std::set<std::string>;

} // namespace

TEST(RankPlan, EvenShardsAreOneCall) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Layout full = replicated({8, 3}), rows = layoutOf({8, 3}, {{a}, {}});
  Layout partial = layoutOf({8, 3}, {{}, {}}, {{a, ReduceKind::sum}});
  EXPECT_EQ(check(mesh, CollectiveKind::all_gather, DType::f32, rows, full), Actions{"all_gather"});
  EXPECT_EQ(check(mesh, CollectiveKind::all_reduce, DType::f32, partial, full),
            Actions{"all_reduce"});
  EXPECT_EQ(check(mesh, CollectiveKind::reduce_scatter, DType::f32, partial, rows),
            Actions{"reduce_scatter"});
  EXPECT_EQ(check(mesh, CollectiveKind::all_to_all, DType::f32, rows, layoutOf({8, 3}, {{}, {a}})),
            Actions{"exchange"});
}

TEST(RankPlan, UnevenShards) {
  for (const Mesh &mesh : {makeMesh({3}), makeMesh({2, 3}), makeMesh({5}, 2)})
    for (DType dtype : {DType::f32, DType::bf16, DType::i16, DType::i1})
      for (int64_t n : {7, 4, 1, 0}) {
        AxisRef a = whole(mesh, mesh.numAxes() - 1);
        Layout full = replicated({n, 5}), rows = layoutOf({n, 5}, {{a}, {}});
        Layout columns = layoutOf({n, 5}, {{}, {a}});
        Layout partial = layoutOf({n, 5}, {{}, {}}, {{a, ReduceKind::sum}});
        check(mesh, CollectiveKind::all_gather, dtype, rows, full);
        check(mesh, CollectiveKind::all_gather, dtype, columns, full);
        check(mesh, CollectiveKind::all_to_all, dtype, rows, columns);
        check(mesh, CollectiveKind::all_reduce, dtype, partial, full);
        check(mesh, CollectiveKind::reduce_scatter, dtype, partial, rows);
      }
}

TEST(RankPlan, UnsupportedReductionsAreExchanged) {
  Mesh mesh = makeMesh({4});
  AxisRef a = whole(mesh, 0);
  Layout full = replicated({8, 3}), rows = layoutOf({8, 3}, {{a}, {}});
  for (ReduceKind kind : {ReduceKind::sum, ReduceKind::avg, ReduceKind::max, ReduceKind::prod}) {
    Layout partial = layoutOf({8, 3}, {{}, {}}, {{a, kind}});
    EXPECT_EQ(check(mesh, CollectiveKind::all_reduce, DType::f32, partial, full, none),
              Actions{"exchange"});
    EXPECT_EQ(check(mesh, CollectiveKind::reduce_scatter, DType::bf16, partial, rows, none),
              Actions{"exchange"});
  }
}

TEST(RankPlan, GroupsOfEqualAxesAreEqual) {
  Mesh mesh = makeMesh({2, 3}, 4);
  AxisRef a = whole(mesh, 1);
  for (int64_t n : {6, 5}) {
    Layout full = replicated({n, 2}), rows = layoutOf({n, 2}, {{a}, {}});
    RankPlan plan = Ranks(mesh, CollectiveKind::all_gather, DType::f32, rows, full).plan(none);
    EXPECT_EQ(plan.groups, (std::vector<std::vector<int64_t>>{{4, 5, 6}, {7, 8, 9}}));
  }
}
