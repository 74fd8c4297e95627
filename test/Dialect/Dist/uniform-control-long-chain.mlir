// RUN: tessera explain %s | FileCheck %s

// Each value of a condition is visited once, not once per path to it.
// CHECK: collectives
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %t: tensor<f32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : tensor<8x8xf32>
  %v0 = tensor.extract %t[] : tensor<f32>
  %v1 = arith.addf %v0, %v0 : f32
  %v2 = arith.addf %v1, %v1 : f32
  %v3 = arith.addf %v2, %v2 : f32
  %v4 = arith.addf %v3, %v3 : f32
  %v5 = arith.addf %v4, %v4 : f32
  %v6 = arith.addf %v5, %v5 : f32
  %v7 = arith.addf %v6, %v6 : f32
  %v8 = arith.addf %v7, %v7 : f32
  %v9 = arith.addf %v8, %v8 : f32
  %v10 = arith.addf %v9, %v9 : f32
  %v11 = arith.addf %v10, %v10 : f32
  %v12 = arith.addf %v11, %v11 : f32
  %v13 = arith.addf %v12, %v12 : f32
  %v14 = arith.addf %v13, %v13 : f32
  %v15 = arith.addf %v14, %v14 : f32
  %v16 = arith.addf %v15, %v15 : f32
  %v17 = arith.addf %v16, %v16 : f32
  %v18 = arith.addf %v17, %v17 : f32
  %v19 = arith.addf %v18, %v18 : f32
  %v20 = arith.addf %v19, %v19 : f32
  %v21 = arith.addf %v20, %v20 : f32
  %v22 = arith.addf %v21, %v21 : f32
  %v23 = arith.addf %v22, %v22 : f32
  %v24 = arith.addf %v23, %v23 : f32
  %v25 = arith.addf %v24, %v24 : f32
  %v26 = arith.addf %v25, %v25 : f32
  %v27 = arith.addf %v26, %v26 : f32
  %v28 = arith.addf %v27, %v27 : f32
  %v29 = arith.addf %v28, %v28 : f32
  %v30 = arith.addf %v29, %v29 : f32
  %v31 = arith.addf %v30, %v30 : f32
  %v32 = arith.addf %v31, %v31 : f32
  %v33 = arith.addf %v32, %v32 : f32
  %v34 = arith.addf %v33, %v33 : f32
  %v35 = arith.addf %v34, %v34 : f32
  %v36 = arith.addf %v35, %v35 : f32
  %v37 = arith.addf %v36, %v36 : f32
  %v38 = arith.addf %v37, %v37 : f32
  %v39 = arith.addf %v38, %v38 : f32
  %v40 = arith.addf %v39, %v39 : f32
  %lim = arith.constant 1.0 : f32
  %c = arith.cmpf olt, %v40, %lim : f32
  %r = scf.if %c -> tensor<8x8xf32> {
    %p = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  } else { scf.yield %a : tensor<8x8xf32> }
  return %r : tensor<8x8xf32>
}
