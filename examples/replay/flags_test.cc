#include "h2d/examples/replay/flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "h2d/examples/replay/staging_way.h"

namespace h2d::replay {
namespace {

Expected<Flags> Parse(const std::vector<const char*>& arguments) { return ParseFlags(arguments); }

void ExpectError(const std::vector<const char*>& arguments, const std::string& part) {
  const Expected<Flags> flags = Parse(arguments);
  ASSERT_FALSE(flags) << "no error where one should say: " << part;
  EXPECT_EQ(flags.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(flags.error().message.find(part), std::string::npos) << flags.error().message;
}

TEST(FlagsTest, WithoutArgumentsEverythingHasItsDefault) {
  const Expected<Flags> flags = Parse({});
  ASSERT_TRUE(flags);
  EXPECT_FALSE(flags->help);
  EXPECT_FALSE(flags->compare);
  EXPECT_EQ(flags->trace, "");
  EXPECT_EQ(flags->device, DeviceKind::kFake);
  EXPECT_EQ(flags->requests, 0U);
  EXPECT_EQ(flags->replay.plant, Plant::kNone);
  EXPECT_EQ(flags->replay.staging, StagingWay::kPackedMirrored);
  EXPECT_EQ(flags->replay.scheduler.max_batched_tokens, 2048U);
}

TEST(FlagsTest, AValueFollowsAnEqualsSignOrABlank) {
  const Expected<Flags> flags =
      Parse({"--trace=a=b.csv", "--device", "host", "--requests=7", "--seed",
             "18446744073709551615", "--max-batch=3", "--block-size=8", "--kv-blocks", "99",
             "--max-batched-tokens=512", "--slots=5", "--compare"});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_EQ(flags->trace, "a=b.csv");
  EXPECT_EQ(flags->device, DeviceKind::kHost);
  EXPECT_EQ(flags->requests, 7U);
  EXPECT_EQ(flags->replay.seed, 18446744073709551615U);
  EXPECT_EQ(flags->replay.scheduler.max_batch, 3U);
  EXPECT_EQ(flags->replay.scheduler.block_size, 8U);
  EXPECT_EQ(flags->replay.scheduler.kv_blocks, 99U);
  EXPECT_EQ(flags->replay.scheduler.max_batched_tokens, 512U);
  EXPECT_EQ(flags->replay.slots, 5U);
  EXPECT_TRUE(flags->compare);
}

TEST(FlagsTest, EachPlantHasItsName) {
  EXPECT_EQ(Parse({"--plant=no-wait"})->replay.plant, Plant::kNoWait);
  EXPECT_EQ(Parse({"--plant=late-record"})->replay.plant, Plant::kLateRecord);
  EXPECT_EQ(Parse({"--plant=war"})->replay.plant, Plant::kWar);
  EXPECT_EQ(Parse({"--plant=stale-mirror"})->replay.plant, Plant::kStaleMirror);
  EXPECT_EQ(Parse({"--plant=one-slab"})->replay.plant, Plant::kOneSlab);
  EXPECT_EQ(Parse({"--plant=graph-writes"})->replay.plant, Plant::kGraphWrites);
}

TEST(FlagsTest, EachWayToStageHasItsName) {
  for (const StagingWay way : kAllWays) {
    const std::string argument = "--staging=" + std::string(ToString(way));
    const Expected<Flags> flags = Parse({argument.c_str()});
    ASSERT_TRUE(flags) << flags.error().message;
    EXPECT_EQ(flags->replay.staging, way);
  }
}

TEST(FlagsTest, ErrorsNameTheFlagAndItsValue) {
  ExpectError({"--sed=1"}, "There is no flag --sed");
  ExpectError({"trace.csv"}, "Nothing takes trace.csv");
  ExpectError({"--seed"}, "--seed needs a value");
  ExpectError({"--compare=yes"}, "--compare takes no value");
  ExpectError({"--trace="}, "--trace is empty");
  ExpectError({"--device=tpu"}, "--device is \"tpu\"; it must be one of fake, host");
  ExpectError({"--plant=bug"}, "late-record, war, one-slab, graph-writes, no-wait, stale-mirror");
  ExpectError({"--staging=mirrored"},
              "one of separate, separate-mirrored, packed, packed-mirrored");
  ExpectError({"--staging"}, "--staging needs a value");
  ExpectError({"--max-batch=0"}, "--max-batch is \"0\"; it must be a whole number between 1 and");
  ExpectError({"--max-batch=-1"}, "--max-batch is \"-1\"");
  ExpectError({"--max-batch=1025"}, "between 1 and 1024");
  ExpectError({"--requests=1x"}, "--requests is \"1x\"");
  ExpectError({"--seed=18446744073709551616"}, "--seed is \"18446744073709551616\"");
}

TEST(FlagsTest, FlagsThatExcludeEachOtherAreRefused) {
  ExpectError({"--plant=war", "--compare"}, "do not go together");
  ExpectError({"--staging=packed", "--compare"}, "do not go together");
  ExpectError({"--plant=no-wait", "--staging=packed"}, "leave --staging out");
  ExpectError({"--plant=graph-writes", "--staging=packed"}, "does no harm with --staging=packed");
  ExpectError({"--plant=war", "--device=host"}, "needs --device=fake");
  ExpectError({"--plant=one-slab", "--device=host"}, "needs --device=fake");
  EXPECT_TRUE(Parse({"--plant=graph-writes", "--staging=separate-mirrored", "--device=host"}));
  EXPECT_TRUE(Parse({"--plant=war", "--staging=separate"}));
  EXPECT_TRUE(Parse({"--plant=stale-mirror", "--device=host"}));
}

TEST(FlagsTest, HelpNamesEveryFlagAndItsDefault) {
  const std::string help = HelpText();
  for (const char* flag :
       {"--trace", "--device", "--requests", "--seed", "--max-batch", "--max-batched-tokens",
        "--block-size", "--kv-blocks", "--slots", "--staging", "--compare", "--plant", "--help"}) {
    EXPECT_NE(help.find("  " + std::string(flag)), std::string::npos) << flag;
  }
  EXPECT_NE(help.find("(default 2048)"), std::string::npos);
  EXPECT_TRUE(Parse({"--help"})->help);
}

}  // namespace
}  // namespace h2d::replay
