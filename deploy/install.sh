#!/bin/sh
# Installs Basalt into a folder of its own: what runs it, and nothing that only makes it. The Dockerfile and CI call this script.
#
#   deploy/install.sh PREFIX      a new or empty folder, where it stays: a virtual environment cannot be moved
#
# Needs Python 3.11 or newer (PYTHON names one) with its venv module, Node.js 20 or newer, npm and tar. Does not need root.
# Nothing below PREFIX is written when Basalt runs: data go to BASALT_DATA.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

[ $# -eq 1 ] || fail "name one folder to install into"
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
[ -z "$(ls -A "$prefix")" ] || fail "$prefix is not empty"
case "$prefix/" in "$source"/*) fail "$prefix is inside the sources" ;; esac

python=${PYTHON:-python3}
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' ||
  fail "needs Python 3.11 or newer with its venv module"
node -e 'process.exit(+(parseInt(process.versions.node) < 20))' || fail "needs Node.js 20 or newer"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
export BASALT_DATA="$scratch/data" PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 npm_config_update_notifier=false
unset BASALT_PRODUCTION BASALT_CLUSTER DATABASE_URL REDIS_URL DJANGO_SETTINGS_MODULE

cd "$source"
tar -cf - --exclude=__pycache__ --exclude='*.mo' \
  cluster jobs portal queues scheduler locale static templates \
  deploy/crds deploy/volcano-scheduler.conf manage.py requirements.txt |
  tar -xf - -C "$prefix" --no-same-owner
cp package.json package-lock.json .npmrc "$scratch"

"$python" -m venv "$prefix/.venv"
"$prefix/.venv/bin/python" -m pip install --quiet --no-compile -r requirements.txt -c deploy/constraints.txt

cd "$prefix"
for catalog in locale/*/LC_MESSAGES/*.po; do
  .venv/bin/pybabel --quiet compile -i "$catalog" -o "${catalog%.po}.mo"
done

# The browser's libraries are there only until the few files that are served were gathered.
(cd "$scratch" && npm ci --silent --omit=dev --ignore-scripts)
ln -s "$scratch/node_modules" node_modules
mkdir staticfiles
.venv/bin/python manage.py collectstatic --no-input --verbosity 0
rm node_modules

.venv/bin/python manage.py check >"$scratch/check" 2>&1 ||
  { cat "$scratch/check" >&2; fail "what was installed does not hold together"; }
.venv/bin/python -m pip uninstall --quiet --yes setuptools pip
# Nobody can write byte code later, so it is written now. A few packages carry templates of Python that are no Python yet.
.venv/bin/python -m compileall -q . >/dev/null || true
chmod -R a+rX,go-w .
