// Products of warpgroups (wgmma), for sm_90a alone: 64 rows a warpgroup, operands in swizzled shared memory, the weights from
// registers. Rows of 128, 64 and 32 bytes have swizzles of these; longer rows are several tiles of them.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_90a warpgroups print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels=warpgroups -o /dev/null | FileCheck %s --check-prefix=EQUAL
// Other architectures have the instruction under no name; without the option nothing changes.
// RUN: not tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_90a,sm_80 warpgroups" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_90a print-ptx" -o /dev/null | FileCheck %s --check-prefix=OFF
// Planted faults: operands that are not swizzled, descriptors that begin elsewhere or have their strides exchanged, missing
// fences and waits.
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=swizzle" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SWIZZLE
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=offset" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OFFSET
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=stride" -o /dev/null 2>&1 | FileCheck %s --check-prefix=STRIDE
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=fence" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FENCE
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=proxy" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROXY
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups warpgroup-fault=wait" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="warpgroups drop-barrier=1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=RACE

// ARCH: error: architecture 'sm_80' lacks products of warpgroups; use --warpgroups with --arch sm_90a (or compute_90a) alone
// OFF-NOT: wgmma
// SWIZZLE-COUNT-4: error: on the emulated GPU argument 3 differs
// OFFSET-COUNT-4: error: on the emulated GPU
// STRIDE-COUNT-4: error: on the emulated GPU
// FENCE-COUNT-4: multiplies without a wgmma.fence after other accesses to its registers
// PROXY-COUNT-4: has written without a fence.proxy.async
// WAIT-COUNT-4: uses sums of a product that its wgmma.wait_group does not wait for
// RACE-COUNT-4: with no barrier between them

#q = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#k = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#l = affine_map<(b, h, m, n, f, g) -> (b, h, m)>

// CHECK-LABEL: causal: launches 1
// CHECK-NEXT: attention: grid 6, block 128
// CHECK: .target sm_90a
// CHECK: .extern .shared .align 1024 .b8 tessera_shared
// CHECK: cp.async.cg.shared.global
// CHECK: fence.proxy.async.shared::cta
// CHECK: wgmma.fence.sync.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK-NOT: mma.sync.aligned.m16n8k16
// EQUAL: causal: attention equal
func.func private @causal(%q: tensor<1x2x192x64xbf16>, %k: tensor<1x192x64xbf16>, %v: tensor<1x192x64xbf16>, %out0: tensor<1x2x192x64xbf16>, %out1: tensor<1x2x192xf32>) -> (tensor<1x2x192x64xbf16>, tensor<1x2x192xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x2x192x64xbf16>, tensor<1x192x64xbf16>, tensor<1x192x64xbf16>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF80 : bf16
    %u = arith.select %c, %s, %least : bf16
    ext.yield %u : bf16
  } -> tensor<1x2x192x64xbf16>, tensor<1x2x192xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x2x192x64xbf16>) outs(%out0 : tensor<1x2x192x64xbf16>) -> tensor<1x2x192x64xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x2x192xf32>) outs(%out1 : tensor<1x2x192xf32>) -> tensor<1x2x192xf32>
  return %c0, %c1 : tensor<1x2x192x64xbf16>, tensor<1x2x192xf32>
}

// Partial tiles, features that are not a multiple of a step, of the keys and the values by 64 and 32 bytes.
// CHECK-LABEL: uneven: launches 1
// CHECK-NEXT: attention: grid 4, block 128
// CHECK: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// EQUAL: uneven: attention equal
func.func private @uneven(%q: tensor<1x2x70x20xbf16>, %k: tensor<1x90x20xbf16>, %v: tensor<1x90x12xbf16>, %out0: tensor<1x2x70x12xbf16>, %out1: tensor<1x2x70xf32>) -> (tensor<1x2x70x12xbf16>, tensor<1x2x70xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x2x70x20xbf16>, tensor<1x90x20xbf16>, tensor<1x90x12xbf16>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    ext.yield %s : bf16
  } -> tensor<1x2x70x12xbf16>, tensor<1x2x70xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x2x70x12xbf16>) outs(%out0 : tensor<1x2x70x12xbf16>) -> tensor<1x2x70x12xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x2x70xf32>) outs(%out1 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
  return %c0, %c1 : tensor<1x2x70x12xbf16>, tensor<1x2x70xf32>
}

// CHECK-LABEL: wide: launches 1
// CHECK: wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16
// EQUAL: wide: attention equal
func.func private @wide(%q: tensor<1x1x128x96xf16>, %k: tensor<1x130x96xf16>, %v: tensor<1x130x48xf16>, %out0: tensor<1x1x128x48xf16>, %out1: tensor<1x1x128xf32>) -> (tensor<1x1x128x48xf16>, tensor<1x1x128xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x1x128x96xf16>, tensor<1x130x96xf16>, tensor<1x130x48xf16>) {
  ^bb0(%p: f16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f16
    %s = arith.mulf %p, %scale : f16
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFC00 : f16
    %u = arith.select %c, %s, %least : f16
    ext.yield %u : f16
  } -> tensor<1x1x128x48xf16>, tensor<1x1x128xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x1x128x48xf16>) outs(%out0 : tensor<1x1x128x48xf16>) -> tensor<1x1x128x48xf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x1x128xf32>) outs(%out1 : tensor<1x1x128xf32>) -> tensor<1x1x128xf32>
  return %c0, %c1 : tensor<1x1x128x48xf16>, tensor<1x1x128xf32>
}

// CHECK-LABEL: eighty: launches 1
// EQUAL: eighty: attention equal
func.func private @eighty(%q: tensor<1x1x64x80xbf16>, %k: tensor<1x64x80xbf16>, %v: tensor<1x64x32xbf16>, %out0: tensor<1x1x64x32xbf16>, %out1: tensor<1x1x64xf32>) -> (tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x1x64x80xbf16>, tensor<1x64x80xbf16>, tensor<1x64x32xbf16>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    ext.yield %s : bf16
  } -> tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x1x64x32xbf16>) outs(%out0 : tensor<1x1x64x32xbf16>) -> tensor<1x1x64x32xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x1x64xf32>) outs(%out1 : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  return %c0, %c1 : tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>
}

// Few queries do not fill the rows of a warpgroup, rows of odd length cannot be copied, and f32 stays exact.
// CHECK-LABEL: few: launches 2
// CHECK-NOT: wgmma
// CHECK-LABEL: odd: launches 1
// CHECK-NOT: wgmma
// EQUAL: few: attention attention equal
// EQUAL: odd: attention equal
func.func private @few(%q: tensor<1x2x20x64xbf16>, %k: tensor<1x1024x64xbf16>, %v: tensor<1x1024x64xbf16>, %out0: tensor<1x2x20x64xbf16>, %out1: tensor<1x2x20xf32>) -> (tensor<1x2x20x64xbf16>, tensor<1x2x20xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x2x20x64xbf16>, tensor<1x1024x64xbf16>, tensor<1x1024x64xbf16>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    ext.yield %s : bf16
  } -> tensor<1x2x20x64xbf16>, tensor<1x2x20xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x2x20x64xbf16>) outs(%out0 : tensor<1x2x20x64xbf16>) -> tensor<1x2x20x64xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x2x20xf32>) outs(%out1 : tensor<1x2x20xf32>) -> tensor<1x2x20xf32>
  return %c0, %c1 : tensor<1x2x20x64xbf16>, tensor<1x2x20xf32>
}

func.func private @odd(%q: tensor<1x1x64x33xbf16>, %k: tensor<1x64x33xbf16>, %v: tensor<1x64x32xbf16>, %out0: tensor<1x1x64x32xbf16>, %out1: tensor<1x1x64xf32>) -> (tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#q, #k, #v, #o, #l] ins(%q, %k, %v : tensor<1x1x64x33xbf16>, tensor<1x64x33xbf16>, tensor<1x64x32xbf16>) {
  ^bb0(%p: bf16, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : bf16
    %s = arith.mulf %p, %scale : bf16
    ext.yield %s : bf16
  } -> tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x1x64x32xbf16>) outs(%out0 : tensor<1x1x64x32xbf16>) -> tensor<1x1x64x32xbf16>
  %c1 = linalg.copy ins(%r#1 : tensor<1x1x64xf32>) outs(%out1 : tensor<1x1x64xf32>) -> tensor<1x1x64xf32>
  return %c0, %c1 : tensor<1x1x64x32xbf16>, tensor<1x1x64xf32>
}
