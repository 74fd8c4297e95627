// Gradients by products of warpgroups: the tile of keys is the right operand of scores, by rows, and of the sums, by columns.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_90a warpgroups print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels=warpgroups -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=wait" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WAIT

// WAIT-COUNT-3: uses sums of a product that its wgmma.wait_group does not wait for

#q = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#l = affine_map<(b, h, m, n, f, g) -> (b, h, m)>

// CHECK-LABEL: b64: launches 2
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK-NOT: mma.sync.aligned.m16n8k16
// EQUAL: b64: attention attention equal
func.func private @b64(%q: tensor<1x2x128x64xbf16>, %k: tensor<1x192x64xbf16>, %v: tensor<1x192x64xbf16>, %g: tensor<1x2x128x64xbf16>, %l: tensor<1x2x128xf32>, %e: tensor<1x2x128xf32>, %out0: tensor<1x2x128x64xbf16>, %out1: tensor<1x192x64xbf16>, %out2: tensor<1x192x64xbf16>)
    -> (tensor<1x2x128x64xbf16>, tensor<1x192x64xbf16>, tensor<1x192x64xbf16>) attributes {kernel.reads = 6 : i64} {
  %d:3 = ext.attention_backward indexing_maps = [#q, #k, #v, #o, #l, #l, #q, #k, #v]
      ins(%q, %k, %v, %g, %l, %e : tensor<1x2x128x64xbf16>, tensor<1x192x64xbf16>, tensor<1x192x64xbf16>, tensor<1x2x128x64xbf16>, tensor<1x2x128xf32>, tensor<1x2x128xf32>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF80 : bf16
    %u = arith.select %c, %s, %least : bf16
    ext.yield %u : bf16
  } derivative {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index, %t: bf16):
    %scale = arith.constant 0.125 : bf16
    %w = arith.mulf %t, %scale : bf16
    %c = arith.cmpi sge, %im, %in : index
    %zero = arith.constant 0.0 : bf16
    %x = arith.select %c, %w, %zero : bf16
    ext.yield %x : bf16
  } -> tensor<1x2x128x64xbf16>, tensor<1x192x64xbf16>, tensor<1x192x64xbf16>
  %c0 = linalg.copy ins(%d#0 : tensor<1x2x128x64xbf16>) outs(%out0 : tensor<1x2x128x64xbf16>) -> tensor<1x2x128x64xbf16>
  %c1 = linalg.copy ins(%d#1 : tensor<1x192x64xbf16>) outs(%out1 : tensor<1x192x64xbf16>) -> tensor<1x192x64xbf16>
  %c2 = linalg.copy ins(%d#2 : tensor<1x192x64xbf16>) outs(%out2 : tensor<1x192x64xbf16>) -> tensor<1x192x64xbf16>
  return %c0, %c1, %c2 : tensor<1x2x128x64xbf16>, tensor<1x192x64xbf16>, tensor<1x192x64xbf16>
}

// CHECK-LABEL: b128: launches 2
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// CHECK-NOT: mma.sync.aligned.m16n8k16
// EQUAL: b128: attention attention equal
func.func private @b128(%q: tensor<1x1x160x128xf16>, %k: tensor<1x200x128xf16>, %v: tensor<1x200x128xf16>, %g: tensor<1x1x160x128xf16>, %l: tensor<1x1x160xf32>, %e: tensor<1x1x160xf32>, %out0: tensor<1x1x160x128xf16>, %out1: tensor<1x200x128xf16>, %out2: tensor<1x200x128xf16>)
    -> (tensor<1x1x160x128xf16>, tensor<1x200x128xf16>, tensor<1x200x128xf16>) attributes {kernel.reads = 6 : i64} {
  %d:3 = ext.attention_backward indexing_maps = [#q, #k, #v, #o, #l, #l, #q, #k, #v]
      ins(%q, %k, %v, %g, %l, %e : tensor<1x1x160x128xf16>, tensor<1x200x128xf16>, tensor<1x200x128xf16>, tensor<1x1x160x128xf16>, tensor<1x1x160xf32>, tensor<1x1x160xf32>) {
  ^bb0(%p: f16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f16
    %s = arith.mulf %p, %scale : f16
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFC00 : f16
    %u = arith.select %c, %s, %least : f16
    ext.yield %u : f16
  } derivative {
  ^bb0(%p: f16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index, %t: f16):
    %scale = arith.constant 0.125 : f16
    %w = arith.mulf %t, %scale : f16
    %c = arith.cmpi sge, %im, %in : index
    %zero = arith.constant 0.0 : f16
    %x = arith.select %c, %w, %zero : f16
    ext.yield %x : f16
  } -> tensor<1x1x160x128xf16>, tensor<1x200x128xf16>, tensor<1x200x128xf16>
  %c0 = linalg.copy ins(%d#0 : tensor<1x1x160x128xf16>) outs(%out0 : tensor<1x1x160x128xf16>) -> tensor<1x1x160x128xf16>
  %c1 = linalg.copy ins(%d#1 : tensor<1x200x128xf16>) outs(%out1 : tensor<1x200x128xf16>) -> tensor<1x200x128xf16>
  %c2 = linalg.copy ins(%d#2 : tensor<1x200x128xf16>) outs(%out2 : tensor<1x200x128xf16>) -> tensor<1x200x128xf16>
  return %c0, %c1, %c2 : tensor<1x1x160x128xf16>, tensor<1x200x128xf16>, tensor<1x200x128xf16>
}

// CHECK-LABEL: bu: launches 2
// CHECK: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// CHECK-NOT: mma.sync.aligned.m16n8k16
// EQUAL: bu: attention attention equal
func.func private @bu(%q: tensor<1x2x70x20xbf16>, %k: tensor<1x90x20xbf16>, %v: tensor<1x90x12xbf16>, %g: tensor<1x2x70x12xbf16>, %l: tensor<1x2x70xf32>, %e: tensor<1x2x70xf32>, %out0: tensor<1x2x70x20xbf16>, %out1: tensor<1x90x20xbf16>, %out2: tensor<1x90x12xbf16>)
    -> (tensor<1x2x70x20xbf16>, tensor<1x90x20xbf16>, tensor<1x90x12xbf16>) attributes {kernel.reads = 6 : i64} {
  %d:3 = ext.attention_backward indexing_maps = [#q, #k, #v, #o, #l, #l, #q, #k, #v]
      ins(%q, %k, %v, %g, %l, %e : tensor<1x2x70x20xbf16>, tensor<1x90x20xbf16>, tensor<1x90x12xbf16>, tensor<1x2x70x12xbf16>, tensor<1x2x70xf32>, tensor<1x2x70xf32>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    ext.yield %s : bf16
  } derivative {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index, %t: bf16):
    %scale = arith.constant 0.125 : bf16
    %w = arith.mulf %t, %scale : bf16
    ext.yield %w : bf16
  } -> tensor<1x2x70x20xbf16>, tensor<1x90x20xbf16>, tensor<1x90x12xbf16>
  %c0 = linalg.copy ins(%d#0 : tensor<1x2x70x20xbf16>) outs(%out0 : tensor<1x2x70x20xbf16>) -> tensor<1x2x70x20xbf16>
  %c1 = linalg.copy ins(%d#1 : tensor<1x90x20xbf16>) outs(%out1 : tensor<1x90x20xbf16>) -> tensor<1x90x20xbf16>
  %c2 = linalg.copy ins(%d#2 : tensor<1x90x12xbf16>) outs(%out2 : tensor<1x90x12xbf16>) -> tensor<1x90x12xbf16>
  return %c0, %c1, %c2 : tensor<1x2x70x20xbf16>, tensor<1x90x20xbf16>, tensor<1x90x12xbf16>
}
