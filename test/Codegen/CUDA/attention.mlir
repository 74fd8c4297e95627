// An attention is one launch: scores are never in memory. f32 uses FMA; where TF32 is enabled, another launch by tensor cores
// runs in its place.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// A layout of fragments other than the PTX manual's is found.
// RUN: not tessera-opt %s --tessera-check-gpu-kernels=exchange-words=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=WORDS

#bmf = affine_map<(b, m, n, f, g) -> (b, m, f)>
#bnf = affine_map<(b, m, n, f, g) -> (b, n, f)>
#bng = affine_map<(b, m, n, f, g) -> (b, n, g)>
#bmg = affine_map<(b, m, n, f, g) -> (b, m, g)>
#bm = affine_map<(b, m, n, f, g) -> (b, m)>
#of_heads_bhmf = affine_map<(b, h, m, n, f, g) -> (b, h, m, f)>
#of_heads_bnf = affine_map<(b, h, m, n, f, g) -> (b, n, f)>
#of_heads_bng = affine_map<(b, h, m, n, f, g) -> (b, n, g)>
#of_heads_bhmg = affine_map<(b, h, m, n, f, g) -> (b, h, m, g)>
#of_heads_bhm = affine_map<(b, h, m, n, f, g) -> (b, h, m)>
#mn = affine_map<(b, m, n, f, g) -> (m, n)>

// CHECK-LABEL: causal: launches 1, workspace 0, bytes 197376 of 197376
// CHECK-NEXT: attention: grid 4, block 128
// CHECK-NEXT: attention (tf32): grid 4, block 128
// CHECK: .entry tessera{{.*}}_0(
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: fma.rn.f32
// CHECK: ex2.approx.ftz.f32
// CHECK: st.global.v4.b32
// CHECK-NOT: mma.sync
// CHECK: .entry tessera{{.*}}_1(
// CHECK: cp.async.cg.shared.global
// CHECK: cvt.rna.tf32.f32
// CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK: cvt.rna.tf32.f32
// CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// EQUAL: causal: attention equal
// EQUAL: causal, TF32: attention equal
// WORDS: by TF32 argument 3 differs
func.func private @causal(%q: tensor<2x96x64xf32>, %k: tensor<2x96x64xf32>, %v: tensor<2x96x64xf32>,
    %out0: tensor<2x96x64xf32>, %out1: tensor<2x96xf32>)
    -> (tensor<2x96x64xf32>, tensor<2x96xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<2x96x64xf32>, tensor<2x96xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x96x64xf32>) outs(%out0 : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x96xf32>) outs(%out1 : tensor<2x96xf32>) -> tensor<2x96xf32>
  return %c0, %c1 : tensor<2x96x64xf32>, tensor<2x96xf32>
}

// Partial tiles at the edge, and a number of features that is not a multiple of a tile.
// EQUAL: uneven: attention equal
// EQUAL: uneven, TF32: attention equal
func.func private @uneven(%q: tensor<3x37x20xf32>, %k: tensor<3x53x20xf32>, %v: tensor<3x53x12xf32>,
    %out0: tensor<3x37x12xf32>, %out1: tensor<3x37xf32>)
    -> (tensor<3x37x12xf32>, tensor<3x37xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg, #bm]
      ins(%q, %k, %v :
          tensor<3x37x20xf32>, tensor<3x53x20xf32>, tensor<3x53x12xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<3x37x12xf32>, tensor<3x37xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<3x37x12xf32>) outs(%out0 : tensor<3x37x12xf32>) -> tensor<3x37x12xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<3x37xf32>) outs(%out1 : tensor<3x37xf32>) -> tensor<3x37xf32>
  return %c0, %c1 : tensor<3x37x12xf32>, tensor<3x37xf32>
}

// EQUAL: long_rows: attention equal
// EQUAL: long_rows, TF32: attention equal
func.func private @long_rows(%q: tensor<1x70x128xf32>, %k: tensor<1x130x128xf32>, %v: tensor<1x130x128xf32>,
    %out0: tensor<1x70x128xf32>)
    -> (tensor<1x70x128xf32>) attributes {kernel.reads = 3 : i64} {
  %r:1 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #bmg]
      ins(%q, %k, %v :
          tensor<1x70x128xf32>, tensor<1x130x128xf32>, tensor<1x130x128xf32>) {
  ^bb0(%p: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<1x70x128xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<1x70x128xf32>) outs(%out0 : tensor<1x70x128xf32>) -> tensor<1x70x128xf32>
  return %c0 : tensor<1x70x128xf32>
}

// Three heads share their keys.
// EQUAL: groups: attention equal
// EQUAL: groups, TF32: attention equal
func.func private @groups(%q: tensor<2x3x40x32xf32>, %k: tensor<2x40x32xf32>, %v: tensor<2x40x32xf32>,
    %out0: tensor<2x3x40x32xf32>, %out1: tensor<2x3x40xf32>)
    -> (tensor<2x3x40x32xf32>, tensor<2x3x40xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#of_heads_bhmf, #of_heads_bnf, #of_heads_bng, #of_heads_bhmg, #of_heads_bhm]
      ins(%q, %k, %v :
          tensor<2x3x40x32xf32>, tensor<2x40x32xf32>, tensor<2x40x32xf32>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %c = arith.cmpi sge, %im, %in : index
    %least = arith.constant 0xFF800000 : f32
    %u = arith.select %c, %s, %least : f32
    ext.yield %u : f32
  } -> tensor<2x3x40x32xf32>, tensor<2x3x40xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x3x40x32xf32>) outs(%out0 : tensor<2x3x40x32xf32>) -> tensor<2x3x40x32xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x3x40xf32>) outs(%out1 : tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  return %c0, %c1 : tensor<2x3x40x32xf32>, tensor<2x3x40xf32>
}

// Heads that share keys are rows; one warp.
// CHECK-LABEL: one_query: launches 1
// CHECK-NEXT: attention: grid 2, block 32
// EQUAL: one_query: attention equal
// EQUAL: one_query, TF32: attention equal
func.func private @one_query(%q: tensor<2x4x1x64xf32>, %k: tensor<2x90x64xf32>, %v: tensor<2x90x64xf32>,
    %out0: tensor<2x4x1x64xf32>, %out1: tensor<2x4x1xf32>)
    -> (tensor<2x4x1x64xf32>, tensor<2x4x1xf32>) attributes {kernel.reads = 3 : i64} {
  %r:2 = ext.attention indexing_maps = [#of_heads_bhmf, #of_heads_bnf, #of_heads_bng, #of_heads_bhmg, #of_heads_bhm]
      ins(%q, %k, %v :
          tensor<2x4x1x64xf32>, tensor<2x90x64xf32>, tensor<2x90x64xf32>) {
  ^bb0(%p: f32, %ib: index, %ih: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    ext.yield %s : f32
  } -> tensor<2x4x1x64xf32>, tensor<2x4x1xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x4x1x64xf32>) outs(%out0 : tensor<2x4x1x64xf32>) -> tensor<2x4x1x64xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x4x1xf32>) outs(%out1 : tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  return %c0, %c1 : tensor<2x4x1x64xf32>, tensor<2x4x1xf32>
}

// EQUAL: bias: attention equal
// EQUAL: bias, TF32: attention equal
func.func private @bias(%q: tensor<2x40x32xf32>, %k: tensor<2x56x32xf32>, %v: tensor<2x56x32xf32>,
    %bias: tensor<40x56xf32>, %out0: tensor<2x40x32xf32>, %out1: tensor<2x40xf32>)
    -> (tensor<2x40x32xf32>, tensor<2x40xf32>) attributes {kernel.reads = 4 : i64} {
  %r:2 = ext.attention indexing_maps = [#bmf, #bnf, #bng, #mn, #bmg, #bm]
      ins(%q, %k, %v, %bias :
          tensor<2x40x32xf32>, tensor<2x56x32xf32>, tensor<2x56x32xf32>, tensor<40x56xf32>) {
  ^bb0(%p: f32, %x: f32, %ib: index, %im: index, %in: index, %if: index, %ig: index):
    %scale = arith.constant 0.125 : f32
    %s = arith.mulf %p, %scale : f32
    %t = arith.addf %s, %x : f32
    ext.yield %t : f32
  } -> tensor<2x40x32xf32>, tensor<2x40xf32>
  %c0 = linalg.copy ins(%r#0 : tensor<2x40x32xf32>) outs(%out0 : tensor<2x40x32xf32>) -> tensor<2x40x32xf32>
  %c1 = linalg.copy ins(%r#1 : tensor<2x40xf32>) outs(%out1 : tensor<2x40xf32>) -> tensor<2x40xf32>
  return %c0, %c1 : tensor<2x40x32xf32>, tensor<2x40xf32>
}
