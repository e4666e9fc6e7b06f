# SPDX-License-Identifier: Apache-2.0
"""A kube-apiserver with etcd, without nodes and controllers: it validates and stores objects."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import yaml

PATIENCE_S = 120
TOKEN = "kelp-test"
# Where the objects of a kind are; those without a namespace are marked.
PLACES = {"Namespace": ("/api/v1", "namespaces", False), "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
          "Service": ("/api/v1", "services", True), "ConfigMap": ("/api/v1", "configmaps", True), "Deployment": ("/apis/apps/v1", "deployments", True),
          "HorizontalPodAutoscaler": ("/apis/autoscaling/v2", "horizontalpodautoscalers", True),
          "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
          "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies", True),
          "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
          "PodMonitor": ("/apis/monitoring.coreos.com/v1", "podmonitors", True), "PrometheusRule": ("/apis/monitoring.coreos.com/v1", "prometheusrules", True),
          "ClusterServingRuntime": ("/apis/serving.kserve.io/v1alpha1", "clusterservingruntimes", False),
          "InferenceService": ("/apis/serving.kserve.io/v1beta1", "inferenceservices", True)}


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


class ApiServer:
    """Started by the constructor with the programs of `tools` and etcd; `close` ends both."""

    def __init__(self, tools):
        self.directory = tempfile.mkdtemp(prefix="kelp-apiserver-")
        client, peer, self.port = free_ports(3)
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        key = os.path.join(self.directory, "key.pem")
        tokens = os.path.join(self.directory, "tokens.csv")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        with open(tokens, "w", encoding="utf-8") as file:
            file.write(f"{TOKEN},test,test,system:masters\n")
        self.processes = []
        try:
            self.begin(tools, key, tokens, client, peer)
        except BaseException:
            self.close()
            raise

    def begin(self, tools, key, tokens, client, peer):
        etcd = f"http://127.0.0.1:{client}"
        self.processes.append(self.start("etcd", "--data-dir", os.path.join(self.directory, "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                                     "--listen-peer-urls", f"http://127.0.0.1:{peer}"))
        self.processes.append(self.start(os.path.join(tools, "kube-apiserver"), "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port",
                                         str(self.port), "--cert-dir", os.path.join(self.directory, "certs"), "--authorization-mode", "AlwaysAllow",
                                         "--token-auth-file", tokens, "--disable-admission-plugins", "ServiceAccount", "--service-account-issuer",
                                         "https://kubernetes.default.svc", "--service-account-key-file", key, "--service-account-signing-key-file", key,
                                         "--service-cluster-ip-range", "10.0.0.0/24"))
        self.wait_until(lambda: self.call("GET", "/readyz")[0] == 200)

    def start(self, *command):
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, cwd=self.directory)

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.log.close()
        shutil.rmtree(self.directory)

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass
            ended = [process.args[0] for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                with open(self.log.name, encoding="utf-8", errors="replace") as file:
                    raise AssertionError(f"{ended or 'kube-apiserver'} did not become ready:\n{file.read()[-4000:]}")
            time.sleep(0.1)

    def call(self, verb, path, body=None, content_type="application/yaml"):
        """Returns the status and the object or error."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", None if body is None else body.encode(), method=verb,
                                         headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=PATIENCE_S) as response:
                text = response.read()
                return response.status, json.loads(text) if text.startswith(b"{") else text
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text.startswith(b"{") else text

    def apply(self, document, namespace="default"):
        """Applies an object as `kubectl apply --server-side --validate=strict` does. Returns the status and the object or error."""
        prefix, plural, is_namespaced = PLACES[document["kind"]]
        place = f"{prefix}/namespaces/{namespace}/{plural}" if is_namespaced else f"{prefix}/{plural}"
        return self.call("PATCH", f"{place}/{document['metadata']['name']}?fieldManager=test&force=true&fieldValidation=Strict", yaml.safe_dump(document),
                         "application/apply-patch+yaml")

    def add_definitions(self, directory):
        """Applies the definitions of custom resources in a directory, and waits until they are served."""
        names = []
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                definition = yaml.safe_load(file)
            status, answer = self.apply(definition)
            if status not in (200, 201):
                raise AssertionError(f"{name}: {status} {answer}")
            names.append(definition["metadata"]["name"])
        for name in names:
            self.wait_until(lambda name=name: any(item["type"] == "Established" and item["status"] == "True" for item in self.call(
                "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")[1].get("status", {}).get("conditions", [])))
