// RUN: tessera-opt %s --dist-autodiff="function=loss wrt=v,w" -o %t.grad
// RUN: tessera-opt %t.grad --tessera-pipeline="compile-to=partitioned" -o %t
// RUN: tessera-opt %t --dist-schedule-pipeline | FileCheck %s
// RUN: tessera-opt %t --dist-schedule-pipeline=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: tessera-opt %t --dist-schedule-pipeline=schedule=zb-h1 | FileCheck %s --check-prefix=ZERO
// RUN: tessera-opt %t --dist-schedule-pipeline=schedule=sequential | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %t --dist-schedule-pipeline --dist-schedule-pipeline=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: not tessera-opt %t --dist-schedule-pipeline="schedule=gpipe memory-budget=0.0000001" 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not tessera-opt %t --dist-schedule-pipeline="schedule=auto memory-budget=0.0000001" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: tessera explain %t.grad | FileCheck %s --check-prefix=REPORT
// RUN: tessera explain %t.grad --schedule gpipe | FileCheck %s --check-prefix=CHOSEN
// CHOSEN: pipeline: gpipe, 2 stages
// RUN: tessera explain %t.grad --schedule auto | FileCheck %s --check-prefix=AUTO
// AUTO: pipeline: 1f1b, 2 stages

// The ops of each mesh in the order of the schedule, sends after their operand, receives before their reader.
dist.process_mesh @a(shape = [1], dim_names = ["x"])
dist.process_mesh @b(shape = [1], dim_names = ["x"], process_ids = [1])

func.func private @loss(%v: tensor<4x4xf32> {dist.name = "v", dist.sharding = #dist.sharding<@a, [replicate]>},
                        %w: tensor<4x4xf32> {dist.name = "w", dist.sharding = #dist.sharding<@b, [replicate]>},
                        %x: tensor<2x4xf32> {dist.sharding = #dist.sharding<@a, [replicate]>}) -> tensor<f32> {
  %c = arith.constant dense<0.0> : tensor<2x4xf32>
  %h = linalg.matmul ins(%x, %v : tensor<2x4xf32>, tensor<4x4xf32>) outs(%c : tensor<2x4xf32>) -> tensor<2x4xf32>
  %t = math.tanh %h : tensor<2x4xf32>
  %r = dist.reshard %t to #dist.sharding<@b, [replicate]> : tensor<2x4xf32>
  %d = arith.constant dense<0.0> : tensor<2x4xf32>
  %o = linalg.matmul ins(%r, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%d : tensor<2x4xf32>) -> tensor<2x4xf32>
  %q = math.tanh %o : tensor<2x4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%q : tensor<2x4xf32>) outs(%z : tensor<f32>) dimensions = [0, 1]
  return %s : tensor<f32>
}
func.func private @loss_grad(tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>)

// CHECK-LABEL: func.func @main(
// CHECK-SAME: dist.schedule = "1f1b"
// CHECK: dist.segment "forward" of 0 in 0
// CHECK: linalg.matmul
// CHECK: dist.send {{.*}} to @b
// CHECK-NEXT: dist.segment "forward" of 1 in 0
// CHECK: dist.send {{.*}} to @b
// CHECK-NEXT: dist.segment "backward" of 0 in 0
// CHECK: dist.recv from @b
// CHECK: dist.segment "forward" of 2 in 0
// CHECK: dist.segment "backward" of 1 in 0
// CHECK: dist.segment "backward" of 2 in 0
// CHECK: dist.segment "update" of 0 in 0
// CHECK: return
// CHECK-LABEL: func.func @main_b(
// CHECK-NOT: linalg
// CHECK: dist.segment "forward" of 0 in 1
// CHECK: dist.recv from @a
// CHECK: linalg.matmul
// CHECK: dist.segment "backward" of 0 in 1
// CHECK: dist.send {{.*}} to @a
// CHECK-NEXT: dist.segment "weight" of 0 in 1
// CHECK: dist.segment "forward" of 1 in 1
// CHECK: dist.segment "backward" of 1 in 1
// CHECK: dist.segment "weight" of 1 in 1
// CHECK: dist.segment "forward" of 2 in 1

// GPIPE: func.func @main(
// GPIPE: dist.segment "forward" of 0 in 0
// GPIPE: dist.segment "forward" of 1 in 0
// GPIPE: dist.segment "forward" of 2 in 0
// GPIPE: dist.segment "backward" of 0 in 0
// GPIPE: dist.segment "backward" of 1 in 0
// GPIPE: dist.segment "backward" of 2 in 0
// GPIPE: dist.segment "update"
// GPIPE-NOT: dist.segment
// GPIPE: func.func @main_b(
// GPIPE: dist.segment "forward" of 0 in 1
// GPIPE: dist.segment "forward" of 1 in 1
// GPIPE: dist.segment "forward" of 2 in 1
// GPIPE: dist.segment "backward" of 0 in 1
// GPIPE: dist.segment "weight" of 0 in 1

// ZERO: func.func @main_b(
// ZERO: dist.segment "backward" of 1 in 1
// ZERO: dist.segment "weight" of 0 in 1
// ZERO: dist.segment "forward" of 2 in 1
// ZERO: dist.segment "backward" of 2 in 1
// ZERO: dist.segment "weight" of 1 in 1
// ZERO: dist.segment "weight" of 2 in 1

// ONE: func.func @main(
// ONE: dist.segment "forward" of 0 in 0
// ONE: dist.segment "backward" of 0 in 0
// ONE: dist.segment "forward" of 1 in 0

// MEMORY: error: schedule 'gpipe' takes {{[0-9]+}} bytes on mesh '{{[ab]}}', the budget is 107 bytes; '{{[a-z0-9-]+}}' takes least, {{[0-9]+}} bytes
// NONE: error: no schedule fits into 107 bytes per device; 'sequential' takes least, {{[0-9]+}} bytes on mesh '{{[ab]}}': use more stages or smaller micro-batches

// REPORT: pipeline: 1f1b, 2 stages on 2 meshes, 3 micro-batches; bubble {{[0-9.]+}} % by formula, {{[0-9.]+}} % modelled
// REPORT-NEXT: @a 2 micro-batches alive F0 F1 B0 F2 B1 B2
// REPORT-NEXT: @b 1 micro-batch alive F0 B0 F1 B1 F2 B2
func.func @main(%v: tensor<4x4xf32> {dist.name = "v", dist.sharding = #dist.sharding<@a, [replicate]>},
                %w: tensor<4x4xf32> {dist.name = "w", dist.sharding = #dist.sharding<@b, [replicate]>},
                %x: tensor<2x4xf32>, %y: tensor<2x4xf32>, %z: tensor<2x4xf32>)
    -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>) attributes {dist.schedule = "1f1b"} {
  %0:3 = func.call @loss_grad(%v, %w, %x) {dist.micro_batch = 0 : i64}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>)
  %1:3 = func.call @loss_grad(%v, %w, %y) {dist.micro_batch = 1 : i64}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>)
  %2:3 = func.call @loss_grad(%v, %w, %z) {dist.micro_batch = 2 : i64}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>)
  %s = arith.addf %0#0, %1#0 : tensor<f32>
  %t = arith.addf %s, %2#0 : tensor<f32>
  %dv = arith.addf %0#1, %1#1 : tensor<4x4xf32>
  %ev = arith.addf %dv, %2#1 : tensor<4x4xf32>
  %dw = arith.addf %0#2, %1#2 : tensor<4x4xf32>
  %ew = arith.addf %dw, %2#2 : tensor<4x4xf32>
  return %t, %ev, %ew : tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>
}
