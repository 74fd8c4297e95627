//===- CApiTest.cpp - The C interface -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/tessera_rt.h"

using namespace tessera::runtime;

/// y = x reduced over three devices, and x again for the next step.
static Bytes program() {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({3})), p = b.part(m);
  const Mesh &mesh = b.program.meshes[m];
  Layout rows = layoutOf({5}, {{whole(mesh, 0)}}), full = replicated({5});
  int64_t x = b.argument("x", p, DType::f32, rows), y = b.slot(p, DType::f32, full);
  CollectiveStep gather = b.collective(CollectiveKind::all_gather, m, x, y, DType::f32, rows, full);
  b.add(p, gather);
  b.result("y", p, y, full);
  b.program.results[0].feeds = 0;
  return serialize({b.program, "", {}, {}});
}

TEST(CApi, BackendTargets) {
  EXPECT_STREQ(tessera_backend_target("threads"), "cpu");
  EXPECT_STREQ(tessera_backend_target("VDEV"), "cuda");
  EXPECT_STREQ(tessera_backend_target("stub"), "stub");
  EXPECT_EQ(tessera_backend_target("abacus"), nullptr);
  EXPECT_NE(std::string(tessera_last_error()).find("there is no backend 'abacus'"),
            std::string::npos);
  EXPECT_EQ(tessera_backend_target(nullptr), nullptr);
  EXPECT_EQ(tessera_session_keeps_on_devices(nullptr), 0);
}

TEST(CApi, Lifecycle) {
  EXPECT_EQ(tessera_rt_version(), 1u);
  Bytes bytes = program();
  tessera_session *session = nullptr;
  tessera_open_options options{};
  options.struct_size = sizeof(options);
  options.backend = "threads";
  options.cores = 2;
  options.seed = 7;
  ASSERT_EQ(tessera_session_open_memory(bytes.data(), bytes.size(), &options, &session), TESSERA_OK)
      << tessera_last_error();
  EXPECT_EQ(tessera_session_num_arguments(session), 1);
  EXPECT_EQ(tessera_session_num_results(session), 1);
  tessera_tensor_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(tessera_session_argument(session, 0, &info), TESSERA_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, TESSERA_F32);
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.shape[0], 5);
  EXPECT_EQ(info.bytes, 20u);
  EXPECT_NE(std::string(info.home).find("\"layout\""), std::string::npos) << info.home;
  ASSERT_EQ(tessera_session_result(session, 0, &info), TESSERA_OK);
  EXPECT_EQ(info.feeds, 0);
  // This process has all devices: values are set and read as a whole.
  int64_t box[2] = {};
  int count = 0;
  ASSERT_EQ(tessera_session_argument_box(session, 0, box, &count), TESSERA_OK);
  EXPECT_EQ(count, -1);
  ASSERT_EQ(tessera_session_result_box(session, 0, box, &count), TESSERA_OK);
  EXPECT_EQ(count, -1);
  EXPECT_EQ(tessera_session_read_result_box(session, 0, box, sizeof(box)),
            TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_argument_box(session, 1, box, &count), TESSERA_INVALID_ARGUMENT);
  tessera_memory_use use{};
  EXPECT_EQ(tessera_device_memory(0, &use), TESSERA_INVALID_ARGUMENT);
  use.struct_size = sizeof(use);
  ASSERT_EQ(tessera_device_memory(2, &use), TESSERA_OK);
  EXPECT_GT(use.reserved, 0);
  EXPECT_GE(use.peak_reserved, use.reserved);
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {};
  ASSERT_EQ(tessera_session_set_argument(session, 0, x, sizeof(x)), TESSERA_OK);
  ASSERT_EQ(tessera_session_run(session, 2), TESSERA_OK) << tessera_last_error();
  ASSERT_EQ(tessera_session_read_result(session, 0, y, sizeof(y)), TESSERA_OK);
  EXPECT_EQ(std::memcmp(x, y, sizeof(x)), 0);
  // 5 over 3 is 2, 2, 1: the last device lacks four floats, twice.
  EXPECT_EQ(tessera_session_wire_bytes(session), 2 * 4 * 4);
  tessera_session_close(session);
}

TEST(CApi, MisuseReturnsAStatus) {
  tessera_session *session = nullptr;
  EXPECT_EQ(tessera_session_open(nullptr, nullptr, &session), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_open("/nonexistent.tsra", nullptr, &session), TESSERA_INVALID_ARTIFACT);
  EXPECT_NE(std::string(tessera_last_error()).find("/nonexistent.tsra"), std::string::npos);
  Bytes bytes = program();
  tessera_open_options options{};
  options.struct_size = sizeof(options);
  options.backend = "abacus";
  EXPECT_EQ(tessera_session_open_memory(bytes.data(), bytes.size(), &options, &session),
            TESSERA_UNAVAILABLE);
  EXPECT_EQ(tessera_session_open_memory(bytes.data(), 40, nullptr, &session),
            TESSERA_INVALID_ARTIFACT);
  options = {};
  EXPECT_EQ(tessera_session_open_memory(bytes.data(), bytes.size(), &options, &session),
            TESSERA_INVALID_ARGUMENT);
  ASSERT_EQ(tessera_session_open_memory(bytes.data(), bytes.size(), nullptr, &session), TESSERA_OK);
  float x[5] = {};
  tessera_tensor_info info{};
  EXPECT_EQ(tessera_session_argument(session, 0, &info), TESSERA_INVALID_ARGUMENT);
  info.struct_size = sizeof(info);
  EXPECT_EQ(tessera_session_argument(session, 1, &info), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_set_argument(session, 0, x, 4), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_set_argument(session, 3, x, sizeof(x)), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_set_argument(session, 0, nullptr, sizeof(x)), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_read_result(session, -1, x, sizeof(x)), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_session_run(nullptr, 1), TESSERA_INVALID_ARGUMENT);
  EXPECT_EQ(tessera_load_backend("/nonexistent.so"), TESSERA_UNAVAILABLE);
  tessera_session_close(session);
  tessera_session_close(nullptr);
}
