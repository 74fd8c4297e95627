// A scan is one launch, which reads and writes each element once; a few long lines are three, which read elements twice.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-accesses" -o /dev/null | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=0 races=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FAULT
// FAULT: on the emulated GPU argument {{.*}}
// FAULT-NEXT: @odd

// Several lines share a block: each has 32 lanes of a warp.
// CHECK: short: scan equal
// BYTES: short: launches 1, workspace 0, bytes 104000 of 104000
// BYTES-NEXT: scan: grid 33, block 128, shared 0,
// BYTES-NOT: by 32 bits
// BYTES: few: launches 1,
func.func private @short(%a0: tensor<130x100xf32>, %o0: tensor<130x100xf32>) -> (tensor<130x100xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<130x100xf32>) {
  ^bb0(%x0: f32, %y0: f32):
    %r = arith.addf %x0, %y0 : f32
    ext.yield %r : f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<130x100xf32>) outs(%o0 : tensor<130x100xf32>) -> tensor<130x100xf32>
  return %c0 : tensor<130x100xf32>
}

// Where a line is no multiple of 16 bytes, lanes have one element each. What is before the first is the identity.
// CHECK: few: scan equal
func.func private @few(%a0: tensor<9x3xf32>, %o0: tensor<9x3xf32>) -> (tensor<9x3xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 exclusive ins(%a0 : tensor<9x3xf32>) identity [0.0 : f32] {
  ^bb0(%x0: f32, %y0: f32):
    %r = arith.addf %x0, %y0 : f32
    ext.yield %r : f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<9x3xf32>) outs(%o0 : tensor<9x3xf32>) -> tensor<9x3xf32>
  return %c0 : tensor<9x3xf32>
}

// Warps share a line.
// CHECK: odd: scan equal
// BYTES: odd: launches 1, workspace 0, bytes 40040 of 40040
// BYTES: reads argument 0 by 32 bits: lines of 1001 elements
func.func private @odd(%a0: tensor<5x1001xi32>, %o0: tensor<5x1001xi32>) -> (tensor<5x1001xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 reverse ins(%a0 : tensor<5x1001xi32>) {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<5x1001xi32>) outs(%o0 : tensor<5x1001xi32>) -> tensor<5x1001xi32>
  return %c0 : tensor<5x1001xi32>
}

// A block walks over chunks of 4,096 elements, the last of which is not whole.
// CHECK: long: scan equal
// BYTES: long: launches 1, workspace 0, bytes 6720000 of 6720000
// BYTES-NEXT: scan: grid 140, block 256
func.func private @long(%a0: tensor<140x6000xf32>, %o0: tensor<140x6000xf32>) -> (tensor<140x6000xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<140x6000xf32>) {
  ^bb0(%x0: f32, %y0: f32):
    %r = arith.maximumf %x0, %y0 : f32
    ext.yield %r : f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<140x6000xf32>) outs(%o0 : tensor<140x6000xf32>) -> tensor<140x6000xf32>
  return %c0 : tensor<140x6000xf32>
}

// CHECK: backward: scan equal
func.func private @backward(%a0: tensor<140x5004xi32>, %o0: tensor<140x5004xi32>) -> (tensor<140x5004xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 exclusive reverse ins(%a0 : tensor<140x5004xi32>) identity [0 : i32] {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<140x5004xi32>) outs(%o0 : tensor<140x5004xi32>) -> tensor<140x5004xi32>
  return %c0 : tensor<140x5004xi32>
}

// Too few lines for a block each: totals of parts, a scan of these, a scan of each part.
// CHECK: parts: scan scan scan equal
// BYTES: parts: launches 3, workspace 512, bytes 709600 of 480000
// BYTES-NEXT: scan: grid 14, block 256, {{.*}} reads 229376, writes 56
// BYTES: scan: grid 1, {{.*}} reads 56, writes 56
// BYTES: scan: grid 16, block 256, {{.*}} reads 240056, writes 240000
func.func private @parts(%a0: tensor<2x30000xi32>, %o0: tensor<2x30000xi32>) -> (tensor<2x30000xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<2x30000xi32>) {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<2x30000xi32>) outs(%o0 : tensor<2x30000xi32>) -> tensor<2x30000xi32>
  return %c0 : tensor<2x30000xi32>
}

// CHECK: parts_backward: scan scan scan equal
func.func private @parts_backward(%a0: tensor<20001xi64>, %o0: tensor<20001xi64>) -> (tensor<20001xi64>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 0 reverse ins(%a0 : tensor<20001xi64>) {
  ^bb0(%x0: i64, %y0: i64):
    %r = arith.addi %x0, %y0 : i64
    ext.yield %r : i64
  }
  %c0 = linalg.copy ins(%s#0 : tensor<20001xi64>) outs(%o0 : tensor<20001xi64>) -> tensor<20001xi64>
  return %c0 : tensor<20001xi64>
}

// CHECK: parts_exclusive: scan scan scan equal
func.func private @parts_exclusive(%a0: tensor<1x40000xbf16>, %o0: tensor<1x40000xbf16>) -> (tensor<1x40000xbf16>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 exclusive ins(%a0 : tensor<1x40000xbf16>) identity [0xFF80 : bf16] {
  ^bb0(%x0: bf16, %y0: bf16):
    %r = arith.maximumf %x0, %y0 : bf16
    ext.yield %r : bf16
  }
  %c0 = linalg.copy ins(%s#0 : tensor<1x40000xbf16>) outs(%o0 : tensor<1x40000xbf16>) -> tensor<1x40000xbf16>
  return %c0 : tensor<1x40000xbf16>
}

// A linear recurrence, which does not commute.
// CHECK: linear: scan equal
func.func private @linear(%a0: tensor<3x700xf32>, %a1: tensor<3x700xf32>, %o0: tensor<3x700xf32>, %o1: tensor<3x700xf32>) -> (tensor<3x700xf32>, tensor<3x700xf32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.scan dim = 1 ins(%a0, %a1 : tensor<3x700xf32>, tensor<3x700xf32>) {
  ^bb0(%x0: f32, %x1: f32, %y0: f32, %y1: f32):
    %m = arith.mulf %x0, %y0 : f32
    %p = arith.mulf %x1, %y0 : f32
    %q = arith.addf %p, %y1 : f32
    ext.yield %m, %q : f32, f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<3x700xf32>) outs(%o0 : tensor<3x700xf32>) -> tensor<3x700xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<3x700xf32>) outs(%o1 : tensor<3x700xf32>) -> tensor<3x700xf32>
  return %c0, %c1 : tensor<3x700xf32>, tensor<3x700xf32>
}

// CHECK: linear_parts: scan scan scan equal
func.func private @linear_parts(%a0: tensor<1x20001xf32>, %a1: tensor<1x20001xf32>, %o0: tensor<1x20001xf32>, %o1: tensor<1x20001xf32>) -> (tensor<1x20001xf32>, tensor<1x20001xf32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.scan dim = 1 ins(%a0, %a1 : tensor<1x20001xf32>, tensor<1x20001xf32>) {
  ^bb0(%x0: f32, %x1: f32, %y0: f32, %y1: f32):
    %m = arith.mulf %x0, %y0 : f32
    %p = arith.mulf %x1, %y0 : f32
    %q = arith.addf %p, %y1 : f32
    ext.yield %m, %q : f32, f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<1x20001xf32>) outs(%o0 : tensor<1x20001xf32>) -> tensor<1x20001xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<1x20001xf32>) outs(%o1 : tensor<1x20001xf32>) -> tensor<1x20001xf32>
  return %c0, %c1 : tensor<1x20001xf32>, tensor<1x20001xf32>
}

// Bits, and elements of several widths; a result that nobody reads has no argument.
// CHECK: bits: scan equal
func.func private @bits(%a0: tensor<3x300xi1>, %o0: tensor<3x300xi1>) -> (tensor<3x300xi1>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<3x300xi1>) {
  ^bb0(%x0: i1, %y0: i1):
    %r = arith.ori %x0, %y0 : i1
    ext.yield %r : i1
  }
  %c0 = linalg.copy ins(%s#0 : tensor<3x300xi1>) outs(%o0 : tensor<3x300xi1>) -> tensor<3x300xi1>
  return %c0 : tensor<3x300xi1>
}

// CHECK: mixed: scan equal
func.func private @mixed(%a0: tensor<3x320xf32>, %a1: tensor<3x320xi8>, %o1: tensor<3x320xi8>) -> (tensor<3x320xi8>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.scan dim = 1 ins(%a0, %a1 : tensor<3x320xf32>, tensor<3x320xi8>) {
  ^bb0(%x0: f32, %x1: i8, %y0: f32, %y1: i8):
    %c = arith.cmpf oge, %x0, %y0 : f32
    %v = arith.select %c, %x0, %y0 : f32
    %w = arith.select %c, %x1, %y1 : i8
    ext.yield %v, %w : f32, i8
  }
  %c1 = linalg.copy ins(%s#1 : tensor<3x320xi8>) outs(%o1 : tensor<3x320xi8>) -> tensor<3x320xi8>
  return %c1 : tensor<3x320xi8>
}

// Lines of another dimension: adjacent threads have adjacent lines, of which several threads share one.
// CHECK: columns: scan equal
// BYTES: columns: launches 1, workspace 0, bytes 28000 of 28000
// BYTES-NEXT: scan: grid 2, block 256
// BYTES: reads argument 0 by 32 bits: adjacent threads have adjacent lines
func.func private @columns(%a0: tensor<70x50xi32>, %o0: tensor<70x50xi32>) -> (tensor<70x50xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 0 ins(%a0 : tensor<70x50xi32>) {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<70x50xi32>) outs(%o0 : tensor<70x50xi32>) -> tensor<70x50xi32>
  return %c0 : tensor<70x50xi32>
}

// CHECK: columns_backward: scan equal
func.func private @columns_backward(%a0: tensor<3x70x5xi32>, %o0: tensor<3x70x5xi32>) -> (tensor<3x70x5xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 exclusive reverse ins(%a0 : tensor<3x70x5xi32>) identity [0 : i32] {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<3x70x5xi32>) outs(%o0 : tensor<3x70x5xi32>) -> tensor<3x70x5xi32>
  return %c0 : tensor<3x70x5xi32>
}

// CHECK: columns_parts: scan scan scan equal
// BYTES: columns_parts: launches 3, workspace 10240, bytes 977280 of 640000
func.func private @columns_parts(%a0: tensor<2000x40xi32>, %o0: tensor<2000x40xi32>) -> (tensor<2000x40xi32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 0 ins(%a0 : tensor<2000x40xi32>) {
  ^bb0(%x0: i32, %y0: i32):
    %r = arith.addi %x0, %y0 : i32
    ext.yield %r : i32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<2000x40xi32>) outs(%o0 : tensor<2000x40xi32>) -> tensor<2000x40xi32>
  return %c0 : tensor<2000x40xi32>
}

// CHECK: columns_linear: scan scan scan equal
func.func private @columns_linear(%a0: tensor<2x2000x3xf32>, %a1: tensor<2x2000x3xf32>, %o0: tensor<2x2000x3xf32>, %o1: tensor<2x2000x3xf32>) -> (tensor<2x2000x3xf32>, tensor<2x2000x3xf32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.scan dim = 1 ins(%a0, %a1 : tensor<2x2000x3xf32>, tensor<2x2000x3xf32>) {
  ^bb0(%x0: f32, %x1: f32, %y0: f32, %y1: f32):
    %m = arith.mulf %x0, %y0 : f32
    %p = arith.mulf %x1, %y0 : f32
    %q = arith.addf %p, %y1 : f32
    ext.yield %m, %q : f32, f32
  }
  %c0 = linalg.copy ins(%s#0 : tensor<2x2000x3xf32>) outs(%o0 : tensor<2x2000x3xf32>) -> tensor<2x2000x3xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<2x2000x3xf32>) outs(%o1 : tensor<2x2000x3xf32>) -> tensor<2x2000x3xf32>
  return %c0, %c1 : tensor<2x2000x3xf32>, tensor<2x2000x3xf32>
}

// CHECK: first: scan equal
func.func private @first(%a0: tensor<2x333xf16>, %o0: tensor<2x333xf16>) -> (tensor<2x333xf16>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<2x333xf16>) {
  ^bb0(%x0: f16, %y0: f16):
    ext.yield %x0 : f16
  }
  %c0 = linalg.copy ins(%s#0 : tensor<2x333xf16>) outs(%o0 : tensor<2x333xf16>) -> tensor<2x333xf16>
  return %c0 : tensor<2x333xf16>
}

// CHECK: single: scan equal
func.func private @single(%a0: tensor<7x1xf64>, %o0: tensor<7x1xf64>) -> (tensor<7x1xf64>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.scan dim = 1 ins(%a0 : tensor<7x1xf64>) {
  ^bb0(%x0: f64, %y0: f64):
    %r = arith.addf %x0, %y0 : f64
    ext.yield %r : f64
  }
  %c0 = linalg.copy ins(%s#0 : tensor<7x1xf64>) outs(%o0 : tensor<7x1xf64>) -> tensor<7x1xf64>
  return %c0 : tensor<7x1xf64>
}
