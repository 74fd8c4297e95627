// RUN: tessera explain %s --function mixer | FileCheck %s
// RUN: tessera run %s --function mixer --check
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" | FileCheck %s --check-prefix=CUT

// Products along the cut dimension, twice. No tensor requests a cut of the batch, but it keeps the
// products local: x moves there by one all-to-all of 4 * 16 * 128 * 64 / 8 * 7/8 bytes and back by
// another; before, each product gathered x, 7/8 of its 4 * 16 * 128 * 64 bytes.
// CHECK: all_to_all {{.*}} 57344 on the wire {{.*}} operand 0 of linalg.contract
// CHECK-NEXT: all_to_all {{.*}} 57344 on the wire {{.*}} operand 1 of linalg.generic
// CHECK-NEXT: total: 2 collectives
// CUT-LABEL: func.func @mixer(
// CUT: linalg.contract {{.*}}factors = {{\[\["t"\], \[\], \[\], \[\]\]}}>
// CUT: linalg.contract {{.*}}factors = {{\[\["t"\], \[\], \[\], \[\]\]}}>
// CUT: linalg.generic {{.*}}factors = {{\[\[\], \["t"\], \[\]\]}}>
dist.process_mesh @m(shape = [8], dim_names = ["t"])

#x = affine_map<(b, f, d, s) -> (b, s, d)>
#w = affine_map<(b, f, d, s) -> (s, f)>
#h = affine_map<(b, f, d, s) -> (b, f, d)>

func.func @mixer(%x: tensor<16x128x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                 %w: tensor<128x128xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<16x128x64xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
  %zero = arith.constant dense<0.0> : tensor<16x128x64xf32>
  %p = linalg.contract indexing_maps = [#x, #w, #h] ins(%x, %w : tensor<16x128x64xf32>, tensor<128x128xf32>)
      outs(%zero : tensor<16x128x64xf32>) -> tensor<16x128x64xf32>
  %t = math.tanh %p : tensor<16x128x64xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #h] ins(%t, %w : tensor<16x128x64xf32>, tensor<128x128xf32>)
      outs(%zero : tensor<16x128x64xf32>) -> tensor<16x128x64xf32>
  %y = arith.addf %x, %q : tensor<16x128x64xf32>
  return %y : tensor<16x128x64xf32>
}
