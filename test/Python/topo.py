# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D0-16: rings and sets against brute force, parsing of the formats, and errors of files with line and column."""

import itertools
import os
import random
import tempfile
import unittest

from tessera.errors import Error
from tessera.topo import TopologyFileError, best_ring, best_set, read, read_text
from tessera.topo.linux import read_linux
from tessera.topo.rings import bottleneck

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Features/Inputs")


def machine(count, seed, levels=4, missing=0.0):
    chance = random.Random(seed)
    table = [[0.0] * count for _ in range(count)]
    for a, b in itertools.combinations(range(count), 2):
        table[a][b] = table[b][a] = 0.0 if chance.random() < missing else float(chance.randint(1, levels))
    return lambda a, b: table[a][b]


def brute_force(members, rate):
    first, *rest = members
    return max(bottleneck([first, *order], rate) for order in itertools.permutations(rest))


class Rings(unittest.TestCase):
    def test_up_to_8_devices_equal_brute_force(self):
        for count, seed in itertools.product(range(1, 8), range(12)):
            rate = machine(count, seed, missing=0.1 if seed % 3 == 0 else 0)
            best = brute_force(range(count), rate)
            if best <= 0:
                self.assertRaisesRegex(Error, "form no ring", best_ring, range(count), rate)
                continue
            found = best_ring(range(count), rate)
            self.assertEqual(sorted(found.order), list(range(count)))
            self.assertEqual((found.bottleneck, bottleneck(found.order, rate), found.is_optimal), (best, best, True))
        rate = machine(8, 1, levels=9)
        self.assertEqual(best_ring(range(8), rate).bottleneck, brute_force(range(8), rate))

    def test_sets_equal_brute_force(self):
        for count, seed in itertools.product((4, 6, 7), range(4)):
            rate = machine(count, seed, levels=6)
            for k in range(2, count):
                best = max(brute_force(members, rate) for members in itertools.combinations(range(count), k))
                found = best_set(count, rate, k)
                self.assertEqual((len(set(found.order)), found.bottleneck, bottleneck(found.order, rate)), (k, best, best))

    def test_beyond_it_is_bounded(self):
        for count, seed in ((12, 0), (16, 1), (33, 2)):
            rate = machine(count, seed, levels=20)
            for found in (best_ring(range(count), rate), best_set(count, rate, 11)):
                self.assertEqual(len(found.order), len(set(found.order)))
                self.assertEqual(found.bottleneck, bottleneck(found.order, rate))
                self.assertLessEqual(found.bottleneck, found.bound)

    def test_a_bound_that_is_not_met_is_said(self):
        # K(5, 6): no ring, as every other device of one would be of the smaller side; and no device cuts others off.
        rate = lambda a, b: 2.0 if (a < 5) != (b < 5) else 1.0
        found = best_ring(range(11), rate)
        self.assertEqual((found.bottleneck, found.bound, found.is_optimal), (1.0, 2.0, False))

    def test_wrong_sizes(self):
        for k in (0, 5):
            self.assertRaisesRegex(Error, f"a set of {k} devices; expected 1 to 4", best_set, 4, machine(4, 0), k)


class Formats(unittest.TestCase):
    def kinds(self, found):
        return [[found.path(a, b).kind for b in range(a)] for a in range(1, len(found.devices))]

    def test_hwloc(self):
        found = read(os.path.join(INPUTS, "topo-hwloc.xml"))
        self.assertEqual(self.kinds(found), [["NVLink"], ["SYS", "NVLink"], ["NVLink", "SYS", "NVLink"]])
        self.assertEqual((found.rate(0, 1), found.rate(2, 3), found.rate(0, 2)), (100e9, 50e9, 16e9))
        self.assertEqual([(n.number, n.cores, n.memory) for n in found.numa], [(0, 8, 64 << 30), (1, 8, 64 << 30)])
        self.assertEqual([d.numa for d in found.devices], [0, 0, 1, 1])
        self.assertEqual(found.adapters, ["mlx5_0: NUMA node 0"])

    def test_nvidia_smi(self):
        found = read(os.path.join(INPUTS, "topo-smi.txt"))
        self.assertEqual(self.kinds(found), [["NV4"], ["PIX", "SYS"], ["SYS", "PXB", "NV4"]])
        self.assertEqual([(n.number, n.cores) for n in found.numa], [(0, 32), (1, 32)])
        self.assertTrue(any("NV#" in note for note in found.notes))

    def test_nccl_switch(self):
        links = '<nvlink target="0000:c0:00.0" count="6" tclass="0x068000"/><nvlink target="0000:c1:00.0" count="6" tclass="0x068000"/>'
        gpus = "".join(f'<pci busid="0000:0{i}:00.0" link_speed="16 GT/s" link_width="16"><gpu dev="{i}" sm="80">{links}</gpu></pci>' for i in range(3))
        found = read_text(f'<system version="1"><cpu numaid="0">{gpus}</cpu></system>', "x.xml")
        self.assertEqual(self.kinds(found), [["NV12"], ["NV12", "NV12"]])
        self.assertEqual(found.rate(0, 2), 240e9)

    def test_pcie_classes(self):
        def gpu(i):
            return f'<pci busid="0000:0{i}:00.0" link_speed="16 GT/s" link_width="16"><gpu dev="{i}" sm="80"/></pci>'

        def switch(i, inside):
            return f'<pci busid="0000:f{i}:00.0" link_speed="16 GT/s" link_width="16">{inside}</pci>'
        text = switch(0, switch(1, gpu(0) + gpu(1)) + switch(2, gpu(2))) + gpu(3)
        found = read_text(f'<system version="1"><cpu numaid="0">{text}</cpu><cpu numaid="1">{gpu(4)}</cpu></system>', "x.xml")
        self.assertEqual(self.kinds(found), [["PIX"], ["PXB", "PXB"], ["PHB"] * 3, ["SYS"] * 4])
        self.assertEqual((found.rate(0, 1), found.rate(0, 4)), (24e9, 10e9))

    def test_sys(self):
        with tempfile.TemporaryDirectory() as root:
            def put(path, **files):
                os.makedirs(os.path.join(root, path), exist_ok=True)
                for name, text in files.items():
                    with open(os.path.join(root, path, name), "w") as file:
                        file.write(text + "\n")
            put("devices/system/node/node0", cpulist="0-3", meminfo="Node 0 MemTotal:  1024 kB")
            put("bus/pci/devices")
            for i, vendor in enumerate(("0x10de", "0x10de", "0x1234")):
                where = f"devices/pci0000:00/0000:00:01.0/0000:0{i + 1}:00.0"
                put(where, vendor=vendor, numa_node="0", max_link_speed="16.0 GT/s PCIe", max_link_width="16", **{"class": "0x030000"})
                os.symlink(os.path.join(root, where), os.path.join(root, f"bus/pci/devices/0000:0{i + 1}:00.0"))
            found = read_linux(root)
            self.assertEqual([d.place for d in found.devices], ["0000:01:00.0", "0000:02:00.0"])
            self.assertEqual((found.path(0, 1).kind, found.rate(0, 1)), ("PIX", 24e9))

    def test_the_compilers_files(self):
        for name, count, far in (("8gpu", 8, 450e9), ("2x8gpu", 16, 50e9)):
            found = read(os.path.join(INPUTS, "../../../share/topologies", name + ".json"))
            self.assertEqual((len(found.devices), found.rate(0, count - 1)), (count, far))


class Refused(unittest.TestCase):
    def refused(self, text, place, says):
        with self.assertRaises(TopologyFileError) as caught:
            read_text(text, "f")
        self.assertRegex(str(caught.exception), f"^f:{place}: error: .*{says}")

    def test_xml(self):
        self.refused("<a>\n <b></a>", "2:7", "not XML: mismatched tag")
        self.refused("<thing/>", "1:1", "the root is <thing>")
        self.refused('<system version="7"/>', "1:1", "version of <system> is '7'")
        self.refused('<system version="1">\n<cpu numaid="x"/></system>', "2:1", "'numaid' of <cpu> is 'x'")
        self.refused('<system version="1"><gpu dev="0"/></system>', "1:21", "<gpu> is outside <cpu>")
        self.refused('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', r"1:\d+", "entity 'b' is defined")
        self.refused('<topology version="1.0"/>', "1:1", "of hwloc 1")
        self.refused('<topology version="2.0">\n <object type="Machine"/></topology>', "2:2", "no <object type=.NUMANode.>")

    def test_json(self):
        good = '{"version": 1, "name": "a", "device": {"kind": "g", "flops": {"f32": 1}, "memory_rate": 1, "memory": 1},\n "links": [%s]}'
        link = '{"name": "%s", "devices": %s, "alpha": 1, "rate": %s}'
        self.assertEqual(len(read_text(good % (link % ("x", 2, 1)), "f").devices), 2)
        self.refused("{", "1:2", "expected a name in quotes")
        self.refused('{"version": 2}', "1:2|1:13", "field 'version' is 2")
        self.refused('{"version": 1,\n "version": 1}', "2:2", "'version' is given twice")
        self.refused(good % "", "2:11", "'links' must be a list with at least one link")
        self.refused(good % (link % ("x", 2, -1)), "2:60", "'links.0..rate' is -1")
        self.refused(good % (link % ("x", 4, 1) + "," + link % ("y", 6, 1)), "2:88", "multiple of the link before it: 4")
        self.refused(good % (link % ("x", 1000000, 1)), "2:11", "joins? 1000000 devices")
        self.refused("[1, 2", "1:6", "expected ',' or ']', got the end")
        self.refused("[" * 200, "1:102", "nested more than 100 deep")

    def test_matrix(self):
        self.refused("hello\n", "1:1", "nvidia-smi topo -m")
        self.refused("", "1:1", "the file is empty")
        self.refused("\tGPU0\tGPU1\nGPU0\t X \tNV4\n", "3:1", "the row of GPU1 is missing")
        self.refused("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tSYS\t X \n", "3:6", "the matrix must be symmetric")
        self.refused("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\n", "3:9", "row GPU1 has 1 cells")


if __name__ == "__main__":
    unittest.main()
