// RUN: tessera-opt %s --verify-roundtrip | FileCheck %s

dist.process_mesh @pod(shape = [2], dim_names = ["dp"])
dist.process_mesh @other(shape = [2], dim_names = ["x"], process_ids = [2, 3])

func.func private @k0_add(%a: tensor<4x8xf32>, %out: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {kernel.reads = 1 : i64}

// CHECK-LABEL: rt.program @main peak 512 {
rt.program @main peak 512 {
  // CHECK-NEXT: rt.argument "x" : tensor<8x8xf32>
  rt.argument "x" : tensor<8x8xf32>
  // CHECK-NEXT: rt.argument "n" : tensor<i32> range [0, 7]
  rt.argument "n" : tensor<i32> range [0, 7]
  // CHECK-NEXT: rt.result "y" : tensor<8x8xf32> feeds 0
  rt.result "y" : tensor<8x8xf32> feeds 0
  // CHECK-NEXT: rt.part "main" over @pod arena 512 {
  rt.part "main" over @pod arena 512 {
    // CHECK-NEXT: %[[X:.*]] = rt.slot "x" at 0 : !rt.slot<4x8xf32>
    %x = rt.slot "x" at 0 : !rt.slot<4x8xf32>
    %y = rt.slot "y" at 128 : !rt.slot<4x8xf32>
    %n = rt.slot "n" at 256 : !rt.slot<i32>
    // CHECK: %[[I:.*]] = rt.slot "i" at 320 : !rt.slot<index>
    %i = rt.slot "i" at 320 : !rt.slot<index>
    // CHECK: %[[C:.*]] = rt.slot "c" at 328 : !rt.slot<i1>
    %c = rt.slot "c" at 328 : !rt.slot<i1>
    %d = rt.slot "d" at 384 : !rt.slot<index>
    // CHECK: rt.constant "w" dense<{{.*}}> : tensor<8x2xf32> in !rt.slot<8x2xf32>
    %w = rt.constant "w" dense<1.0> : tensor<8x2xf32> in !rt.slot<8x2xf32>
    %o = rt.slot "o" at 448 : !rt.slot<4x2xf32>
    %v = rt.constant "v" dense<1.0> : tensor<2xf32> in !rt.slot<2xf32>
    // CHECK: rt.coordinate %{{.*}} over ["dp"]
    rt.coordinate %d over ["dp"]
    // CHECK: rt.argument_home 0 in %[[X]] : !rt.slot<4x8xf32> as #dist.sharding<@pod, [shard(0)]>
    rt.argument_home 0 in %x : !rt.slot<4x8xf32> as #dist.sharding<@pod, [shard(0)]>
    rt.argument_home 1 in %n : !rt.slot<i32> as #dist.sharding<@pod, [replicate]>
    // CHECK: rt.result_home 0 in %[[X]]
    rt.result_home 0 in %x : !rt.slot<4x8xf32> as #dist.sharding<@pod, [shard(0)]>
    // CHECK: rt.launch @k0_add(%[[X]]) to (%[[Y:.*]]) : (!rt.slot<4x8xf32>) to (!rt.slot<4x8xf32>)
    rt.launch @k0_add(%x) to (%y) : (!rt.slot<4x8xf32>) to (!rt.slot<4x8xf32>)
    // CHECK: rt.gemm %[[Y]], %{{.*}} to %{{.*}} batch 1 m 4 n 2 k 8 ld [8, 2, 2] stride [0, 0, 0] accumulate :
    rt.gemm %y, %w to %o batch 1 m 4 n 2 k 8 ld [8, 2, 2] stride [0, 0, 0] accumulate : !rt.slot<4x8xf32>, !rt.slot<8x2xf32> to !rt.slot<4x2xf32>
    // CHECK: rt.gemm %[[Y]], %{{.*}} to %[[O:.*]] bias %[[V:.*]] batch 1 m 4 n 2 k 8 {{.*}} epilogue "relu" : {{.*}} to !rt.slot<4x2xf32> bias !rt.slot<2xf32>
    rt.gemm %y, %w to %o bias %v batch 1 m 4 n 2 k 8 ld [8, 2, 2] stride [0, 0, 0] epilogue "relu" : !rt.slot<4x8xf32>, !rt.slot<8x2xf32> to !rt.slot<4x2xf32> bias !rt.slot<2xf32>
    // CHECK: rt.contract %[[Y]], %{{.*}} to %[[O]] starts [0, 2, 0] extents [4, 2, 3] strides [8, 0, 2], [0, 1, -1], [2, 1, 0] accumulate : !rt.slot<4x8xf32>, !rt.slot<8x2xf32> to !rt.slot<4x2xf32>
    rt.contract %y, %w to %o starts [0, 2, 0] extents [4, 2, 3] strides [8, 0, 2], [0, 1, -1], [2, 1, 0] accumulate : !rt.slot<4x8xf32>, !rt.slot<8x2xf32> to !rt.slot<4x2xf32>
    // CHECK: %[[T:.*]] = rt.collective "all_reduce"(%[[Y]]) to (%[[X]]) over @pod ["dp"] reduction sum from
    %t = rt.collective "all_reduce" (%y) to (%x) over @pod ["dp"] reduction sum
      from [#dist.sharding<@pod, [partial(sum)]>] to [#dist.sharding<@pod, [replicate]>] global [tensor<4x8xf32>]
      : (!rt.slot<4x8xf32>) to (!rt.slot<4x8xf32>) -> !rt.token
    // CHECK: rt.wait %[[T]]
    rt.wait %t
    // CHECK: rt.loop %[[I]] = 0 to 8 step 1 {
    rt.loop %i = 0 to 8 step 1 {
      // CHECK: rt.loop %{{.*}} = 0 to %{{.*}} step 2 {
      rt.loop %d = 0 to %i step 2 {
      }
      // CHECK: rt.copy %[[X]] to %[[Y]] : !rt.slot<4x8xf32> to !rt.slot<4x8xf32>
      rt.copy %x to %y : !rt.slot<4x8xf32> to !rt.slot<4x8xf32>
    }
    // CHECK: rt.while %[[C]] before {
    // CHECK: } do {
    rt.while %c before {
    } do {
    }
    // CHECK: rt.if %[[C]] then {
    rt.if %c then {
      // CHECK: rt.send %[[X]] : !rt.slot<4x8xf32> id 3 global tensor<8x8xf32> from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@other, [shard(1)]>
      rt.send %x : !rt.slot<4x8xf32> id 3 global tensor<8x8xf32> from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@other, [shard(1)]>
    // CHECK: } else {
    } else {
    }
  }
  rt.part "second" over @other arena 128 {
    %x = rt.slot "x" at 0 : !rt.slot<8x4xf32>
    // CHECK: rt.recv %{{.*}} : !rt.slot<8x4xf32> id 3
    rt.recv %x : !rt.slot<8x4xf32> id 3 global tensor<8x8xf32> from #dist.sharding<@pod, [shard(0)]> to #dist.sharding<@other, [shard(1)]>
  }
}

// CHECK-LABEL: func.func @groups(
func.func @groups(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: rt.group "exp" {
  %0 = rt.group "exp" {
    %1 = math.exp %x : tensor<4xf32>
    // CHECK: rt.yield %{{.*}} : tensor<4xf32>
    rt.yield %1 : tensor<4xf32>
  // CHECK: } : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}
