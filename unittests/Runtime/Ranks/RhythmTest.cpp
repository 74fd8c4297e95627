//===- RhythmTest.cpp - How far senders run ahead -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RhythmProgram.h"

#include "Ranks/Rhythm.h"

using namespace tessera::runtime;

static Expected<Rhythm> rhythmOfProgram(const Program &program) {
  Code first = flatten(program.parts[0]), second = flatten(program.parts[1]);
  return rhythmOf({&first, &second});
}

TEST(Rhythm, SendersHaveRoomForWhatTheyAreAheadBy) {
  RhythmProgram ahead(false);
  auto rhythm = rhythmOfProgram(ahead.b.program);
  ASSERT_TRUE(rhythm) << rhythm.message();
  EXPECT_TRUE(rhythm->isKnown);
  EXPECT_EQ(rhythm->messages[0], 3) << "all three are sent before the first is received";
  EXPECT_EQ(rhythm->messages[1], 1);
  auto unknown = rhythmOfProgram(RhythmProgram(true).b.program);
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(unknown->isKnown);

  // Received once too few, and once too often.
  for (int64_t trips : {2, 4}) {
    RhythmProgram uneven(false);
    std::get<LoopStep>(uneven.b.program.parts[uneven.q].steps[0].action).upper.value = trips;
    auto wrong = rhythmOfProgram(uneven.b.program);
    ASSERT_FALSE(wrong);
    const char *said = trips == 2 ? "transfer 1 is sent 3 times a step and received 2 times"
                                  : " waits in recv 1 at";
    EXPECT_NE(wrong.message().find(said), std::string::npos) << wrong.message();
  }
}

TEST(Rhythm, LoopsWithoutTransfersArePassedOver) {
  // More trips than are played.
  RhythmProgram program(false);
  ProgramBuilder &b = program.b;
  int64_t i = b.slot(program.p, DType::index, Shape{});
  b.add(program.p, LoopStep{i, {0, {}}, {int64_t(1) << 60, {}}, {1, {}}, {}});
  auto rhythm = rhythmOfProgram(b.program);
  ASSERT_TRUE(rhythm) << rhythm.message();
  EXPECT_TRUE(rhythm->isKnown);
  EXPECT_EQ(rhythm->messages[0], 3);
}
