//===- MessageBuffersTest.cpp - Buffers for messages in advance -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferedProgram.h"

#include "Ranks/MessageBuffers.h"

using namespace tessera::runtime;

static Expected<MessageBuffers> buffersOfProgram(const Program &program) {
  Code first = flatten(program.parts[0]), second = flatten(program.parts[1]);
  return messageBuffersOf({&first, &second});
}

TEST(MessageBuffers, HoldAllMessagesThatASenderIsAhead) {
  BufferedProgram ahead(false);
  auto buffers = buffersOfProgram(ahead.b.program);
  ASSERT_TRUE(buffers) << buffers.message();
  EXPECT_TRUE(buffers->isKnown);
  EXPECT_EQ(buffers->messages[0], 3) << "all three are sent before the first is received";
  EXPECT_EQ(buffers->messages[1], 1);
  auto unknown = buffersOfProgram(BufferedProgram(true).b.program);
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->isKnown);

  // One receive too few, and one too many.
  for (int64_t trips : {2, 4}) {
    BufferedProgram uneven(false);
    std::get<LoopStep>(uneven.b.program.parts[uneven.q].steps[0].action).upper.value = trips;
    auto wrong = buffersOfProgram(uneven.b.program);
    ASSERT_FALSE(wrong);
    const char *said = trips == 2 ? "transfer 1 is sent 3 times a step and received 2 times"
                                  : " waits in recv 1 at";
    EXPECT_NE(wrong.message().find(said), std::string::npos) << wrong.message();
  }
}

TEST(MessageBuffers, LoopsWithoutTransfersAreSkipped) {
  // More trips than the simulation executes.
  BufferedProgram program(false);
  ProgramBuilder &b = program.b;
  int64_t i = b.slot(program.p, DType::index, Shape{});
  b.add(program.p, LoopStep{i, {0, {}}, {int64_t(1) << 60, {}}, {1, {}}, {}});
  auto buffers = buffersOfProgram(b.program);
  ASSERT_TRUE(buffers) << buffers.message();
  EXPECT_TRUE(buffers->isKnown);
  EXPECT_EQ(buffers->messages[0], 3);
}
