//===- GroupsCApi.cpp - Process groups in C -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Gpu/Cuda/NcclGroups.h"
#include "../Groups/Group.h"
#include "../Groups/Transports.h"
#include "../Mpi/MpiTransport.h"
#include "CError.h"
#include "tessera/Runtime/tessera_groups.h"

#include <algorithm>
#include <cmath>

using namespace tessera::runtime;
using namespace tessera::runtime::capi;
using tessera::sharding::CollectiveKind;

struct tessera_group {
  std::unique_ptr<Group> group;
  std::string device;  ///< the backend of 'cuda'; empty: none
  bool hasHost = true; ///< there is one of 'cpu'
};
struct tessera_work {
  WorkPtr work;
  std::shared_ptr<ReceiveWork> receive; ///< the same, where it is one
};

static tessera_status give(WorkPtr work, tessera_work **out,
                           std::shared_ptr<ReceiveWork> receive = nullptr) {
  *out = new tessera_work{std::move(work), std::move(receive)};
  return TESSERA_OK;
}

/// Registers the transports of rooms on which process groups do not depend.
static void registerOthers() {
  static const Status once = registerTransport("mpi", [](const JobOptions &job) {
    return MpiTransport::openAs(job.rank.rank, job.rank.size, job.timeout);
  });
  static const Status device = registerDeviceCalls("nccl", gpu::NcclGroups::open);
  (void)once;
  (void)device;
}

static tessera_status check(const tessera_group_options *options) {
  if (options->struct_size < sizeof(*options))
    return fail(TESSERA_INVALID_ARGUMENT, "tessera_group_options: struct_size is not set");
  if (!options->backend || !options->address)
    return nullArgument();
  if (!(options->timeout > 0) || !std::isfinite(options->timeout) || options->timeout > 1e8)
    return fail(TESSERA_INVALID_ARGUMENT, "timeout " + std::to_string(options->timeout) +
                                              "; expected a number of seconds above 0");
  if (options->token && std::string_view(options->token).size() < 16)
    return fail(TESSERA_INVALID_ARGUMENT, "the job token has less than 16 bytes");
  return TESSERA_OK;
}

tessera_status tessera_group_open(const tessera_group_options *options, tessera_group **group) {
  if (!options || !group)
    return nullArgument();
  return guarded([&] {
    if (tessera_status status = check(options); status != TESSERA_OK)
      return status;
    JobOptions job{{options->rank, options->size, options->local_rank},
                   {options->address, options->token ? options->token : "", "init_method"},
                   options->timeout};
    registerOthers();
    auto chosen = chooseBackends(options->backend);
    if (!chosen)
      return fail(TESSERA_UNAVAILABLE, chosen.message());
    auto transport = openTransport(chosen->transport, job);
    if (!transport)
      return fail(TESSERA_UNAVAILABLE, transport.message());
    auto made =
        std::make_shared<Job>(std::move(*transport), chosen->openDevice, options->local_rank);
    auto opened = Group::ofJob(made, options->timeout);
    if (!opened)
      return fail(TESSERA_UNAVAILABLE, opened.message());
    if (!chosen->hasHost) {
      auto device = made->device();
      Status common = (*opened)->agree(device ? Status() : device.status());
      if (!common.ok())
        return fail(TESSERA_UNAVAILABLE, common.message());
    }
    *group = new tessera_group{std::move(*opened), chosen->device, chosen->hasHost};
    return TESSERA_OK;
  });
}

tessera_status tessera_group_new(tessera_group *parent, const int64_t *ranks, int64_t count,
                                 double timeout, tessera_group **group) {
  if (!parent || !group || (!ranks && count > 0))
    return nullArgument();
  return guarded([&] {
    auto made = parent->group->make({ranks, ranks + std::max<int64_t>(count, 0)}, timeout);
    if (!made)
      return fail(TESSERA_FAILED, made.message());
    *group = *made ? new tessera_group{std::move(*made), parent->device, parent->hasHost} : nullptr;
    return TESSERA_OK;
  });
}

void tessera_group_close(tessera_group *group) {
  delete group;
}

int64_t tessera_group_size(const tessera_group *group) {
  return group ? static_cast<int64_t>(group->group->members().size()) : 0;
}

int64_t tessera_group_member(const tessera_group *group, int64_t place) {
  return place >= 0 && place < tessera_group_size(group) ? group->group->members()[place] : -1;
}

const char *tessera_group_host(const tessera_group *group, int64_t rank) {
  if (!group || rank < 0 || rank >= group->group->job().transport().size())
    return nullptr;
  return group->group->job().transport().hostOf(rank).c_str();
}

const char *tessera_group_backends(void) {
  static thread_local std::string text;
  text.clear();
  registerOthers();
  for (const std::string &name : transportNames())
    text += (text.empty() ? "" : " ") + name;
  return text.c_str();
}

tessera_status tessera_load_transport(const char *path) {
  if (!path)
    return nullArgument();
  return guarded([&] {
    Status status = loadTransport(path);
    return status.ok() ? TESSERA_OK : fail(TESSERA_UNAVAILABLE, status.message());
  });
}

/// The call, or an error. A barrier has no kind.
static Expected<GroupCall> callFrom(const tessera_collective &given) {
  GroupCall call;
  auto unknown = [](const char *what, const char *text) {
    return Status::error("unknown " + std::string(what) + " '" + text + "'");
  };
  auto kind = tessera::sharding::parseCollectiveKind(given.kind);
  if (!kind || (*kind > CollectiveKind::all_to_all && *kind < CollectiveKind::broadcast) ||
      *kind > CollectiveKind::reduce || *kind == CollectiveKind::slice)
    return unknown("collective", given.kind);
  call.kind = *kind;
  auto type = ElementType::parse(given.type ? given.type : "");
  if (!type)
    return unknown("type", given.type ? given.type : "");
  call.type = *type;
  if (given.reduction) {
    auto reduction = parseGroupReduction(given.reduction);
    if (!reduction)
      return Status::error("unknown reduction '" + std::string(given.reduction) +
                           "'; there are sum, avg, max, min, prod, band, bor, bxor");
    call.reduction = *reduction;
  }
  if (given.algorithm) {
    call.algorithm = parseAlgorithm(given.algorithm);
    if (!call.algorithm)
      return Status::error("unknown algorithm '" + std::string(given.algorithm) +
                           "'; there are direct, one_shot, ring, halving_doubling, tree, "
                           "hierarchical");
  }
  call.root = given.root;
  call.counts.assign(given.counts, given.counts + given.num_counts);
  if (given.receives)
    call.receives.assign(given.receives, given.receives + given.num_counts);
  call.input = static_cast<const std::byte *>(given.input);
  call.output = static_cast<std::byte *>(given.output);
  call.where = given.where ? given.where : "";
  call.isOnDevice = given.device && std::string_view(given.device) == "cuda";
  if (given.device && !call.isOnDevice && std::string_view(given.device) != "cpu")
    return unknown("device", given.device);
  call.stream = given.stream;
  if (given.inputs)
    for (int64_t i = 0; i < given.num_counts; ++i)
      call.inputs.push_back(static_cast<const std::byte *>(given.inputs[i]));
  if (given.outputs)
    for (int64_t i = 0; i < given.num_counts; ++i)
      call.outputs.push_back(static_cast<std::byte *>(given.outputs[i]));
  return call;
}

/// An error if a job has no backend for device memory.
static Status checkDevice(const tessera_group &group, const char *device) {
  bool isOnDevice = device && std::string_view(device) == "cuda";
  if (device && !isOnDevice && !group.hasHost)
    return Status::error("the buffers are on 'cpu', and backend '" + group.device +
                         "' works on 'cuda'; begin the job with 'cpu:tcp,cuda:" + group.device +
                         "'");
  if (isOnDevice && group.device.empty())
    return Status::error("the buffers are on 'cuda', and the job's backend works on 'cpu'; begin "
                         "it with 'cpu:tcp,cuda:nccl'");
  return {};
}

static bool isNull(const tessera_collective *given) {
  return !given || given->struct_size < sizeof(*given) || !given->kind || given->num_counts < 0 ||
         (!given->counts && given->num_counts > 0);
}

tessera_status tessera_group_call(tessera_group *group, const tessera_collective *collective,
                                  tessera_work **work) {
  if (!group || !work || isNull(collective))
    return nullArgument();
  return guarded([&] {
    if (std::string_view(collective->kind) == "barrier")
      return give(group->group->barrier(collective->where ? collective->where : ""), work);
    auto call = callFrom(*collective);
    if (Status wrong = checkDevice(*group, collective->device); call && !wrong.ok())
      call = wrong;
    if (call)
      return give(group->group->call(*call), work);
    std::string reason = collective->kind + (": " + call.message());
    return give(
        group->group->refuse(collective->where ? reason + ", at " + collective->where : reason),
        work);
  });
}

tessera_status tessera_group_algorithm(tessera_group *group, const tessera_collective *collective,
                                       const char **algorithm) {
  if (!group || !algorithm || isNull(collective))
    return nullArgument();
  return guarded([&] {
    auto call = callFrom(*collective);
    if (!call)
      return fail(TESSERA_INVALID_ARGUMENT, call.message());
    auto chosen = group->group->algorithmOf(*call);
    if (!chosen)
      return fail(TESSERA_INVALID_ARGUMENT, chosen.message());
    *algorithm = toString(*chosen).data();
    return TESSERA_OK;
  });
}

tessera_status tessera_group_sent_bytes(tessera_group *group, const tessera_collective *collective,
                                        int64_t *bytes) {
  if (!group || !bytes || isNull(collective))
    return nullArgument();
  return guarded([&] {
    auto call = callFrom(*collective);
    if (!call)
      return fail(TESSERA_INVALID_ARGUMENT, call.message());
    auto sent = group->group->sentBytesOf(*call);
    if (!sent)
      return fail(TESSERA_INVALID_ARGUMENT, sent.message());
    std::copy(sent->begin(), sent->end(), bytes);
    return TESSERA_OK;
  });
}

tessera_status tessera_group_refuse(tessera_group *group, const char *reason, tessera_work **work) {
  if (!group || !reason || !work)
    return nullArgument();
  return guarded([&] { return give(group->group->refuse(reason), work); });
}

tessera_status tessera_group_send(tessera_group *group, int64_t peer, int64_t tag, const void *data,
                                  size_t bytes, const char *what, tessera_work **work) {
  if (!group || !what || !work || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    return give(group->group->send(peer, tag, static_cast<const std::byte *>(data),
                                   static_cast<int64_t>(bytes), what),
                work);
  });
}

tessera_status tessera_group_receive(tessera_group *group, int64_t peer, int64_t tag, void *data,
                                     size_t bytes, const char *what, tessera_work **work) {
  if (!group || !what || !work || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    auto made = group->group->receive(peer, tag, static_cast<std::byte *>(data),
                                      static_cast<int64_t>(bytes), what);
    return give(made, work, made);
  });
}

tessera_status tessera_group_send_from_device(tessera_group *group, int64_t peer, int64_t tag,
                                              const void *data, size_t bytes, const char *what,
                                              void *stream, tessera_work **work) {
  if (!group || !what || !work || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    return give(group->group->sendFromDevice(peer, tag, static_cast<const std::byte *>(data),
                                             static_cast<int64_t>(bytes), what, stream),
                work);
  });
}

tessera_status tessera_group_receive_to_device(tessera_group *group, int64_t peer, int64_t tag,
                                               void *data, size_t bytes, const char *what,
                                               tessera_work **work) {
  if (!group || !what || !work || (!data && bytes > 0))
    return nullArgument();
  return guarded([&] {
    if (Status wrong = checkDevice(*group, "cuda"); !wrong.ok())
      return fail(TESSERA_INVALID_ARGUMENT, wrong.message());
    auto made = group->group->receiveToDevice(peer, tag, static_cast<std::byte *>(data),
                                              static_cast<int64_t>(bytes), what);
    return give(made, work, made);
  });
}

int tessera_work_is_completed(const tessera_work *work) {
  return !work || work->work->isCompleted();
}

int tessera_work_wait_for(const tessera_work *work, double seconds) {
  return !work || work->work->waitFor(std::clamp(seconds, 0.0, 1e8));
}

tessera_status tessera_work_wait(tessera_work *work) {
  if (!work)
    return nullArgument();
  return guarded([&] {
    Status status = work->work->wait();
    return status.ok() ? TESSERA_OK : fail(TESSERA_FAILED, status.message());
  });
}

int64_t tessera_work_source(const tessera_work *work) {
  return work && work->receive ? work->receive->source : -1;
}

void tessera_work_free(tessera_work *work) {
  delete work;
}
