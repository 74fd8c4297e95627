//===- BackendTest.cpp - Finding and loading backends ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/Session/Session.h"

using namespace tessera::runtime;

static std::shared_ptr<Artifact> identity() {
  ProgramBuilder b;
  int64_t m = b.mesh(makeMesh({3})), p = b.part(m);
  Layout rows = layoutOf({7, 2}, {{whole(b.program.meshes[m], 0)}, {}});
  int64_t x = b.argument("x", p, DType::i32, rows);
  b.result("y", p, x, rows);
  auto artifact = std::make_shared<Artifact>();
  artifact->program = b.program;
  return artifact;
}

TEST(Backend, NamesIgnoreCaseAndErrorsListAll) {
  EXPECT_TRUE(findBackend("THREADS"));
  auto missing = findBackend("tpu");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.message().find("'tpu'"), std::string::npos);
  EXPECT_NE(missing.message().find("threads"), std::string::npos);
  EXPECT_FALSE(registerBackend({"Threads", "", nullptr}).ok());
}

TEST(Backend, DevicesMustSuffice) {
  SessionOptions options;
  options.devices.devices = 2;
  auto session = Session::open(identity(), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.message(), "mesh 'm' has process id 2 and needs 3 devices, --devices is 2");
}

TEST(Backend, SharedObjectsRegisterThemselves) {
  EXPECT_FALSE(loadBackend("/nonexistent.so").ok());
  EXPECT_NE(loadBackend(TEST_KERNELS).message().find("tessera_backend_entry"), std::string::npos);
  Status status = loadBackend(TEST_BACKEND);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NE(loadBackend(TEST_BACKEND).message().find("already registered"), std::string::npos);

  SessionOptions options;
  options.backend = "toy";
  auto session = Session::open(identity(), options);
  ASSERT_TRUE(session) << session.message();
  HostTensor x = HostTensor::zeros(DType::i32, {7, 2});
  for (int64_t i = 0; i < 14; ++i)
    writeElement(DType::i32, static_cast<double>(i), x.data.data() + i * 4);
  ASSERT_TRUE((*session)->setArgument(0, x).ok());
  ASSERT_TRUE((*session)->step().ok());
  auto y = (*session)->result(0);
  ASSERT_TRUE(y) << y.message();
  EXPECT_EQ(y->data, x.data) << "through write_slot and read_slot";
  ASSERT_TRUE((*session)->step().ok());
  EXPECT_EQ((*session)->step().message(), "step 3: device 0 caught fire");
}
