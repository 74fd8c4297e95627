// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s --check-prefix=SENT
// RUN: tessera run %s --function channels --check
// RUN: tessera run %s --function fewer --check
// RUN: tessera run %s --function deviations --check
// RUN: tessera run %s --function beside --check
// RUN: tessera run %s --function different --check
// RUN: tessera run %s --function kept --check

// Sums over a cut dimension that differ by a factor independent of it are one sum, reduced once.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#rows = affine_map<(i, c) -> (i, c)>
#channel = affine_map<(i, c) -> (c)>
#all = affine_map<(n, i, c) -> (n, i, c)>
#some = affine_map<(n, i, c) -> (n, c)>
#last = affine_map<(n, i, c) -> (c)>

// sum(x * y) and sum(-(x / a) * y): the product is summed, the second is -1 / a of it.
// CHECK-LABEL: func.func @channels(
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]{{.*}} ins(%arg0, %arg1 : tensor<8x3xf32>, tensor<8x3xf32>)
// CHECK-NOT: "reduction"
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]{{.*}} ins(%{{.*}}, %arg2 : tensor<3xf32>, tensor<3xf32>)
// CHECK: return
// SENT-LABEL: func.func @channels(
// SENT-COUNT-1: dist.all_reduce {{.*}} : tensor<3xf32>
// SENT-NOT: dist.all_reduce
// SENT: return
func.func @channels(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                    %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                    %a: tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %e = tensor.empty() : tensor<8x3xf32>
  %p = arith.mulf %x, %y : tensor<8x3xf32>
  %q = linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %a : tensor<8x3xf32>, tensor<3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %d = arith.divf %v, %w : f32
    %n = arith.negf %d : f32
    linalg.yield %n : f32
  } -> tensor<8x3xf32>
  %r = arith.mulf %q, %y : tensor<8x3xf32>
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%p : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %u = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%r : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %h = math.tanh %s : tensor<3xf32>
  %k = math.tanh %u : tensor<3xf32>
  return %h, %k : tensor<3xf32>, tensor<3xf32>
}

// A sum over n and i of x times a factor that depends on n is computed from the sums over only i.
// CHECK-LABEL: func.func @fewer(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel"]{{.*}} ins(%arg0 :
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]{{.*}} ins(%{{.*}}, %arg1 : tensor<2x3xf32>, tensor<2x3xf32>)
// SENT-LABEL: func.func @fewer(
// SENT-COUNT-1: dist.all_reduce {{.*}} : tensor<2x3xf32>
// SENT-NOT: dist.all_reduce
// SENT: return
func.func @fewer(%x: tensor<2x8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                 %b: tensor<2x3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<2x3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zeros = arith.constant dense<0.0> : tensor<2x3xf32>
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#all, #some], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<2x8x3xf32>) outs(%zeros : tensor<2x3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<2x3xf32>
  %u = linalg.generic {indexing_maps = [#all, #some, #last], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x, %b : tensor<2x8x3xf32>, tensor<2x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %w: f32, %acc: f32):
    %m = arith.mulf %v, %w : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %h = math.tanh %s : tensor<2x3xf32>
  return %h, %u : tensor<2x3xf32>, tensor<3xf32>
}

// Deviations from their mean add up to zero: only the mean is reduced.
// CHECK-LABEL: func.func @deviations(
// SENT-LABEL: func.func @deviations(
// SENT-COUNT-1: dist.all_reduce
// SENT-NOT: dist.all_reduce
// SENT: return
func.func @deviations(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                      %a: tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<8x3xf32>
  %c = tensor.empty() : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %eighth = arith.constant dense<0.125> : tensor<3xf32>
  %m = arith.mulf %s, %eighth : tensor<3xf32>
  %d = linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x3xf32>, tensor<3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %t = arith.subf %v, %w : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %u = linalg.generic {indexing_maps = [#rows, #channel, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%d, %a : tensor<8x3xf32>, tensor<3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %w: f32, %acc: f32):
    %p = arith.mulf %v, %w : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %v = arith.addf %u, %a : tensor<3xf32>
  return %d, %v : tensor<8x3xf32>, tensor<3xf32>
}

// The same beside another factor: the remaining sum(y) is already reduced.
// SENT-LABEL: func.func @beside(
// SENT: dist.all_reduce {{.*}} : tensor<3xf32>, tensor<3xf32>
// SENT-NOT: dist.all_reduce
// SENT: return
func.func @beside(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                  %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<8x3xf32>
  %s = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %b = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%y : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %eighth = arith.constant dense<0.125> : tensor<3xf32>
  %m = arith.mulf %s, %eighth : tensor<3xf32>
  %d = linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x3xf32>, tensor<3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %t = arith.subf %v, %w : f32
    linalg.yield %t : f32
  } -> tensor<8x3xf32>
  %two = arith.constant dense<2.0> : tensor<8x3xf32>
  %twice = arith.mulf %d, %two : tensor<8x3xf32>
  %both = arith.subf %y, %twice : tensor<8x3xf32>
  %u = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%both : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %h = math.tanh %u : tensor<3xf32>
  return %d, %b, %h : tensor<8x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// Squares and elements are different sums.
// SENT-LABEL: func.func @different(
// SENT: dist.all_reduce {{.*}} : tensor<3xf32>, tensor<3xf32>
func.func @different(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %u = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %p = arith.mulf %v, %v : f32
    %t = arith.addf %acc, %p : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %s, %u : tensor<3xf32>, tensor<3xf32>
}

// As in a batch norm whose variance keeps its dimensions: the divisor is read at a constant index.
// CHECK-LABEL: func.func @kept(
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]{{.*}} ins(%arg0, %arg1 : tensor<8x3xf32>, tensor<8x3xf32>)
// CHECK-NOT: "reduction"
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]{{.*}} ins(%{{.*}}, %arg2 : tensor<3xf32>, tensor<1x3xf32>)
// CHECK: return
// SENT-LABEL: func.func @kept(
// SENT-COUNT-1: dist.all_reduce {{.*}} : tensor<3xf32>
// SENT-NOT: dist.all_reduce
// SENT: return
#kept = affine_map<(i, c) -> (0, c)>
func.func @kept(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %y: tensor<8x3xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %a: tensor<1x3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
        tensor<1x3xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %e = tensor.empty() : tensor<8x3xf32>
  %p = arith.mulf %x, %y : tensor<8x3xf32>
  %q = linalg.generic {indexing_maps = [#rows, #kept, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%p, %a : tensor<8x3xf32>, tensor<1x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %d = arith.divf %v, %w : f32
    linalg.yield %d : f32
  } -> tensor<8x3xf32>
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %zeros = arith.constant dense<0.0> : tensor<1x3xf32>
  %s = linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel"]}
      ins(%p : tensor<8x3xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %u = linalg.generic {indexing_maps = [#rows, #kept], iterator_types = ["reduction", "parallel"]}
      ins(%q : tensor<8x3xf32>) outs(%zeros : tensor<1x3xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %t = arith.addf %acc, %v : f32
    linalg.yield %t : f32
  } -> tensor<1x3xf32>
  %h = math.tanh %s : tensor<3xf32>
  %k = math.tanh %u : tensor<1x3xf32>
  return %h, %k : tensor<3xf32>, tensor<1x3xf32>
}
