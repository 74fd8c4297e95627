# RUN: %tessera_python %s
# REQUIRES: python
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D3-13: tessera launch --emit=tesserajob writes workers alone, a scheduler with parameter servers and workers, and a scheduler with
workers; each passes the schema of the definition, and wrong counts of roles are named, by the command and by the schema."""

import copy
import json
import os
import subprocess
import sys
import unittest

from tessera.launch import arguments, emit
from tessera.launch.emit import roles

CRD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/kubernetes/tesserajob-crd.json")
FORMS = ("worker=1", "worker=4", "scheduler=1,ps=1,worker=1", "scheduler=1,ps=2,worker=4", "scheduler=1,worker=8")


def manifest(*words):
    parsed = arguments.parse(["--emit=tesserajob", "--image=example.org/train:1", *words, "train.py", "--lr", "0.1"])
    emit.text(parsed)
    return roles.tesserajob(parsed)


def errors(made):
    """What the schema says; None where jsonschema is not installed."""
    try:
        import jsonschema
    except ImportError:
        return None
    with open(CRD, encoding="utf-8") as file:
        version = json.load(file)["spec"]["versions"][0]
    jsonschema.Draft7Validator.check_schema(version["schema"]["openAPIV3Schema"])
    return [each.message for each in jsonschema.Draft7Validator(version["schema"]["openAPIV3Schema"]).iter_errors(made)]


class Forms(unittest.TestCase):
    def test_three_forms(self):
        for form in FORMS:
            made = manifest(f"--roles={form}", "--gpus_per_node=2", "--namespace=team")
            have = {role.lower(): each["replicas"] for role, each in made["spec"]["roles"].items()}
            self.assertEqual(",".join(f"{role}={have[role]}" for role in have), form)
            self.assertIn(errors(made), ([], None))
        self.assertEqual(manifest("--nnodes=3")["spec"]["roles"]["Worker"]["replicas"], 3)

    def test_commands_of_the_roles(self):
        made = manifest("--roles=scheduler=1,ps=2,worker=4")["spec"]["roles"]
        words = {role: each["template"]["spec"]["containers"][0]["command"] for role, each in made.items()}
        self.assertEqual(words["Scheduler"][2:4] + words["Scheduler"][-4:], ["tessera.kvstore", "scheduler", "--workers", "4", "--servers", "2"])
        self.assertEqual(words["PS"][3], "server")
        self.assertEqual(words["Worker"][-3:], ["train.py", "--lr", "0.1"])
        made = manifest("--roles=scheduler=1,worker=4", "--gpus_per_node=2")["spec"]["roles"]
        for role, rank in (("Scheduler", "0"), ("Worker", "$$((TESSERA_ROLE_INDEX + 1))")):
            text = made[role]["template"]["spec"]["containers"][0]["command"][2]
            self.assertIn(f'--nnodes=5 --nproc_per_node=2 --node_rank="{rank}" --master_addr=train-scheduler-0.train', text)

    def test_command_prints_yaml(self):
        out = subprocess.run([sys.executable, "-m", "tessera.launch", "--emit=tesserajob", "--image=i", "--roles=worker=2", "train.py"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("kind: TesseraJob\n", out)
        self.assertIn("    Worker:\n      replicas: 2\n", out)


class Refused(unittest.TestCase):
    def test_wrong_counts_are_named(self):
        for text, says in (("worker=0", "worker='0'; a role has 1 to 10000 replicas"), ("worker=-1", "worker='-1'"),
                           ("worker=two", "worker='two'"), ("worker", "worker=''"), ("scheduler=2,worker=1", "scheduler=2; a job has one scheduler"),
                           ("scheduler=1,ps=2", "no worker"), ("ps=1,worker=1", "ps=1 and no scheduler"), ("worker=1,worker=2", "worker twice"),
                           ("chief=1,worker=1", "names 'chief'; the roles are scheduler, ps, worker")):
            done = subprocess.run([sys.executable, "-m", "tessera.launch", "--emit=tesserajob", "--image=i", f"--roles={text}", "x.py"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(says, done.stderr)

    @unittest.skipIf(errors({}) is None, "jsonschema is not installed")
    def test_the_schema_refuses_them_too(self):
        good = manifest("--roles=scheduler=1,ps=2,worker=4")

        def changed(change):
            made = copy.deepcopy(good)
            change(made["spec"]["roles"])
            return errors(made)
        self.assertEqual(changed(lambda of: None), [])
        self.assertEqual(changed(lambda of: of["Worker"].update(replicas=0)), ["0 is less than the minimum of 1"])
        self.assertEqual(changed(lambda of: of["Scheduler"].update(replicas=2)), ["2 is greater than the maximum of 1"])
        self.assertEqual(changed(lambda of: of.pop("Worker")), ["'Worker' is a required property"])
        self.assertTrue(changed(lambda of: of.pop("Scheduler")))
        self.assertEqual(changed(lambda of: of["PS"].update(replicas="2")), ["'2' is not of type 'integer'"])
        self.assertTrue(changed(lambda of: of["PS"]["template"]["spec"].update(containers=[])))


if __name__ == "__main__":
    unittest.main()
