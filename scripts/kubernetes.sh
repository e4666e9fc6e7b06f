#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the files of deploy/ for Kubernetes, KServe, Prometheus and Grafana with kubeconform and helm, which Go builds, and with the
# schemas of Kubernetes, KServe and the Prometheus operator, which are in their Go modules. Exits 77 and prints the reason if Go cannot
# download them.
#   scripts/kubernetes.sh
# KELP_KUBERNETES_TOOLS: a directory with the programs and schemas (build/kubernetes).
set -uo pipefail
cd "$(dirname "$0")/.."
tools=${KELP_KUBERNETES_TOOLS:-$PWD/build/kubernetes}
modules=$tools/modules

skip() {
    echo "skipped: $1"
    exit 77
}

# The directory of a Go module.
module() {
    local text
    text=$(go mod download -json "$1" 2>/dev/null) || skip "Go cannot bring $1"
    echo "$text" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

command -v go >/dev/null || skip "there is no Go"
mkdir -p "$tools"
for program in github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0 helm.sh/helm/v3/cmd/helm@v3.19.2; do
    name=$(basename "${program%@*}")
    [ -x "$tools/$name" ] || GOBIN=$tools go install "$program" >"$tools/$name.log" 2>&1 ||
        skip "Go cannot build $name: $(tail -n 1 "$tools/$name.log")"
done
if [ ! -e "$modules/crds" ]; then
    rm -rf "$modules"
    mkdir -p "$modules/new"
    kubernetes=$(module k8s.io/kubernetes@v1.35.4) && kserve=$(module github.com/kserve/kserve@v0.17.0) &&
        operator=$(module github.com/prometheus-operator/prometheus-operator@v0.88.0) || exit
    cp "$kubernetes/api/openapi-spec/swagger.json" "$modules/"
    cp "$kserve"/config/crd/full/serving.kserve.io_*.yaml "$modules/new/"
    cp "$operator"/example/prometheus-operator-crd/monitoring.coreos.com_{podmonitors,prometheusrules}.yaml "$modules/new/"
    chmod -R u+w "$modules"
    mv "$modules/new" "$modules/crds"
fi
venv=build/venv-kubernetes
if ! cmp -s tools/requirements-kubernetes.txt "$venv/requirements-kubernetes.txt"; then
    python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check --no-input -r tools/requirements-kubernetes.txt ||
        skip "pip cannot bring PyYAML"
    cp tools/requirements-kubernetes.txt "$venv/"
fi
exec "$venv/bin/python" tests/packaging/test_kubernetes.py --tools "$tools"
