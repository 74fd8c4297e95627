// Enough rows for blocks of two warpgroups.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_90a warpgroups print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels=warpgroups -o /dev/null | FileCheck %s --check-prefix=EQUAL

#q = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#l = affine_map<(b, h, m, n, f, g) -> (b, h, m)>

// Two warpgroups, tiles of 128 keys, of which the 128 features are two tiles.
// CHECK-LABEL: many: launches 1
// CHECK-NEXT: attention: grid 132, block 256
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// EQUAL: many: attention equal
func.func private @many(%q: tensor<132x1x100x128xf16>, %k: tensor<132x128x128xf16>, %v: tensor<132x128x128xf16>, %out0: tensor<132x1x100x128xf16>, %out1: tensor<132x1x100xf32>) -> (tensor<132x1x100x128xf16>, tensor<132x1x100xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<132x1x100x128xf16>, tensor<132x128x128xf16>, tensor<132x128x128xf16>) {
  ^bb0(%p: f16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f16
    %s = arith.mulf %p, %scale : f16
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFC00 : f16
    %u = arith.select %c, %s, %least : f16
    ext.yield %u : f16
  } -> tensor<132x1x100x128xf16>, tensor<132x1x100xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<132x1x100x128xf16>) outs(%out0 : tensor<132x1x100x128xf16>) -> tensor<132x1x100x128xf16>
  %c1 = linalg.copy ins(%r#1 : tensor<132x1x100xf32>) outs(%out1 : tensor<132x1x100xf32>) -> tensor<132x1x100xf32>
  return %c0, %c1 : tensor<132x1x100x128xf16>, tensor<132x1x100xf32>
}
