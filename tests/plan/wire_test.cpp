#include "plan/wire.h"

#include <gtest/gtest.h>

#include "comm/bench_comm.h"
#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::plan {
namespace {

using comm::LinkKind;
using comm::Operation;

TEST(FindWire, MachinesOfAnAcceleratorWithItsNetwork) {
  const comm::Wire wire = find_wire("h100", {});
  EXPECT_EQ(wire.name, "h100+ndr-8x400");
  EXPECT_EQ(wire.ranks_per_machine, 8);
  EXPECT_NEAR(wire.link(LinkKind::inside).bytes_per_second, 351e9, 1);
  EXPECT_NEAR(wire.link(LinkKind::inside).call_seconds, 12e-6, 1e-12);
  EXPECT_NEAR(wire.link(LinkKind::between).bytes_per_second, 36e9, 1);
  EXPECT_NEAR(wire.link(LinkKind::between).call_seconds, 15e-6, 1e-12);
  EXPECT_NEAR(wire.link(LinkKind::between).hop_seconds, 6.5e-6, 1e-12);
  EXPECT_EQ(find_wire("gb200", {}).ranks_per_machine, 72);
}

TEST(FindWire, AnotherNetworkAndAUsersOwn) {
  EXPECT_NEAR(find_wire("h100+eth-400", {}).link(LinkKind::between).bytes_per_second, 4.5e9, 1);
  cost::Hardware hardware;
  hardware.set(cost::Network{.name = "ours", .gbit_per_gpu = 100});
  EXPECT_NEAR(find_wire("h200+ours", hardware).link(LinkKind::between).bytes_per_second, 9e9, 1);
}

TEST(FindWire, SaysWhatThereIs) {
  expect_error(ErrorKind::user, {"no accelerator 'h1000'", "h200"}, [] { find_wire("h1000", {}); });
  expect_error(ErrorKind::user, {"no network 'string'", "ndr-8x400"}, [] { find_wire("h100+string", {}); });
  expect_error(ErrorKind::user, {"no file 'runs/none.csv'"}, [] { find_wire("runs/none.csv", {}); });
  cost::Hardware hardware;
  hardware.set(cost::Accelerator{.name = "stone", .link_gb_s = 0.0, .network = "none"});
  hardware.set(cost::Network{.name = "none"});
  expect_error(ErrorKind::user, {"'stone+none' has a bandwidth of 0"}, [&] { find_wire("stone", hardware); });
}

TEST(FindWire, AFileOfBenchComm) {
  const testing::TempDir dir;
  const std::vector<comm::CommTiming> machine = {
      {.operation = Operation::all_gather, .bytes = 64, .seconds = 20e-6},
      {.operation = Operation::all_gather, .bytes = 100 << 20, .seconds = 2e-3},
      {.operation = Operation::barrier, .bytes = 0, .seconds = 9e-6}};
  const std::vector<comm::CommTiming> pair = {{.operation = Operation::exchange, .bytes = 40'000'000, .seconds = 1e-3}};
  const std::string file = dir / "cluster.csv";
  replace_file(file, comm::to_csv(machine, 8, 1) + comm::to_csv(pair, 2, 2));
  const comm::Wire wire = find_wire(file, {});
  EXPECT_EQ(wire.ranks_per_machine, 8);
  EXPECT_NEAR(wire.link(LinkKind::inside).bytes_per_second, 7.0 * (100 << 20) / 2e-3, 1e3);
  EXPECT_NEAR(wire.link(LinkKind::between).bytes_per_second, 40e9, 1e3);
  ASSERT_EQ(wire.measured.size(), 4U);
  EXPECT_EQ(wire.measured[3].operation, Operation::exchange);
  EXPECT_EQ(wire.measured[3].machines, 2);
  EXPECT_NEAR(wire.measured[1].seconds, 2e-3, 1e-9);
}

TEST(FindWire, WrongFiles) {
  const std::string heading = "ranks,machines,operation,bytes,microseconds,gigabytes_per_second\n";
  const auto expect = [&](const std::string& lines, const std::string& part) {
    expect_error(ErrorKind::user, {"wire.csv", part}, [&] { parse_wire(lines, "wire.csv"); });
  };
  expect("a,b\n1,2\n", "no column 'ranks'");
  expect(heading, "has no call");
  expect(heading + "8,1,all_gather,64,0,0\n", "line 2: a call takes more than 0 microseconds");
  expect(heading + "8,1,all_gather,64,x,0\n", "line 2: microseconds is a number, not 'x'");
  expect(heading + "1,1,all_gather,64,5,0\n", "line 2: ranks is a whole number from 2, not '1'");
  expect(heading + "8,1,all_gather,64,5,0\n8,1,all_scatter,64,5,0\n", "line 3: there is no operation 'all_scatter'");
  expect(heading + "8,9,all_gather,64,5,0\n", "by 8 ranks on 9 machines");
  expect(heading + "8,1,barrier,0,5,0\n", "bandwidth of 0");
}

}  // namespace
}  // namespace megalith::plan
