# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/ for Kubernetes, KServe, Prometheus and Grafana against the schemas of these projects and in a kube-apiserver; the Helm chart with helm.

    tests/packaging/test_kubernetes.py --tools DIRECTORY     with kubeconform, helm, kube-apiserver and the modules of scripts/kubernetes.sh
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

import apiserver

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")
TOOLS = None
VALUES = {"models": {"existingClaim": "models"}, "autoscaling": {"enabled": True}, "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
          "prometheusRule": {"enabled": True}, "imagePullSecrets": [{"name": "registry"}], "podAnnotations": {"a": "b"}, "nodeSelector": {"a": "b"},
          "tolerations": [{"key": "a", "operator": "Exists"}], "env": [{"name": "A", "value": "b"}]}
ADDRESSES = {"models": {"addresses": ["s3://models/production", "oci://registry.example/models/digits:1"], "pollSeconds": 60, "pullSecret": "store"}}
PULL = {"models": {"pull": [{"name": "digits", "from": "s3://models/digits/"}], "pullSecret": "store"}}

# The version whose schemas scripts/kubernetes.sh brings; helm would take its own.
VERSION = "1.35.4"
KINDS = ("PersistentVolumeClaim", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy")
# Fields of the files, and a wrong name for each.
MISSPELT = (("kubernetes/kelp.yaml", "terminationGracePeriodSeconds", "terminationGraceSeconds"),
            ("kubernetes/kelp.yaml", "podMetricsEndpoints", "podMetricEndpoints"), ("kserve/runtime.yaml", "supportedModelFormats", "supportedFormats"),
            ("kserve/inferenceservice.yaml", "modelFormat", "format"))


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


def helm(*words, values=None):
    """Returns the exit code, the output and the errors of a command of helm for the chart."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(values or {}, file)
        file.flush()
        done = subprocess.run([os.path.join(TOOLS, "helm"), *words, os.path.join(DEPLOY, "helm", "kelp"), "--values", file.name, "--kube-version", VERSION],
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def read(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as file:
        return file.read()


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

    def test_manifests(self):
        self.check(read("kubernetes", "kelp.yaml"), 7)

    def test_kserve(self):
        for name in ("runtime.yaml", "inferenceservice.yaml"):
            self.check(read("kserve", name), 1)

    def test_misspelt_fields_are_rejected(self):
        for path, name, wrong in MISSPELT:
            text = read(path)
            self.assertIn(name, text)
            self.assertNotEqual(self.validate(text.replace(name, wrong))[0], 0, wrong)

    def test_chart(self):
        code, output, errors = helm("lint", "--strict")
        self.assertEqual(code, 0, output + errors)
        for values, count in (({}, 4), (VALUES, 7), (ADDRESSES, 4), (PULL, 4)):
            code, output, errors = helm("template", "release", values=values)
            self.assertEqual(code, 0, errors)
            self.check(output, count)
        self.assertIn("s3://models/digits/", output)
        arguments = [document["spec"]["template"]["spec"]["containers"][0]["args"] for document in
                     yaml.safe_load_all(helm("template", "release", values=ADDRESSES)[1]) if document["kind"] == "Deployment"][0]
        for words in (["--model-repository", "s3://models/production"], ["--model-repository", "oci://registry.example/models/digits:1"],
                      ["--model-cache", "/models"], ["--model-control-mode", "poll"], ["--repository-poll-secs", "60"]):
            self.assertIn(words[1], arguments[arguments.index(words[0]) + 1:], words)
        self.assertNotIn("/models", arguments[:arguments.index("--model-cache")])

    def test_chart_rejects_contradictions(self):
        for values, message in (({"models": {"existingClaim": "models", "pull": PULL["models"]["pull"]}}, "set one of them"),
                                ({"models": {**ADDRESSES["models"], "pull": PULL["models"]["pull"]}}, "set one of them"),
                                ({"autoscaling": {"enabled": True, "queueSeconds": "", "queuedRequests": ""}}, "autoscaling needs a metric")):
            code, _, errors = helm("template", "release", values=values)
            self.assertNotEqual(code, 0)
            self.assertIn(message, errors)

    def test_options_of_the_server_exist(self):
        """Options in the files are those of `kelp serve --help`."""
        with open(os.path.join(ROOT, "docs", "cli.md"), encoding="utf-8") as file:
            known = set(re.findall(r"--[a-z0-9-]+", file.read()))
        for path in ("kubernetes/kelp.yaml", "kserve/runtime.yaml", "helm/kelp/values.yaml", "helm/kelp/templates/deployment.yaml"):
            with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
                used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", "\n".join(line for line in file.read().splitlines() if not line.lstrip().startswith("#"))))
            self.assertEqual(used - known, set(), path)


class Server(unittest.TestCase):
    """What kube-apiserver accepts, with the definitions of KServe and of the Prometheus operator."""

    @classmethod
    def setUpClass(cls):
        cls.server = apiserver.ApiServer(TOOLS)
        cls.addClassCleanup(cls.server.close)
        cls.server.add_definitions(os.path.join(TOOLS, "modules", "crds"))

    def apply(self, text, namespace="default"):
        """Applies the objects of a text twice, which must not change them the second time."""
        if namespace != "default":
            self.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
        for document in documents:
            status, answer = self.server.apply(document, namespace)
            self.assertIn(status, (200, 201), (document["kind"], answer))
            self.assertEqual(self.server.apply(document, namespace)[1]["spec"], answer["spec"], document["kind"])
        return documents

    def test_manifests(self):
        self.assertEqual(len(self.apply(read("kubernetes", "kelp.yaml"))), 7)

    def test_kserve(self):
        for name in ("runtime.yaml", "inferenceservice.yaml"):
            self.apply(read("kserve", name))

    def test_chart(self):
        for i, values in enumerate(({}, VALUES, ADDRESSES, PULL)):
            code, output, errors = helm("template", "release", values=values)
            self.assertEqual(code, 0, errors)
            self.apply(output, f"chart-{i}")

    def test_misspelt_fields_are_rejected(self):
        for path, name, wrong in MISSPELT:
            text = read(path).replace(name, wrong)
            answers = [self.server.apply(document) for document in yaml.safe_load_all(text)]
            rejected = [answer["message"] for status, answer in answers if status not in (200, 201)]
            self.assertEqual(len(rejected), 1, rejected)
            self.assertIn(wrong, rejected[0])

    def test_wrong_values_are_rejected(self):
        for path, text, wrong in (("kubernetes/kelp.yaml", "path: /v2/health/ready", "path: 7"), ("kubernetes/kelp.yaml", "AverageValue, averageValue", "Mean, averageValue"),
                                  ("kserve/runtime.yaml", "protocolVersions: [v2, grpc-v2]", "protocolVersions: v2")):
            self.assertIn(text, read(path))
            answers = [self.server.apply(document) for document in yaml.safe_load_all(read(path).replace(text, wrong))]
            self.assertEqual(len([answer for status, answer in answers if status not in (200, 201)]), 1, wrong)


class Observability(unittest.TestCase):
    def test_alerts(self):
        for words in (("check", "rules", "alerts.yaml"), ("test", "rules", "alerts_test.yaml")):
            done = subprocess.run(["promtool", *words], cwd=os.path.join(DEPLOY, "prometheus"), capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_autoscaling(self):
        """The expressions of the adapter's rules, as it evaluates them for pods, and their names in the autoscalers."""
        rules = {rule["name"]["as"]: rule for rule in yaml.safe_load(read("prometheus", "adapter.yaml"))["rules"]}
        for path in ("kubernetes/kelp.yaml", "helm/kelp/templates/autoscaling.yaml"):
            self.assertEqual(set(re.findall(r"metric: {name: (\w+)}", read(path))), set(rules), path)
        records = []
        for name, rule in rules.items():
            expression = rule["metricsQuery"]
            for field, text in (("Series", rule["seriesQuery"].split("{")[0]), ("LabelMatchers", 'namespace="a",pod=~"kelp-0|kelp-1|kelp-2"'), ("GroupBy", "pod")):
                expression = expression.replace(f"<<.{field}>>", text)
            records.append({"record": name, "expr": expression})
        # kelp-0: 100 requests/s that wait 30 ms, of two models; kelp-1: no requests; kelp-2: 1 request/s that does not wait.
        series = []
        for pod, queue_us, requests, pending in (("kelp-0", 90_000_000, 3000, 5), ("kelp-1", 0, 0, 0), ("kelp-2", 0, 60, 1)):
            for model in ("x", "y"):
                labels = f'{{namespace="a",pod="{pod}",model="{model}"}}'
                series += [{"series": f"nv_inference_queue_duration_us{labels}", "values": f"0+{queue_us}x10"},
                           {"series": f"nv_inference_request_success{labels}", "values": f"0+{requests}x10"},
                           {"series": f"nv_inference_pending_request_count{labels}", "values": f"{pending}+0x10"}]
        wanted = {"kelp_queue_seconds": (0.03, 0, 0), "kelp_queued_requests": (10, 0, 2)}
        tests = [{"expr": name, "eval_time": "5m", "exp_samples": [{"labels": f'{name}{{pod="kelp-{i}"}}', "value": value} for i, value in enumerate(values)]}
                 for name, values in wanted.items()]
        with tempfile.TemporaryDirectory() as directory:
            for name, content in (("rules.yaml", {"groups": [{"name": "adapter", "rules": records}]}),
                                  ("test.yaml", {"rule_files": ["rules.yaml"], "evaluation_interval": "30s",
                                                 "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]})):
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    yaml.safe_dump(content, file)
            done = subprocess.run(["promtool", "test", "rules", "test.yaml"], cwd=directory, capture_output=True, text=True, check=False)
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
        for path in ("prometheus/alerts.yaml", "prometheus/adapter.yaml", "grafana/kelp.json"):
            with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
                for name in set(re.findall(r"\bnv_[a-z_]+", file.read())):
                    done = subprocess.run(["grep", "-rqF", "--include=*.c", "--include=*.h", "--include=*.inc", name, os.path.join(ROOT, "src", "server")],
                                          check=False)
                    self.assertTrue(done.returncode == 0 or name.removesuffix("_bucket") in documented, f"{path}: {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    options, rest = parser.parse_known_args()
    TOOLS = os.path.abspath(options.tools)
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
