#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the files of deploy/ for Kubernetes, KServe, Prometheus and Grafana with kubeconform, helm and kube-apiserver, which Go builds,
# and with the schemas of Kubernetes, KServe and the Prometheus operator, which are in their Go modules. Exits 77 and prints the reason if
# Go cannot download them. The first build takes 10 CPU minutes.
#   scripts/kubernetes.sh
# KELP_KUBERNETES_TOOLS: a directory with the programs and schemas (build/kubernetes).
set -uo pipefail
cd "$(dirname "$0")/.."
tools=${KELP_KUBERNETES_TOOLS:-$PWD/build/kubernetes}
modules=$tools/modules
version=1.35.4

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

# Builds kube-apiserver. The module k8s.io/kubernetes lacks the modules of its directory staging, which it requires as v0.0.0; they are
# published with the same minor version.
build_apiserver() {
    local directory
    directory=$(module "k8s.io/kubernetes@v$version") || exit
    mkdir -p "$tools/apiserver"
    {
        printf 'module apiserver\n\n%s\n\nrequire k8s.io/kubernetes v%s\n' "$(grep '^go ' "$directory/go.mod")" "$version"
        sed -nE "s|^\t(k8s\.io/[a-z-]+) v0\.0\.0( // indirect)?$|replace \1 => \1 v0.${version#*.}|p" "$directory/go.mod"
    } >"$tools/apiserver/go.mod"
    (cd "$tools/apiserver" && CGO_ENABLED=0 GOFLAGS=-mod=mod go build -p 1 -o ../kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver) \
        >"$tools/kube-apiserver.log" 2>&1
}

command -v go >/dev/null || skip "there is no Go"
scripts/deps.sh kubernetes || exit
mkdir -p "$tools"
for program in github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0 helm.sh/helm/v3/cmd/helm@v3.19.2; do
    name=$(basename "${program%@*}")
    [ -x "$tools/$name" ] || GOBIN=$tools go install "$program" >"$tools/$name.log" 2>&1 ||
        skip "Go cannot build $name: $(tail -n 1 "$tools/$name.log")"
done
[ -x "$tools/kube-apiserver" ] || build_apiserver || skip "Go cannot build kube-apiserver: $(tail -n 1 "$tools/kube-apiserver.log")"
if [ ! -e "$modules/crds" ]; then
    rm -rf "$modules"
    mkdir -p "$modules/new"
    kubernetes=$(module "k8s.io/kubernetes@v$version") && kserve=$(module github.com/kserve/kserve@v0.17.0) &&
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
