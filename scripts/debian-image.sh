#!/bin/sh
# Builds a Debian image like those of clouds, from Debian's packages: GPT, boots with BIOS and UEFI, cloud-init, OpenSSH,
# QEMU guest agent, TPM tools. Tests use it as "any cloud image"; it is not part of Selfsame.
#
#   scripts/debian-image.sh FILE.qcow2
#
# Needs root, and installs the packages that it needs. It mounts nothing, because a container has no loop devices. Takes
# about two minutes. Does nothing if FILE exists.
set -eu

file=${1:?Usage: scripts/debian-image.sh FILE.qcow2}
[ ! -e "$file" ] || exit 0

HOST_PACKAGES='mmdebstrap dosfstools mtools fdisk grub-common grub-pc-bin grub-efi-amd64-bin qemu-utils e2fsprogs'
GUEST_PACKAGES='
linux-image-cloud-amd64 initramfs-tools systemd-sysv systemd-resolved dbus udev
netbase iproute2 ifupdown isc-dhcp-client ca-certificates locales sudo
cloud-init cloud-guest-utils e2fsprogs openssh-server qemu-guest-agent tpm2-tools
'
MIB=1048576
# The partitions, in MiB from the start of the disk.
BIOS_AT=1
EFI_AT=2
ROOT_AT=34
DISK_END=2560

say() { printf 'debian-image: %s\n' "$*" >&2; }

install_host_packages() {
  missing=''
  for package in $HOST_PACKAGES; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  say "installing$missing"
  apt-get -qq update
  # shellcheck disable=SC2086 # A list of words.
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >&2
}

# Prints the file with this machine's Debian sources, so that the image comes from the mirror that the machine uses.
debian_sources() {
  for sources in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    if [ -s "$sources" ]; then
      echo "$sources"
      return
    fi
  done
  say 'Cannot build the image: this machine has no Debian sources in /etc/apt'
  exit 1
}

# put_at MIB FILE: copies the file to this place of the disk.
put_at() {
  dd if="$2" of="$work/disk.raw" bs="$MIB" seek="$1" conv=notrunc,sparse status=none
}

# put_number FILE OFFSET BYTES NUMBER: writes a little-endian number.
put_number() {
  number=$4
  for index in $(seq 0 $(($3 - 1))); do
    printf "\\$(printf '%03o' $((number % 256)))" | dd of="$1" bs=1 seek=$(($2 + index)) conv=notrunc status=none
    number=$((number / 256))
  done
}

# Installs GRUB for BIOS: the boot sector loads the first sector of core.img, which loads the rest by a list of blocks.
install_bios_grub() {
  first=$((BIOS_AT * MIB / 512))
  grub-mkimage -O i386-pc -o "$work/core.img" -p '(hd0,gpt3)/boot/grub' \
    biosdisk part_gpt ext2 normal linux search search_label serial terminal echo
  sectors=$((($(stat -c %s "$work/core.img") + 511) / 512))
  put_number "$work/core.img" 500 8 $((first + 1))
  put_number "$work/core.img" 508 2 $((sectors - 1))
  put_at "$BIOS_AT" "$work/core.img"
  cp /usr/lib/grub/i386-pc/boot.img "$work/boot.img"
  put_number "$work/boot.img" 92 8 "$first"
  # The rest of the sector has the table of partitions.
  dd if="$work/boot.img" of="$work/disk.raw" bs=440 count=1 conv=notrunc status=none
}

install_efi_grub() {
  cat >"$work/early.cfg" <<'CONFIG'
search --label root --set=root
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
CONFIG
  grub-mkimage -O x86_64-efi -o "$work/bootx64.efi" -p /boot/grub -c "$work/early.cfg" \
    part_gpt ext2 normal linux search search_label configfile serial terminal echo
  mkfs.vfat -C -n EFI "$work/efi.img" $(((ROOT_AT - EFI_AT) * 1024)) >/dev/null
  mmd -i "$work/efi.img" ::EFI ::EFI/BOOT
  mcopy -i "$work/efi.img" "$work/bootx64.efi" ::EFI/BOOT/BOOTX64.EFI
  put_at "$EFI_AT" "$work/efi.img"
}

# Debian keeps links to the newest kernel in /, so that this menu is right after updates.
configure_guest() {
  mkdir -p "$work/root/boot/grub" "$work/root/boot/efi"
  cat >"$work/root/boot/grub/grub.cfg" <<'CONFIG'
serial --unit=0 --speed=115200
terminal_input console serial
terminal_output console serial
linux /vmlinuz root=LABEL=root ro console=tty0 console=ttyS0,115200
initrd /initrd.img
boot
CONFIG
  cat >"$work/root/etc/fstab" <<'FSTAB'
LABEL=root /         ext4 defaults   0 1
LABEL=EFI  /boot/efi vfat umask=0077 0 2
FSTAB
  # Exists without being generated. cloud-init would choose one that does not.
  echo 'LANG=C.UTF-8' >"$work/root/etc/default/locale"
  # An image has no identity: the guest makes its own at its first boot.
  : >"$work/root/etc/machine-id"
  rm -f "$work/root"/etc/ssh/ssh_host_* "$work/root/etc/hostname"
}

install_host_packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
say "installing Debian $suite"
mmdebstrap --quiet --variant=minbase --include="$(echo $GUEST_PACKAGES | tr ' ' ',')" \
  "$suite" "$work/root" "$(debian_sources)" >&2
configure_guest

say 'writing the disk'
truncate -s $((DISK_END * MIB)) "$work/disk.raw"
sfdisk --quiet "$work/disk.raw" <<PARTITIONS
label: gpt
start=${BIOS_AT}MiB, size=$((EFI_AT - BIOS_AT))MiB, type=21686148-6449-6E6F-744E-656564454649, name=bios
start=${EFI_AT}MiB, size=$((ROOT_AT - EFI_AT))MiB, type=uefi, name=efi
start=${ROOT_AT}MiB, type=linux, name=root
PARTITIONS
mke2fs -q -t ext4 -L root -d "$work/root" "$work/root.img" $((DISK_END - ROOT_AT - 1))M
put_at "$ROOT_AT" "$work/root.img"
install_efi_grub
install_bios_grub

say 'compressing'
mkdir -p "$(dirname "$file")"
qemu-img convert -c -O qcow2 "$work/disk.raw" "$file.new"
mv "$file.new" "$file"
say "$file has $(du -h "$file" | cut -f1)"
