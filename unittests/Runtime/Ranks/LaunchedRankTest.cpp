//===- LaunchedRankTest.cpp - Ranks of launched processes -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ranks/LaunchedRank.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace tessera::runtime;

namespace {

std::map<std::string, std::string> &variables() {
  static std::map<std::string, std::string> held;
  return held;
}
const char *look(const char *name) {
  auto it = variables().find(name);
  return it == variables().end() ? nullptr : it->second.c_str();
}

} // namespace

/// The table that also tests tessera.ranks.
TEST(LaunchedRank, RulesOfTheTable) {
  std::ifstream file(RANKS_TABLE);
  nlohmann::json table = nlohmann::json::parse(file);
  ASSERT_GT(table.size(), 20u);
  for (const auto &row : table) {
    SCOPED_TRACE(row["what"].get<std::string>());
    variables() = row["environment"].get<std::map<std::string, std::string>>();
    auto found = launchedProcess(look);
    if (row.contains("error")) {
      EXPECT_EQ(found ? "" : found.message(), row["error"].get<std::string>());
      continue;
    }
    ASSERT_TRUE(found) << found.message();
    const auto &ranks = row["ranks"];
    EXPECT_EQ(found->rank.rank, ranks["rank"].get<int64_t>());
    EXPECT_EQ(found->rank.size, ranks["size"].get<int64_t>());
    EXPECT_EQ(found->source, ranks["source"].get<std::string>());
    EXPECT_EQ(found->saysLocal, !ranks["local_rank"].is_null());
    EXPECT_EQ(found->rank.local,
              (ranks["local_rank"].is_null() ? ranks["rank"] : ranks["local_rank"]).get<int64_t>());
    EXPECT_EQ(found->localSize,
              ranks["local_size"].is_null() ? 0 : ranks["local_size"].get<int64_t>());
  }
}

TEST(LaunchedRank, RendezvousAddress) {
  using Variables = std::map<std::string, std::string>;
  const std::vector<std::pair<Variables, std::string>> cases = {
      {{}, "127.0.0.1 29500"},
      {{{"TESSERA_RENDEZVOUS", "file:/shared/x"}, {"MASTER_ADDR", "a"}}, "file:/shared/x"},
      {{{"MASTER_ADDR", "gpu01"}, {"MASTER_PORT", "5000"}}, "gpu01 5000"},
      {{{"MASTER_ADDR", "a"}, {"TESSERA_MASTER_ADDR", "[::1]"}, {"TESSERA_MASTER_PORT", "7"}},
       "::1 7"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5000"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "a 5001"},
      {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "a 65534"},
      {{{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NODELIST", "gpu[03-07,9]-ib,login"}},
       "gpu03-ib 29500"},
      {{{"MASTER_PORT", "0"}}, "MASTER_PORT is '0'; expected a port from 1 to 65535"},
      {{{"TESSERA_MASTER_PORT", "12x"}},
       "TESSERA_MASTER_PORT is '12x'; expected a port from 1 to 65535"},
      {{{"MASTER_ADDR", "no host"}},
       "MASTER_ADDR is 'no host'; expected a host name, an IPv4 address, or an IPv6 address, "
       "optionally in brackets"},
      {{{"TESSERA_RENDEZVOUS", "here"}}, "TESSERA_RENDEZVOUS is 'here'; expected file:PATH"},
  };
  for (auto &[given, expected] : cases) {
    variables() = given;
    auto found = jobAddress(look);
    EXPECT_EQ(found ? *found : found.message(), expected);
  }
}
