// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --check | FileCheck %s --check-prefix=VALUE

// A mask as code for packed sequences computes it: positions are those of an iota, so the step from
// each to the next is 1, and there is one sequence. A window of the last three keys has a key for
// each query, so no query is masked whole. What remains are comparisons of loop indices.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0) -> (d0)>
#two = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @main(
// CHECK-NOT: ext.scan
// CHECK-NOT: dist.rearrange
// CHECK-NOT: "reduction"
// CHECK: %[[Q:.*]] = linalg.generic {indexing_maps = [#{{.*}}], {{.*}} outs(%{{.*}} : tensor<16xi32>)
// CHECK: linalg.index 0
// CHECK: %[[MASK:.*]] = linalg.generic
// CHECK: arith.cmpi sle
// CHECK: arith.subi
// CHECK: arith.cmpi sgt
// CHECK-NEXT: arith.andi
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic {{.*}} ins(%[[MASK]], %arg0 :
// CHECK-NOT: linalg.generic
// VALUE: check {{.*}} ok
func.func @main(%x: tensor<16x16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16x16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %e = tensor.empty() : tensor<16xi32>
  %p = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<16xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<16xi32>
  %first = tensor.extract_slice %p[0] [1] [1] : tensor<16xi32> to tensor<1xi32>
  %one = arith.constant dense<1> : tensor<1xi32>
  %before = arith.subi %first, %one : tensor<1xi32>
  %others = tensor.extract_slice %p[0] [15] [1] : tensor<16xi32> to tensor<15xi32>
  %previous = tensor.concat dim(0) %before, %others : (tensor<1xi32>, tensor<15xi32>) -> tensor<16xi32>
  %step = arith.subi %p, %previous : tensor<16xi32>
  %ones = arith.constant dense<1> : tensor<16xi32>
  %begins = arith.cmpi ne, %step, %ones : tensor<16xi32>
  %number = arith.extui %begins : tensor<16xi1> to tensor<16xi32>
  %sequence = ext.scan dim = 0 ins(%number : tensor<16xi32>) {
  ^bb0(%a: i32, %b: i32):
    %sum = arith.addi %a, %b : i32
    ext.yield %sum : i32
  }
  %m = tensor.empty() : tensor<16x16xi1>
  %mask = linalg.generic {indexing_maps = [#row, #column, #row, #column, #two], iterator_types = ["parallel", "parallel"]}
      ins(%p, %p, %sequence, %sequence : tensor<16xi32>, tensor<16xi32>, tensor<16xi32>, tensor<16xi32>) outs(%m : tensor<16x16xi1>) {
  ^bb0(%q: i32, %k: i32, %ofQ: i32, %ofK: i32, %out: i1):
    %causal = arith.cmpi sle, %k, %q : i32
    %same = arith.cmpi eq, %ofQ, %ofK : i32
    %both = arith.andi %causal, %same : i1
    %three = arith.constant 3 : i32
    %begin = arith.subi %q, %three : i32
    %near = arith.cmpi sgt, %k, %begin : i32
    %all = arith.andi %both, %near : i1
    linalg.yield %all : i1
  } -> tensor<16x16xi1>
  %none = arith.constant dense<false> : tensor<16xi1>
  %any = linalg.generic {indexing_maps = [#two, #row], iterator_types = ["parallel", "reduction"]}
      ins(%mask : tensor<16x16xi1>) outs(%none : tensor<16xi1>) {
  ^bb0(%in: i1, %out: i1):
    %or = arith.ori %out, %in : i1
    linalg.yield %or : i1
  } -> tensor<16xi1>
  %f = tensor.empty() : tensor<16x16xf32>
  %y = linalg.generic {indexing_maps = [#two, #row, #two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %any, %x : tensor<16x16xi1>, tensor<16xi1>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) {
  ^bb0(%is: i1, %isAny: i1, %in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %minus = arith.constant -1.0 : f32
    %kept = arith.select %is, %in, %minus : f32
    %shown = arith.select %isAny, %kept, %zero : f32
    linalg.yield %shown : f32
  } -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
