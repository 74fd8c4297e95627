//===- Group.h - Ranks that call collectives together -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_GROUP_H
#define TESSERA_LIB_RUNTIME_GROUPS_GROUP_H

#include "../Ranks/Guard.h"
#include "Job.h"
#include "Mailbox.h"

#include <map>

namespace tessera::runtime {

/// Ranks of a job. All of them make the same calls in the same order; ranks compare their calls
/// before data moves, and if they differ, the call fails on all of them with the same message, and
/// the group stays usable.
class Group {
public:
  /// All ranks of the job.
  static Expected<std::unique_ptr<Group>> ofJob(std::shared_ptr<Job> job, double timeout);
  /// Some of the ranks, in ascending order. Called by all ranks of this group, with the same ranks;
  /// null for those outside of the new group.
  Expected<std::unique_ptr<Group>> make(const std::vector<int64_t> &ranks, double timeout);

  const std::vector<int64_t> &members() const { return ranks; }
  Job &job() { return *owner; }

  WorkPtr call(const GroupCall &call);
  /// Completes when all ranks have called it; fails like collectives if one makes another call.
  WorkPtr barrier(const std::string &where = "");
  /// Exchanges failures, so that all ranks learn of the first one. Called by all.
  Status agree(const Status &status);
  /// Rejects the call that the others make: it fails on all of them with this reason.
  WorkPtr refuse(const std::string &reason);
  /// Messages of a peer, a rank of the job, arrive in the order of its sends, per tag. `peer` -1
  /// receives from any.
  WorkPtr send(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
               const std::string &type);
  std::shared_ptr<ReceiveWork> receive(int64_t peer, int64_t tag, std::byte *data, int64_t bytes,
                                       const std::string &type);
  /// The same for device memory, through the host.
  WorkPtr sendFromDevice(int64_t peer, int64_t tag, const std::byte *data, int64_t bytes,
                         const std::string &type, void *stream);
  std::shared_ptr<ReceiveWork> receiveToDevice(int64_t peer, int64_t tag, std::byte *data,
                                               int64_t bytes, const std::string &type);
  /// The algorithm of a call.
  Expected<Algorithm> algorithmOf(const GroupCall &call);
  /// The bytes that this rank sends in a call, by place in the group.
  Expected<std::vector<int64_t>> sentBytesOf(const GroupCall &call);

private:
  class CallWork;
  class DeviceRun;
  Group(std::shared_ptr<Job> job, std::vector<int64_t> ranks, double timeout);
  Status open(Transport &transport);
  Deadline deadline() const { return after(timeout); }
  Expected<PlanRequest> request(const GroupCall &call) const;
  Expected<std::shared_ptr<const MessagePlan>> planOf(const GroupCall &call,
                                                      const PlanRequest &request);
  WorkPtr guarded(CallDescription description);
  WorkPtr refused(const GroupCall &call, const Status &why);
  WorkPtr callOnDevice(const GroupCall &call, const PlanRequest &request);
  CallShapePtr shapeOf(const CallDescription &description) const;

  const std::shared_ptr<Job> owner;
  const std::vector<int64_t> ranks;
  const double timeout; ///< seconds
  std::vector<int64_t> hosts;
  int64_t self = 0; ///< place
  int64_t channel = 0;
  Job::Queue queue = 0;
  std::string name; ///< the same on all members
  std::shared_ptr<Mailbox> mailbox;
  /// Shared by calls, which run one after the other.
  const std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  /// The device's communicator, created by the first call; -1 before. Used in the job's thread.
  int64_t communicator = -1;
  std::mutex mutex;
  std::map<std::vector<int64_t>, std::shared_ptr<const MessagePlan>> plans;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_GROUP_H
