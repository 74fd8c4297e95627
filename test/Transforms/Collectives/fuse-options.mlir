// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=index config=35,20" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=index config=-1,20" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not tessera-opt %s --dist-fuse-collectives="all-gather=index config=1" 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=size config=0" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=all" 2>&1 | FileCheck %s --check-prefix=MODE

// ORDER: comm_fusion 'allreduce': mode index needs ascending, unique indices >= 0, found 20
// NEGATIVE: comm_fusion 'allreduce': mode index needs ascending, unique indices >= 0, found -1
// GATHER: comm_fusion 'allgather': mode index is for all-reduce only
// SIZE: comm_fusion 'allreduce': mode size needs config = one positive number of MiB
// MODE: comm_fusion 'allreduce': unknown mode 'all'; it is one of off, auto, size, index
func.func @main() { return }
