# shellcheck shell=bash
# For the scripts that make images in place of the base images, where no registry of images can be reached: Debian, and what
# Debian or npm has of the programs in them. They have the names of the real ones, so that Dockerfile and docker-compose.yml are
# used unchanged. These scripts need root, debootstrap and podman.
set -euo pipefail
# What tells these images from those of an earlier version of these scripts.
recipe=$1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# quietly COMMAND…: shows what it writes only when it fails.
quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
}

# import IMAGE [INSTRUCTION…]: the packages' own caches and manuals are left out, as in the real images.
import() {
  local image=$1 changes=(--change "LABEL plant-store.stand-in=$recipe")
  shift
  for change in "$@"; do changes+=(--change "$change"); done
  tar -C "$root" --numeric-owner \
    --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
    --exclude='./usr/share/locale/*' --exclude='./var/log/*.log' --exclude='./var/log/apt' -c . |
    podman import --quiet "${changes[@]}" - "$image" >/dev/null
}

quietly debootstrap --variant=minbase bookworm "$root"
