#!/bin/sh
# Installs everything that selfsame needs on this machine: npm packages (including Node 24), system packages, git hooks.
#
#   scripts/setup.sh              to run selfsame
#   scripts/setup.sh --for test   to test it as well
#
# Idempotent, and fast if everything is installed. If it may not install system packages, it prints what is missing and
# exits with 1.
set -eu

root=$(CDPATH='' cd -- "$(dirname "$0")/.." && pwd -P)
cd "$root"

NODE_MAJOR=24

# One row each: the command or file, its Debian package, and when it is needed (run: always, test: for tests only).
SYSTEM_PACKAGES='
kubectl                              kubernetes-client   run
qemu-system-x86_64                   qemu-system-x86     run
qemu-img                             qemu-utils          run
swtpm                                swtpm               run
runc                                 runc                run
/usr/share/OVMF/OVMF_CODE_4M.fd      ovmf                run
ip                                   iproute2            run
losetup                              mount               run
/usr/sbin/nft                        nftables            run
/usr/sbin/dnsmasq                    dnsmasq-base        run
/sbin/mkfs.ext4                      e2fsprogs           run
flock                                util-linux          run
/usr/lib/cni/bridge                  containernetworking-plugins run
/usr/bin/python3                     python3             test
virsh                                libvirt-clients     test
virt-qemu-run                        libvirt-daemon-driver-qemu test
bsdtar                               libarchive-tools    test
zsh                                  zsh                 test
fish                                 fish                test
ssh                                  openssh-client      test
/sbin/dhclient                       isc-dhcp-client     test
vncviewer                            tigervnc-viewer     test
gvnccapture                          gvncviewer          test
Xvfb                                 xvfb                test
'

purpose=run
case "${1-} ${2-}" in
  ' ') ;;
  '--for test') purpose=test ;;
  *)
    echo 'Usage: scripts/setup.sh [--for test]' >&2
    exit 2
    ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# npm must run on the system's Node, because it replaces the one in node_modules.
without_local_bin() {
  printf '%s' "$PATH" | tr ':' '\n' | grep -v '/node_modules/\.bin/*$' | paste -sd: -
}

node_version() { node_modules/.bin/node --version 2>/dev/null || true; }

has_right_node() {
  case $(node_version) in
    "v$NODE_MAJOR."*) return 0 ;;
    *) return 1 ;;
  esac
}

install_npm_packages() {
  stamp=node_modules/.selfsame-setup
  wanted=$(sha256sum <package-lock.json)
  if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || ! has_right_node; then
    PATH=$(without_local_bin)
    command -v npm >/dev/null || fail 'Cannot install the npm packages: npm is missing; on Debian: apt-get install -y nodejs npm'
    say 'installing npm packages'
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || fail 'Cannot install the npm packages: npm ci failed'
  fi
  # npm skips optional packages silently, and Node is one: it has one package per architecture.
  has_right_node ||
    fail "Cannot install Node $NODE_MAJOR (node_modules/.bin/node: $(node_version | grep . || echo none)):" \
      "npm has it for Linux on x86_64 and aarch64, this is $(uname -sm)"
  printf '%s\n' "$wanted" >"$stamp"
}

# Prints the prefix to run commands as root: nothing if this is root, sudo without a password, or 'no'.
root_prefix() {
  if [ "$(id -u)" = 0 ]; then
    echo ''
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    echo 'sudo -n'
  else
    echo no
  fi
}

# Succeeds if the command or file exists.
has() {
  case $1 in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

install_system_packages() {
  commands='' packages=''
  while read -r command package needed; do
    [ -n "$command" ] || continue
    [ "$needed" = run ] || [ "$purpose" = test ] || continue
    has "$command" && continue
    commands="$commands $command"
    packages="$packages $package"
  done <<EOF
$SYSTEM_PACKAGES
EOF
  [ -n "$packages" ] || return 0

  become=$(root_prefix)
  install="apt-get update && apt-get install -y --no-install-recommends$packages"
  if ! command -v apt-get >/dev/null; then
    say "missing commands and files:$commands"
    fail "Cannot install system packages: there is no apt-get; install the equivalents of Debian's$packages"
  elif [ "$become" = no ]; then
    say "missing commands and files:$commands"
    say "their packages:$packages"
    fail "Cannot install system packages: this user may not; run as root:  $install"
  fi
  say "installing system packages:$packages"
  # shellcheck disable=SC2086 # Both are lists of words.
  {
    $become apt-get -qq update &&
      $become env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
        install -y --no-install-recommends $packages
  } >&2 || fail "Cannot install system packages; run as root:  $install"
}

# unpack_packages DIR PACKAGE...: downloads Debian packages and unpacks them below DIR/root, without installing them.
unpack_packages() (
  cd "$1"
  shift
  download='apt-get -qq -o APT::Sandbox::User=root download'
  $download "$@" 2>/dev/null || { $(root_prefix | sed 's/^no$//') apt-get -qq update && $download "$@"; } || return 1
  for package in *.deb; do dpkg-deb -x "$package" root || return 1; done
) >&2

# Prints the packages of the QEMU guest agent, of a netcat with UDP, and of their direct and indirect libraries; nothing
# if this Debian does not have them.
agent_packages() {
  libraries() { apt-cache depends "$@" 2>/dev/null | sed -n 's/^ [ |]\(Pre\)\{0,1\}Depends: \(lib[^ ]*\)$/\2/p' | sort -u; }
  first=$(libraries qemu-guest-agent)
  # shellcheck disable=SC2086 # A list of words.
  [ -z "$first" ] || printf '%s\n' qemu-guest-agent netcat-traditional $first $(libraries $first) | sort -u
}

can_unpack() { command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; }

# Unpacks the oldest supported kubectl. It is not installed, because its package conflicts with other versions.
unpack_old_kubectl() {
  target=.cache/kubectl-1.20
  [ ! -x "$target/usr/bin/kubectl" ] || return 0
  if ! can_unpack; then
    say 'kubectl 1.20 is available on Debian only; transcripts run only with the installed kubectl'
    return 0
  fi
  say 'unpacking kubectl 1.20'
  work=$(mktemp -d "$root/.cache/kubectl.XXXXXX")
  if ! unpack_packages "$work" kubernetes-client; then
    rm -rf "$work"
    fail 'Cannot unpack kubectl 1.20: apt-get download kubernetes-client failed'
  fi
  case $("$work/root/usr/bin/kubectl" version --client 2>/dev/null) in
    *v1.20.*)
      rm -rf "$target"
      mv "$work/root" "$target"
      ;;
    *) say "this Debian's kubernetes-client is not 1.20; transcripts run only with the installed kubectl" ;;
  esac
  rm -rf "$work"
}

# Unpacks promtool, which checks our metrics. It is not installed, because its package starts a server.
unpack_promtool() {
  target=.cache/prometheus
  ! has promtool && [ ! -x "$target/usr/bin/promtool" ] || return 0
  can_unpack || fail 'Cannot unpack promtool: this is not Debian; install promtool from Prometheus'
  say 'unpacking promtool'
  work=$(mktemp -d "$root/.cache/prometheus.XXXXXX")
  if ! unpack_packages "$work" prometheus; then
    rm -rf "$work"
    fail 'Cannot unpack promtool: apt-get download prometheus failed'
  fi
  mkdir -p "$target/usr/bin"
  mv "$work/root/usr/bin/promtool" "$target/usr/bin/promtool"
  rm -rf "$work"
}

# Builds the built-in guest (kernelBoot image selfsame/guest) in .cache/guest: Debian's kernel, busybox and QEMU guest
# agent with our init.
build_guest() {
  target=.cache/guest
  wanted=$(cat guest/init guest/*.ts | sha256sum)
  [ "$(cat "$target/stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  if ! can_unpack || [ "$(uname -m)" != x86_64 ]; then
    say 'the built-in guest needs packages of Debian on x86_64; VMs with the image selfsame/guest cannot start here'
    return 0
  fi
  say 'building the built-in guest (downloads a kernel, 75 MB)'
  work=$(mktemp -d "$root/.cache/guest.XXXXXX")
  kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^  Depends: //p' | head -n 1)
  if [ -z "$kernel" ]; then
    $(root_prefix | sed 's/^no$//') apt-get -qq update >&2 || true
    kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^  Depends: //p' | head -n 1)
  fi
  # shellcheck disable=SC2046 # A list of words.
  if [ -n "$kernel" ] && unpack_packages "$work" "$kernel" busybox-static $(agent_packages) &&
    node_modules/.bin/node guest/build.ts "$work/root" "$target" >&2; then
    printf '%s\n' "$wanted" >"$target/stamp"
    rm -rf "$work"
    return 0
  fi
  rm -rf "$work"
  [ "$purpose" = run ] || fail 'Cannot build the built-in guest: its packages linux-image-amd64 and busybox-static are not available'
  say 'Cannot build the built-in guest: its packages are not available; VMs with the image selfsame/guest cannot start'
}

install_git_hooks() {
  [ -z "${CI-}" ] || return 0
  [ "$(git rev-parse --show-toplevel 2>/dev/null || true)" = "$root" ] || return 0
  [ -n "$(git config core.hooksPath || true)" ] || git config core.hooksPath .githooks
}

# Only one at a time, because two would overwrite each other.
mkdir -p .cache
if command -v flock >/dev/null; then
  exec 9>.cache/setup.lock
  flock 9
fi

install_npm_packages
install_system_packages
build_guest
[ "$purpose" = run ] || unpack_old_kubectl
[ "$purpose" = run ] || unpack_promtool
install_git_hooks
