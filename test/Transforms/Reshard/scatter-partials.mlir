// RUN: tessera-opt %s --tessera-pipeline="compile-to=resharded" | FileCheck %s
// RUN: tessera run %s --function rounded --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function rows --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function summed --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function joined --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function whole --check | FileCheck %s --check-prefix=EXEC

// EXEC: {{^}}check  result0  ok

// Nonlinear ops run between the two halves of an all-reduce if that sends fewer bytes.
dist.process_mesh @m(shape = [4], dim_names = ["x"])

// The gathered value is rounded: two bytes per element instead of four.
// CHECK-LABEL: func.func @rounded(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[S:.*]] = dist.reshard %[[P]] to #dist.sharding<@m, [shard(0)]> {{.*}} : tensor<64x256xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<64x256xf32>)
// CHECK: arith.truncf
// CHECK: dist.reshard %[[T]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<64x256xbf16>
func.func @rounded(%a: tensor<64x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x256xf32>)
    -> (tensor<64x256xbf16> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = arith.truncf %p : tensor<64x256xf32> to tensor<64x256xbf16>
  return %t : tensor<64x256xbf16>
}

// The sums of rows are smaller than the rows. A product over rows is also cut.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: dist.reshard %[[P]] to #dist.sharding<@m, [shard(0)]>
// CHECK: linalg.matmul {dist.op_sharding = #dist.op_sharding<@m, factors = {{\[\[}}"x"], [], []]>
// CHECK: %[[R:.*]] = linalg.reduce
// CHECK: dist.reshard %[[R]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<64xf32>
func.func @rows(%a: tensor<64x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x256xf32>,
                %w: tensor<256x256xf32>) -> (tensor<64xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = math.tanh %p : tensor<64x256xf32>
  %q = linalg.matmul ins(%t, %w : tensor<64x256xf32>, tensor<256x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %u = math.tanh %q : tensor<64x256xf32>
  %r = linalg.reduce {arith.addf} ins(%u : tensor<64x256xf32>) outs(%none : tensor<64xf32>) dimensions = [1]
  return %r : tensor<64xf32>
}

// What is computed of one is concatenated with another one, along whole rows, before sums over rows are needed.
// CHECK-LABEL: func.func @joined(
// CHECK: dist.reshard %{{.*}} to #dist.sharding<@m, [shard(0)]> {{.*}} : tensor<64x256xf32>
// CHECK: dist.reshard %{{.*}} to #dist.sharding<@m, [shard(0)]> {{.*}} : tensor<64x256xf32>
// CHECK: tensor.concat {{.*}}factors = {{\[\[}}"x"]
// CHECK: %[[R:.*]] = linalg.reduce {{.*}}partial(sum)
// CHECK: dist.reshard %[[R]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<512xf32>
func.func @joined(%a: tensor<64x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x256xf32>,
                  %c: tensor<32x256xf32>) -> (tensor<512xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %none = arith.constant dense<0.0> : tensor<512xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %q = linalg.matmul ins(%a, %c : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %h = math.exp %p : tensor<64x256xf32>
  %j = tensor.concat dim(1) %h, %q : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<64x512xf32>
  %t = math.tanh %j : tensor<64x512xf32>
  %r = linalg.reduce {arith.addf} ins(%t : tensor<64x512xf32>) outs(%none : tensor<512xf32>) dimensions = [0]
  return %r : tensor<512xf32>
}

// Only sums over the cut dimension are needed: they are contributions, a vector and a matrix.
// CHECK-LABEL: func.func @summed(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: dist.reshard %[[P]] to #dist.sharding<@m, [shard(0)]>
// CHECK: %[[R:.*]] = linalg.reduce {{.*}}factors = {{\[\[}}"x"], []]{{.*}}partial(sum)
// CHECK: dist.reshard %[[R]] to #dist.sharding<@m, [replicate]> {{.*}} : tensor<256xf32>
// CHECK-NOT: tensor<64x256xf32> to #dist.sharding<@m, [replicate]>
func.func @summed(%a: tensor<64x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x256xf32>,
                  %w: tensor<8x64xf32>)
    -> (tensor<256xf32> {dist.sharding = #dist.sharding<@m, [replicate]>},
        tensor<8x256xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %none = arith.constant dense<0.0> : tensor<256xf32>
  %few = arith.constant dense<0.0> : tensor<8x256xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = math.tanh %p : tensor<64x256xf32>
  %r = linalg.reduce {arith.addf} ins(%t : tensor<64x256xf32>) outs(%none : tensor<256xf32>) dimensions = [0]
  %v = linalg.matmul ins(%w, %t : tensor<8x64xf32>, tensor<64x256xf32>) outs(%few : tensor<8x256xf32>) -> tensor<8x256xf32>
  return %r, %v : tensor<256xf32>, tensor<8x256xf32>
}

// As many bytes are needed whole, so nothing is saved: the all-reduce stays.
// CHECK-LABEL: func.func @whole(
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: dist.reshard %[[P]] to #dist.sharding<@m, [replicate]>
// CHECK-NOT: dist.reshard
func.func @whole(%a: tensor<64x32xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}, %b: tensor<32x256xf32>)
    -> (tensor<64x256xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %p = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x256xf32>) outs(%zero : tensor<64x256xf32>) -> tensor<64x256xf32>
  %t = math.tanh %p : tensor<64x256xf32>
  return %t : tensor<64x256xf32>
}
