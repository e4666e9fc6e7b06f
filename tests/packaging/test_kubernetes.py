# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/ for Kubernetes, KServe, Prometheus and Grafana against the schemas of these projects, and the Helm chart with helm.

    tests/packaging/test_kubernetes.py --tools DIRECTORY     with kubeconform, helm and the modules of scripts/kubernetes.sh
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")
TOOLS = None
VALUES = {"models": {"existingClaim": "models"}, "autoscaling": {"enabled": True}, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
          "prometheusRule": {"enabled": True}, "imagePullSecrets": [{"name": "registry"}], "podAnnotations": {"a": "b"}, "nodeSelector": {"a": "b"},
          "tolerations": [{"key": "a", "operator": "Exists"}], "env": [{"name": "A", "value": "b"}]}
PULL = {"models": {"pull": [{"name": "digits", "from": "s3://models/digits/"}], "pullSecret": "store"}}

KINDS = ("PersistentVolumeClaim", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy")


def strict(schema):
    """Makes every object of a schema that lists its members reject others."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(result.get("properties"), dict) and "additionalProperties" not in result and not result.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = False
    if result.get("x-kubernetes-int-or-string") or result.get("format") == "int-or-string":
        result.pop("type", None)
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return result


def used_by(schema, definitions):
    """Returns the definitions that a schema refers to, also indirectly."""
    found, pending = {}, [schema]
    while pending:
        for name in re.findall(r'"#/definitions/([^"]+)"', json.dumps(pending.pop())):
            if name not in found:
                found[name] = definitions[name]
                pending.append(definitions[name])
    return found


def write_schemas(directory):
    """Writes a schema for each kind, with the names that kubeconform uses: those of Kubernetes from its OpenAPI description, others from CRDs."""
    with open(os.path.join(TOOLS, "modules", "swagger.json"), encoding="utf-8") as file:
        definitions = json.load(file)["definitions"]
    definitions = strict(definitions)
    # A quantity may be a number, too.
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"anyOf": [{"type": "string"}, {"type": "number"}]}
    kinds = [(kind, {**definition, "definitions": used_by(definition, definitions)}) for definition in definitions.values()
             for kind in definition.get("x-kubernetes-group-version-kind", []) if kind["kind"] in KINDS]
    for name in sorted(os.listdir(os.path.join(TOOLS, "modules", "crds"))):
        with open(os.path.join(TOOLS, "modules", "crds", name), encoding="utf-8") as file:
            crd = yaml.safe_load(file)["spec"]
        for version in crd["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            kinds.append(({"kind": crd["names"]["kind"], "group": crd["group"], "version": version["name"]}, schema))
    for kind, schema in kinds:
        group = kind["group"].split(".")[0]
        suffix = f"-{group}-{kind['version']}" if group else f"-{kind['version']}"
        with open(os.path.join(directory, f"{kind['kind'].lower()}{suffix.lower()}.json"), "w", encoding="utf-8") as file:
            json.dump(schema, file)


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="kelp-kubernetes-")
        write_schemas(cls.directory)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def validate(self, text):
        """Returns the exit code and the output of kubeconform."""
        location = os.path.join(self.directory, "{{.ResourceKind}}{{.KindSuffix}}.json")
        done = subprocess.run([os.path.join(TOOLS, "kubeconform"), "-strict", "-summary", "-schema-location", location, "-"], input=text, capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def check(self, text, count):
        code, output = self.validate(text)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, rf"Summary: {count} resources? found .* Valid: {count}, Invalid: 0, Errors: 0, Skipped: 0")

    def helm(self, *words, values=None):
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(values or {}, file)
            file.flush()
            done = subprocess.run([os.path.join(TOOLS, "helm"), *words, os.path.join(DEPLOY, "helm", "kelp"), "--values", file.name], capture_output=True,
                                  text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_manifests(self):
        with open(os.path.join(DEPLOY, "kubernetes", "kelp.yaml"), encoding="utf-8") as file:
            self.check(file.read(), 7)

    def test_kserve(self):
        for name in ("runtime.yaml", "inferenceservice.yaml"):
            with open(os.path.join(DEPLOY, "kserve", name), encoding="utf-8") as file:
                self.check(file.read(), 1)

    def test_misspelt_fields_are_rejected(self):
        for path, name, wrong in (("kubernetes/kelp.yaml", "terminationGracePeriodSeconds", "terminationGraceSeconds"),
                                  ("kubernetes/kelp.yaml", "podMetricsEndpoints", "podMetricEndpoints"),
                                  ("kserve/runtime.yaml", "supportedModelFormats", "supportedFormats"), ("kserve/inferenceservice.yaml", "modelFormat", "format")):
            with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
                text = file.read()
            self.assertIn(name, text)
            self.assertNotEqual(self.validate(text.replace(name, wrong))[0], 0, wrong)

    def test_chart(self):
        code, output, errors = self.helm("lint", "--strict")
        self.assertEqual(code, 0, output + errors)
        for values, count in (({}, 4), (VALUES, 7), (PULL, 4)):
            code, output, errors = self.helm("template", "release", values=values)
            self.assertEqual(code, 0, errors)
            self.check(output, count)
        self.assertIn("s3://models/digits/", output)

    def test_chart_rejects_contradictions(self):
        values = {"models": {"existingClaim": "models", "pull": PULL["models"]["pull"]}}
        code, _, errors = self.helm("template", "release", values=values)
        self.assertNotEqual(code, 0)
        self.assertIn("set one of them", errors)

    def test_options_of_the_server_exist(self):
        """Options in the files are those of `kelp serve --help`."""
        with open(os.path.join(ROOT, "docs", "cli.md"), encoding="utf-8") as file:
            known = set(re.findall(r"--[a-z0-9-]+", file.read()))
        for path in ("kubernetes/kelp.yaml", "kserve/runtime.yaml", "helm/kelp/values.yaml", "helm/kelp/templates/deployment.yaml"):
            with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
                used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", "\n".join(line for line in file.read().splitlines() if not line.lstrip().startswith("#"))))
            self.assertEqual(used - known, set(), path)


class Observability(unittest.TestCase):
    def test_alerts(self):
        for words in (("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml")):
            done = subprocess.run(["promtool", *words], cwd=os.path.join(DEPLOY, "prometheus"), capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_dashboard(self):
        """The JSON has the structure that Grafana's provisioning reads, and its queries are those of metrics that the server has."""
        with open(os.path.join(DEPLOY, "grafana", "kelp.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        for panel in dashboard["panels"]:
            self.assertLessEqual({"id", "type", "title", "gridPos", "targets", "datasource"}, set(panel))
            self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24)
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", "5m")
                rule = {"groups": [{"name": "x", "rules": [{"record": "x", "expr": expression}]}]}
                with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
                    yaml.safe_dump(rule, file)
                    file.flush()
                    done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{expression}: {done.stderr}")

    def test_metrics_exist(self):
        with open(os.path.join(ROOT, "docs", "http.md"), encoding="utf-8") as file:
            documented = file.read()
        for path in ("prometheus/alerts.yaml", "grafana/kelp.json"):
            with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
                for name in set(re.findall(r"\bnv_[a-z_]+", file.read())):
                    done = subprocess.run(["grep", "-rqF", "--include=*.c", "--include=*.h", "--include=*.inc", name, os.path.join(ROOT, "src", "server")],
                                          check=False)
                    self.assertTrue(done.returncode == 0 or name.removesuffix("_bucket") in documented, f"{path}: {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    options, rest = parser.parse_known_args()
    TOOLS = options.tools
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
