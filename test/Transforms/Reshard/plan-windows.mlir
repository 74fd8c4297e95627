// RUN: tessera-opt %s --dist-plan-reshards | FileCheck %s
// RUN: tessera-opt %s --dist-plan-reshards | tessera-opt --dist-plan-reshards | FileCheck %s
// RUN: tessera-opt %s --dist-plan-reshards --dist-partition | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-opt %s --dist-plan-reshards="remarks=true" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The IR says where windows are made, and what they have beyond the tensor, before it is partitioned.
dist.process_mesh @line(shape = [4], dim_names = ["s"])

#sum = affine_map<(h, a) -> (h + a)>
#tap = affine_map<(h, a) -> (a)>
#row = affine_map<(h, a) -> (h)>

// A pad along a dimension that is cut reads a window, which its element fills.
// CHECK-LABEL: func.func @pad(
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[FILLED:.*]] = dist.reshard %arg0 to {{.*}}windows = [(0, 5, -1, 5)]> {dist.move = #dist.move<exchange>, {{.*}}fill = 0.000000e+00 : f32}
// CHECK-NEXT: tensor.pad %[[FILLED]]
// LOCAL-LABEL: func.func @pad(
// LOCAL: %[[MOVED:.*]] = dist.exchange %arg0 {{.*}}fill = 0.000000e+00
// LOCAL-NEXT: return %[[MOVED]]
func.func @pad(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<18xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %w = dist.reshard %x to #dist.sharding<@line, dims = [["s"]], windows = [(0, 5, -1, 5)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 5, -1, 5)]>]} : tensor<16xf32>
  %p = tensor.pad %w low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} : tensor<16xf32> to tensor<18xf32>
  return %p : tensor<18xf32>
}

// A window of the padded value is a pad of a window: a halo.
// CHECK-LABEL: func.func @window_of_pad(
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[HALO:.*]] = dist.reshard %arg0 to {{.*}}windows = [(0, 4, -1, 6)]> {dist.move = #dist.move<halo_exchange over ["s"] dim = 0>, {{.*}}fill = 0.000000e+00 : f32}
// CHECK-NEXT: %[[WINDOW:.*]] = tensor.pad %[[HALO]]
// CHECK: dist.op_sharding = #dist.op_sharding<@line, factors = {{\[}}["s"]], windows = [(0, 4, 0, 6)]>, dist.shardings = {{.*}}windows = [(0, 4, 0, 6)]>
// CHECK-NOT: dist.reshard
// CHECK: ins(%[[WINDOW]],
// LOCAL-LABEL: func.func @window_of_pad(
// LOCAL: dist.halo_exchange %arg0 over @line ["s"] dim = 0 low = 1 high = 1 {{.*}}fill = 0.000000e+00
// LOCAL-NOT: dist.exchange
// LOCAL: return
// REMARK: remark: why: halo_exchange ({{.*}}; no plan receives less than 8 bytes
func.func @window_of_pad(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %zero = arith.constant 0.0 : f32
  %w = dist.reshard %x to #dist.sharding<@line, dims = [["s"]], windows = [(0, 5, -1, 5)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 5, -1, 5)]>]} : tensor<16xf32>
  %p = tensor.pad %w low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} : tensor<16xf32> to tensor<18xf32>
  %r = dist.reshard %p to #dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]>]} : tensor<18xf32>
  %k = tensor.empty() {dist.shardings = [#dist.sharding<@line, [replicate]>]} : tensor<3xf32>
  %init = arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} dense<0.0> : tensor<16xf32>
  %y = linalg.generic {indexing_maps = [#sum, #tap, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r, %k : tensor<18xf32>, tensor<3xf32>) outs(%init : tensor<16xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"], []]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %y : tensor<16xf32>
}

// Elements with zeros between them: only the elements are sent.
// CHECK-LABEL: func.func @window_of_dilated(
// CHECK-NEXT: %[[ROWS:.*]] = dist.reshard %arg0 to {{.*}}windows = [(0, 8, -1, 9, 2)]> {dist.move = #dist.move<exchange>
// CHECK-NEXT: %[[WINDOW:.*]] = dist.rearrange %[[ROWS]] {{.*}}windows = [(0, 8, 0, 9)]>, dist.shardings
// CHECK-NOT: dist.reshard
// CHECK: ins(%[[WINDOW]],
func.func @window_of_dilated(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<32xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %w = dist.reshard %x to #dist.sharding<@line, dims = [["s"]], windows = [(0, 9, -1, 9, 2)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 9, -1, 9, 2)]>]} : tensor<16xf32>
  %p = dist.rearrange %w dim = 0 segments = [0, 1, 1, 2, 16] fill = 0.0 : f32 {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} : (tensor<16xf32>) -> tensor<33xf32>
  %r = dist.reshard %p to #dist.sharding<@line, dims = [["s"]], windows = [(0, 8, 0, 9)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 8, 0, 9)]>]} : tensor<33xf32>
  %k = tensor.empty() {dist.shardings = [#dist.sharding<@line, [replicate]>]} : tensor<2xf32>
  %init = arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} dense<0.0> : tensor<32xf32>
  %y = linalg.generic {indexing_maps = [#sum, #tap, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r, %k : tensor<33xf32>, tensor<2xf32>) outs(%init : tensor<32xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"], []]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// The reversed value is there for another reader, so its halo is less than a window of the operand.
// CHECK-LABEL: func.func @window_of_reversed(
// CHECK-NEXT: %[[MOVED:.*]] = dist.reshard %arg0 to {{.*}}windows = [(0, -4, 12, 4)]> {dist.move = #dist.move<exchange>
// CHECK-NEXT: %[[REVERSED:.*]] = dist.rearrange %[[MOVED]]
// CHECK-NEXT: dist.reshard %[[REVERSED]] to {{.*}}windows = [(0, 4, 0, 6)]> {dist.move = #dist.move<halo_exchange over ["s"] dim = 0>
func.func @window_of_reversed(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<14xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}, tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %w = dist.reshard %x to #dist.sharding<@line, dims = [["s"]], windows = [(0, -4, 12, 4)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, -4, 12, 4)]>]} : tensor<16xf32>
  %p = dist.rearrange %w dim = 0 segments = [0, 1, 15, -1, 16] {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} : (tensor<16xf32>) -> tensor<16xf32>
  %r = dist.reshard %p to #dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]>]} : tensor<16xf32>
  %k = tensor.empty() {dist.shardings = [#dist.sharding<@line, [replicate]>]} : tensor<3xf32>
  %init = arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} dense<0.0> : tensor<14xf32>
  %y = linalg.generic {indexing_maps = [#sum, #tap, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r, %k : tensor<16xf32>, tensor<3xf32>) outs(%init : tensor<14xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"], []]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<14xf32>
  return %y, %p : tensor<14xf32>, tensor<16xf32>
}

// A window of equal elements is as many of them.
// CHECK-LABEL: func.func @window_of_constant(
// CHECK-NOT: dist.reshard
// CHECK: arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = {{\[}}["s"]], windows = [(0, 4, 0, 6)]>{{.*}}} dense<1.000000e+00> : tensor<16xf32>
// CHECK-NOT: dist.reshard
func.func @window_of_constant(%x: tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<14xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %p = arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} dense<1.0> : tensor<16xf32>
  %r = dist.reshard %p to #dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]> {dist.reason = "why", dist.shardings = [#dist.sharding<@line, dims = [["s"]], windows = [(0, 4, 0, 6)]>]} : tensor<16xf32>
  %k = tensor.empty() {dist.shardings = [#dist.sharding<@line, [replicate]>]} : tensor<3xf32>
  %init = arith.constant {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"]]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} dense<0.0> : tensor<14xf32>
  %y = linalg.generic {indexing_maps = [#sum, #tap, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r, %k : tensor<16xf32>, tensor<3xf32>) outs(%init : tensor<14xf32>)
      attrs = {dist.op_sharding = #dist.op_sharding<@line, factors = [["s"], []]>, dist.shardings = [#dist.sharding<@line, [shard(0)]>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<14xf32>
  return %y : tensor<14xf32>
}
